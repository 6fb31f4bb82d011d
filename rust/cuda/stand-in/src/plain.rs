//! `cuMemAlloc`, `cuMemFree`, and how much memory is free.

use crate::device::write;
use crate::host::HostSpan;
use crate::state::{Plain, call_initialized};
use crate::status::{INVALID_VALUE, OUT_OF_MEMORY, Status};

/// The multiple to which the driver rounds sizes up.
const UNIT: u64 = 512;

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize) -> Status {
    call_initialized(c"cuMemGetInfo_v2", |state| {
        let device = &state.devices[state.current()?];
        let bytes = |bytes: u64| usize::try_from(bytes).map_err(|_| INVALID_VALUE);
        // SAFETY: the caller's pointers, as in the driver.
        unsafe {
            write(free, bytes(device.settings.memory.saturating_sub(device.used))?)?;
            write(total, bytes(device.settings.memory)?)
        }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemAlloc_v2(address: *mut u64, bytes: usize) -> Status {
    call_initialized(c"cuMemAlloc_v2", |state| {
        let device = state.current()?;
        if bytes == 0 || address.is_null() {
            return Err(INVALID_VALUE);
        }
        let charged = (bytes as u64).checked_next_multiple_of(UNIT).ok_or(OUT_OF_MEMORY)?;
        state.charge(device, charged)?;
        let Some(span) = HostSpan::with_access(bytes) else {
            state.discharge(device, charged);
            return Err(OUT_OF_MEMORY);
        };
        let start = span.start();
        state.plain.insert(start, Plain { bytes: charged, device, _span: span });
        // SAFETY: the caller's pointer, as in the driver.
        unsafe { write(address, start) }
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuMemFree_v2(address: u64) -> Status {
    call_initialized(c"cuMemFree_v2", |state| {
        let current = state.current()?;
        let is_ours = state.plain.get(&address).is_some_and(|plain| plain.device == current);
        let plain = is_ours.then(|| state.plain.remove(&address)).flatten().ok_or(INVALID_VALUE)?;
        state.discharge(plain.device, plain.bytes);
        Ok(())
    })
}

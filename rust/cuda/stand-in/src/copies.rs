//! Copies between the host and the devices.

use std::ffi::c_void;

use crate::host::pointer;
use crate::state::{State, call_initialized};
use crate::status::{INVALID_VALUE, Status};

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemcpyDtoH_v2(to: *mut c_void, from: u64, bytes: usize) -> Status {
    call_initialized(c"cuMemcpyDtoH_v2", |state| {
        let start = device_memory(state, from, bytes)?;
        // SAFETY: the memory has access; the caller's pointer, as in the driver.
        unsafe { pointer(start).copy_to_nonoverlapping(to, bytes) };
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemcpyHtoD_v2(to: u64, from: *const c_void, bytes: usize) -> Status {
    call_initialized(c"cuMemcpyHtoD_v2", |state| {
        let start = device_memory(state, to, bytes)?;
        // SAFETY: as above.
        unsafe { pointer(start).copy_from_nonoverlapping(from, bytes) };
        Ok(())
    })
}

/// Returns the address of a span of device memory, all of which can be accessed.
fn device_memory(state: &State, start: u64, bytes: usize) -> Result<usize, Status> {
    state.current()?;
    let end = start.checked_add(bytes as u64).ok_or(INVALID_VALUE)?;
    let plain = state.plain.range(..=start).next_back();
    let mut covered = plain.map_or(start, |(first, plain)| start.max(first + plain.bytes).min(end));
    while covered < end {
        let (first, (length, handle)) = state.mappings.range(..=covered).next_back().ok_or(INVALID_VALUE)?;
        if first + length <= covered || state.handles[handle].accessible.last() != Some(first) {
            return Err(INVALID_VALUE);
        }
        covered = first + length;
    }
    usize::try_from(start).map_err(|_| INVALID_VALUE)
}

//! Initialization and questions about devices.

use std::ffi::{c_char, c_int, c_uint};
use std::process;

use crate::settings::Settings;
use crate::state::{DeviceState, State, call, call_initialized};
use crate::status::{INVALID_DEVICE, INVALID_VALUE, NO_DEVICE, Status};

#[unsafe(no_mangle)]
extern "C" fn cuInit(flags: c_uint) -> Status {
    call(c"cuInit", |state| {
        if flags != 0 {
            return Err(INVALID_VALUE);
        }
        if state.process == 0 {
            let settings = state.configured.clone().map_or_else(Settings::from_environment, Ok)?;
            let device =
                |hardware| DeviceState { hardware, settings: settings.clone(), retained: 0, used: 0 };
            state.devices = settings.visible().into_iter().map(device).collect();
            if state.devices.is_empty() {
                return Err(NO_DEVICE);
            }
            state.process = process::id();
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDriverGetVersion(version: *mut c_int) -> Status {
    // SAFETY: the caller's pointer, as in the driver.
    call(c"cuDriverGetVersion", |_| unsafe { write(version, 13_000) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGetCount(count: *mut c_int) -> Status {
    call_initialized(c"cuDeviceGetCount", |state| {
        let devices = c_int::try_from(state.devices.len()).map_err(|_| INVALID_VALUE)?;
        // SAFETY: the caller's pointer, as in the driver.
        unsafe { write(count, devices) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGet(device: *mut c_int, ordinal: c_int) -> Status {
    call_initialized(c"cuDeviceGet", |state| {
        find(state, ordinal)?;
        // SAFETY: the caller's pointer, as in the driver.
        unsafe { write(device, ordinal) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGetName(text: *mut c_char, length: c_int, device: c_int) -> Status {
    call_initialized(c"cuDeviceGetName", |state| {
        let name = &state.devices[find(state, device)?].settings.name;
        // SAFETY: the caller's buffer, as in the driver.
        unsafe { write_text(text, length, name) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGetPCIBusId(text: *mut c_char, length: c_int, device: c_int) -> Status {
    call_initialized(c"cuDeviceGetPCIBusId", |state| {
        let bus = format!("0000:{:02X}:00.0", 0x3a + state.devices[find(state, device)?].hardware);
        // SAFETY: the caller's buffer, as in the driver.
        unsafe { write_text(text, length, &bus) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceTotalMem_v2(bytes: *mut usize, device: c_int) -> Status {
    call_initialized(c"cuDeviceTotalMem_v2", |state| {
        let memory = state.devices[find(state, device)?].settings.memory;
        // SAFETY: the caller's pointer, as in the driver.
        unsafe { write(bytes, usize::try_from(memory).map_err(|_| INVALID_VALUE)?) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGetUuid_v2(uuid: *mut [u8; 16], device: c_int) -> Status {
    call_initialized(c"cuDeviceGetUuid_v2", |state| {
        let hardware = state.devices[find(state, device)?].hardware;
        let bytes = (0x57a4_d104_0000_4000_8000_0000_0000_0000 | u128::from(hardware)).to_be_bytes();
        // SAFETY: the caller's pointer, as in the driver.
        unsafe { write(uuid, bytes) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGetAttribute(value: *mut c_int, attribute: c_uint, device: c_int) -> Status {
    call_initialized(c"cuDeviceGetAttribute", |state| {
        let settings = &state.devices[find(state, device)?].settings;
        let answer = match attribute {
            75 => settings.capability / 10,
            76 => settings.capability % 10,
            102 => settings.has_virtual_memory.into(),
            _ => return Err(INVALID_VALUE),
        };
        // SAFETY: the caller's pointer, as in the driver.
        unsafe { write(value, c_int::try_from(answer).map_err(|_| INVALID_VALUE)?) }
    })
}

/// Returns the index of a device.
pub(crate) fn find(state: &State, device: c_int) -> Result<usize, Status> {
    usize::try_from(device).ok().filter(|&index| index < state.devices.len()).ok_or(INVALID_DEVICE)
}

/// # Safety
/// The pointer is null or may be written to.
pub(crate) unsafe fn write<T>(to: *mut T, value: T) -> Result<(), Status> {
    if to.is_null() {
        return Err(INVALID_VALUE);
    }
    // SAFETY: the caller vouches for the pointer.
    unsafe { to.write(value) };
    Ok(())
}

/// Writes a text, cut to the buffer's length, with a 0 at its end.
///
/// # Safety
/// The pointer is null or may be written to.
unsafe fn write_text(to: *mut c_char, length: c_int, text: &str) -> Result<(), Status> {
    let length = usize::try_from(length).ok().filter(|&length| length > 0 && !to.is_null());
    let length = length.ok_or(INVALID_VALUE)?;
    let cut = &text.as_bytes()[..text.len().min(length - 1)];
    // SAFETY: the caller vouches for the buffer, and the text and its end fit.
    unsafe {
        to.cast::<u8>().copy_from_nonoverlapping(cut.as_ptr(), cut.len());
        to.add(cut.len()).write(0);
    }
    Ok(())
}

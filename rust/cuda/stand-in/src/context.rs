//! Primary contexts, and the stack of contexts of each thread.

use std::ffi::{c_int, c_void};

use crate::device::{find, write};
use crate::state::{CONTEXTS, State, call_initialized};
use crate::status::{INVALID_CONTEXT, Status};

/// The number of the first device's context; the others follow.
const FIRST: usize = 0xC0DE_0000;

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDevicePrimaryCtxRetain(context: *mut *mut c_void, device: c_int) -> Status {
    call_initialized(c"cuDevicePrimaryCtxRetain", |state| {
        let device = find(state, device)?;
        // SAFETY: the caller's pointer, as in the driver.
        unsafe { write(context, number(device)) }?;
        state.devices[device].retained += 1;
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuDevicePrimaryCtxRelease_v2(device: c_int) -> Status {
    call_initialized(c"cuDevicePrimaryCtxRelease_v2", |state| {
        let device = find(state, device)?;
        let retained = &mut state.devices[device].retained;
        *retained = retained.checked_sub(1).ok_or(INVALID_CONTEXT)?;
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuCtxPushCurrent_v2(context: *mut c_void) -> Status {
    call_initialized(c"cuCtxPushCurrent_v2", |state| {
        let device = context.addr().checked_sub(FIRST).filter(|&device| is_live(state, device));
        let device = device.ok_or(INVALID_CONTEXT)?;
        CONTEXTS.with_borrow_mut(|contexts| contexts.push(device));
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuCtxPopCurrent_v2(context: *mut *mut c_void) -> Status {
    call_initialized(c"cuCtxPopCurrent_v2", |_| {
        let popped = CONTEXTS.with_borrow_mut(Vec::pop).ok_or(INVALID_CONTEXT)?;
        // SAFETY: the caller's pointer, as in the driver.
        unsafe { write(context, number(popped)) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuCtxGetCurrent(context: *mut *mut c_void) -> Status {
    call_initialized(c"cuCtxGetCurrent", |_| {
        let current = CONTEXTS.with_borrow(|contexts| contexts.last().copied());
        // SAFETY: the caller's pointer, as in the driver.
        unsafe { write(context, current.map_or(std::ptr::null_mut(), number)) }
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuCtxSynchronize() -> Status {
    call_initialized(c"cuCtxSynchronize", |state| {
        state.current()?;
        state.streams.synchronize();
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuCtxGetStreamPriorityRange(least: *mut c_int, greatest: *mut c_int) -> Status {
    call_initialized(c"cuCtxGetStreamPriorityRange", |state| {
        state.current()?;
        // SAFETY: the caller's pointers, as in the driver.
        unsafe { write(least, 0).and_then(|()| write(greatest, -5)) }
    })
}

fn is_live(state: &State, device: usize) -> bool {
    state.devices.get(device).is_some_and(|device| device.retained > 0)
}

fn number(device: usize) -> *mut c_void {
    std::ptr::without_provenance_mut(FIRST + device)
}

//! Results of calls, with their names and texts.

use std::ffi::{CStr, c_char, c_uint};

pub(crate) type Status = c_uint;

pub(crate) const SUCCESS: Status = 0;
pub(crate) const INVALID_VALUE: Status = 1;
pub(crate) const OUT_OF_MEMORY: Status = 2;
pub(crate) const NOT_INITIALIZED: Status = 3;
pub(crate) const NO_DEVICE: Status = 100;
pub(crate) const INVALID_DEVICE: Status = 101;
pub(crate) const INVALID_CONTEXT: Status = 201;
pub(crate) const INVALID_HANDLE: Status = 400;
pub(crate) const NOT_READY: Status = 600;
pub(crate) const NOT_SUPPORTED: Status = 801;

const TEXTS: [(Status, &CStr, &CStr); 12] = [
    (SUCCESS, c"CUDA_SUCCESS", c"no error"),
    (INVALID_VALUE, c"CUDA_ERROR_INVALID_VALUE", c"invalid argument"),
    (OUT_OF_MEMORY, c"CUDA_ERROR_OUT_OF_MEMORY", c"out of memory"),
    (NOT_INITIALIZED, c"CUDA_ERROR_NOT_INITIALIZED", c"initialization error"),
    (4, c"CUDA_ERROR_DEINITIALIZED", c"driver shutting down"),
    (NO_DEVICE, c"CUDA_ERROR_NO_DEVICE", c"no CUDA-capable device is detected"),
    (INVALID_DEVICE, c"CUDA_ERROR_INVALID_DEVICE", c"invalid device ordinal"),
    (INVALID_CONTEXT, c"CUDA_ERROR_INVALID_CONTEXT", c"invalid device context"),
    (INVALID_HANDLE, c"CUDA_ERROR_INVALID_HANDLE", c"invalid resource handle"),
    (NOT_READY, c"CUDA_ERROR_NOT_READY", c"device not ready"),
    (NOT_SUPPORTED, c"CUDA_ERROR_NOT_SUPPORTED", c"operation not supported"),
    (999, c"CUDA_ERROR_UNKNOWN", c"unknown error"),
];

#[unsafe(no_mangle)]
unsafe extern "C" fn cuGetErrorName(status: Status, text: *mut *const c_char) -> Status {
    // SAFETY: the caller's pointer, as in the driver.
    unsafe { look_up(status, text, |(_, name, _)| name) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuGetErrorString(status: Status, text: *mut *const c_char) -> Status {
    // SAFETY: the caller's pointer, as in the driver.
    unsafe { look_up(status, text, |(_, _, description)| description) }
}

/// # Safety
/// `text` may be written to.
unsafe fn look_up(
    status: Status,
    text: *mut *const c_char,
    which: impl Fn((Status, &'static CStr, &'static CStr)) -> &'static CStr,
) -> Status {
    match TEXTS.into_iter().find(|(known, ..)| *known == status) {
        Some(entry) => {
            // SAFETY: the caller vouches for the pointer.
            unsafe { text.write(which(entry).as_ptr()) };
            SUCCESS
        }
        None => INVALID_VALUE,
    }
}

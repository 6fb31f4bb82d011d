//! The memory layout of NumPy's handler structures (NEP 49).

use std::ffi::{CStr, c_char, c_void};

/// The name that NumPy requires for a handler's capsule.
pub(super) const CAPSULE: &CStr = c"mem_handler";

/// NumPy's `PyDataMemAllocator`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Functions {
    pub(super) ctx: *mut c_void,
    pub(super) malloc: unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void,
    pub(super) calloc: unsafe extern "C" fn(*mut c_void, usize, usize) -> *mut c_void,
    pub(super) realloc: unsafe extern "C" fn(*mut c_void, *mut c_void, usize) -> *mut c_void,
    pub(super) free: unsafe extern "C" fn(*mut c_void, *mut c_void, usize),
}

/// NumPy's `PyDataMem_Handler`, version 1.
#[repr(C)]
pub(super) struct Handler {
    name: [c_char; 127],
    pub(super) version: u8,
    pub(super) functions: Functions,
}

const _: () = assert!(size_of::<Handler>() == 168 && std::mem::offset_of!(Handler, functions) == 128);

impl Handler {
    /// The version with this layout.
    pub(super) const VERSION: u8 = 1;

    /// Creates a handler that NumPy displays under `name`.
    pub(super) const fn new(name: &CStr, functions: Functions) -> Self {
        let from = name.to_bytes();
        let mut name = [0; 127];
        let mut at = 0;
        // The last byte stays the terminator.
        while at < from.len() && at < 126 {
            name[at] = from[at].cast_signed();
            at += 1;
        }
        Self { name, version: Self::VERSION, functions }
    }
}

//! The table of functions through which code of C or C++ takes memory for a guest.
//!
//! `integrations/pyarrow_pool.cc` declares the same structure. An added function goes to the end.

#![allow(unsafe_code)]

use std::ffi::{c_char, c_void};
use std::ptr;

use super::memory::{Guest, last_refusal};

/// The functions; the guest of the first argument is that of `GuestMemory.address`.
#[repr(C)]
struct Functions {
    /// See [`Guest::allocate`].
    allocate: extern "C" fn(&Guest, bytes: usize, alignment: usize) -> *mut c_void,
    /// See [`Guest::resize_in_place`].
    resize_in_place: extern "C" fn(&Guest, data: *mut c_void, bytes: usize) -> bool,
    /// See [`Guest::free`].
    free: unsafe extern "C" fn(&Guest, data: *mut c_void),
    /// See [`last_refusal`].
    last_refusal: extern "C" fn() -> *const c_char,
}

static FUNCTIONS: Functions = Functions { allocate, resize_in_place, free, last_refusal: refusal };

/// Returns the address of the table, which lives as long as the process.
pub(super) fn address() -> usize {
    ptr::from_ref(&FUNCTIONS).expose_provenance()
}

extern "C" fn allocate(guest: &Guest, bytes: usize, alignment: usize) -> *mut c_void {
    guest.allocate(bytes, alignment)
}

extern "C" fn resize_in_place(guest: &Guest, data: *mut c_void, bytes: usize) -> bool {
    guest.resize_in_place(data, bytes)
}

unsafe extern "C" fn free(guest: &Guest, data: *mut c_void) {
    // SAFETY: the caller passes data of `allocate` that is not in use any more.
    unsafe { guest.free(data) };
}

extern "C" fn refusal() -> *const c_char {
    last_refusal()
}

//! Two functions of C as an allocator that is measured.

#![allow(unsafe_code)]

use std::ffi::c_void;
use std::mem;
use std::ptr;

use super::Player;

type Allocate = unsafe extern "C" fn(bytes: usize) -> *mut c_void;
type Free = unsafe extern "C" fn(data: *mut c_void);

/// A function like `malloc`, and the one that frees what it returns.
pub(super) struct Functions {
    allocate: Allocate,
    free: Free,
}

impl Functions {
    /// Returns the functions at two addresses; `None` if one of them is 0.
    pub(super) fn at(allocate: usize, free: usize) -> Option<Self> {
        if allocate == 0 || free == 0 {
            return None;
        }
        let (allocate, free) =
            (ptr::with_exposed_provenance::<()>(allocate), ptr::with_exposed_provenance::<()>(free));
        // SAFETY: the caller in Python passes addresses of functions with these signatures, as the docstring demands.
        Some(unsafe {
            Self {
                allocate: mem::transmute::<*const (), Allocate>(allocate),
                free: mem::transmute::<*const (), Free>(free),
            }
        })
    }
}

impl Player for Functions {
    fn allocate(&self, bytes: u64) -> Option<u64> {
        let bytes = usize::try_from(bytes).ok()?;
        // SAFETY: any thread may call the function with any number of bytes.
        let data = unsafe { (self.allocate)(bytes) };
        // For no bytes a null pointer is no refusal.
        (!data.is_null() || bytes == 0).then_some(data.expose_provenance() as u64)
    }

    fn free(&self, address: u64) {
        let Ok(address) = usize::try_from(address) else { return };
        // SAFETY: the address is one that the other function returned, and it is freed once.
        unsafe { (self.free)(ptr::with_exposed_provenance_mut(address)) };
    }
}

//! The handler of a context: four functions over one pool, and the capsule that owns them.
//!
//! An array keeps a reference to the capsule of the handler that made its data, and frees through it, on any
//! thread, whatever is installed by then. So everything a handler needs lives in its capsule, and goes with it.
//!
//! ```text
//! array ──→ capsule "mem_handler" ──→ Memory { Handler { …, ctx ─┐ }, the pool }
//!                                       ↑────────────────────────┘
//! ```
//!
//! In a forked child the pool is the parent's. A handler that has NumPy's own functions to fall back on then uses
//! them, and leaves alone what lies in a region: no address of theirs does.

#![allow(unsafe_code)]

use std::ffi::c_void;
use std::ptr;

use allotment::{FreeError, Unusable};
use allotment_host::end_of_region;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use super::abi::{CAPSULE, Functions, Handler};
use super::memory::{self, Home, Resized, Taken};
use super::refused;

/// A handler and what it works on; `handler` first, because the capsule's pointer is read as one.
#[repr(C)]
struct Memory {
    handler: Handler,
    home: Home,
    /// What serves a forked child.
    in_child: Option<Functions>,
}

/// A capsule that owns a handler over a pool.
pub(super) fn capsule(py: Python<'_>, home: Home, in_child: Option<Functions>) -> PyResult<Py<PyCapsule>> {
    let functions = Functions { ctx: ptr::null_mut(), malloc, calloc, realloc, free };
    let handler = Handler::new(c"allotment", functions);
    let memory = Box::into_raw(Box::new(Memory { handler, home, in_child }));
    // SAFETY: `memory` is a live box; the capsule owns it from here on and `drop_memory` frees it once.
    unsafe {
        (*memory).handler.functions.ctx = memory.cast();
        let made = ffi::PyCapsule_New(memory.cast(), CAPSULE.as_ptr(), Some(drop_memory));
        if made.is_null() {
            drop(Box::from_raw(memory));
            return Err(PyErr::fetch(py));
        }
        Ok(Bound::from_owned_ptr(py, made).cast_into::<PyCapsule>()?.unbind())
    }
}

/// The capsule's destructor: no array made through the handler is left.
unsafe extern "C" fn drop_memory(capsule: *mut ffi::PyObject) {
    // SAFETY: called by the interpreter once, with a capsule made by `capsule` above.
    unsafe {
        let memory = ffi::PyCapsule_GetPointer(capsule, CAPSULE.as_ptr()).cast::<Memory>();
        if !memory.is_null() {
            drop(Box::from_raw(memory));
        }
    }
}

/// What is behind a handler's context.
///
/// # Safety
/// `ctx` is the context of a live handler: NumPy passes what the handler says, and keeps its capsule.
unsafe fn memory_of<'a>(ctx: *mut c_void) -> &'a Memory {
    // SAFETY: the caller's promise.
    unsafe { &*ctx.cast::<Memory>() }
}

unsafe extern "C" fn malloc(ctx: *mut c_void, bytes: usize) -> *mut c_void {
    // SAFETY: called by NumPy with the handler's context.
    let memory = unsafe { memory_of(ctx) };
    memory.home.take_kept(bytes).unwrap_or_else(|| take(memory, bytes))
}

// Not where it is called, and without unwinding: what that takes would be put aside for kept data, too.
#[inline(never)]
extern "C" fn take(memory: &Memory, bytes: usize) -> *mut c_void {
    match memory.home.take(bytes) {
        Taken::Data(data) => data,
        Taken::Refused => ptr::null_mut(),
        // SAFETY: NumPy's own functions, called as NumPy calls this one.
        Taken::Forked => unsafe { in_child(memory, |f| (f.malloc)(f.ctx, bytes)) },
    }
}

unsafe extern "C" fn calloc(ctx: *mut c_void, count: usize, each: usize) -> *mut c_void {
    let Some(bytes) = count.checked_mul(each) else { return ptr::null_mut() };
    // SAFETY: called by NumPy with the handler's context.
    let memory = unsafe { memory_of(ctx) };
    if let Some(data) = memory.home.take_kept(bytes) {
        // SAFETY: of at least this many bytes, and nobody else's.
        unsafe { data.cast::<u8>().write_bytes(0, bytes) };
        return data;
    }
    take_cleared(memory, count, each, bytes)
}

#[inline(never)]
extern "C" fn take_cleared(memory: &Memory, count: usize, each: usize, bytes: usize) -> *mut c_void {
    match memory.home.take(bytes) {
        Taken::Data(data) => {
            // SAFETY: the pool handed out at least this many bytes of host memory, to nobody else.
            unsafe { memory::clear(data, bytes) };
            data
        }
        Taken::Refused => ptr::null_mut(),
        // SAFETY: NumPy's own functions, called as NumPy calls this one.
        Taken::Forked => unsafe { in_child(memory, |f| (f.calloc)(f.ctx, count, each)) },
    }
}

unsafe extern "C" fn realloc(ctx: *mut c_void, data: *mut c_void, bytes: usize) -> *mut c_void {
    // SAFETY: called by NumPy with the handler's context, and data that this handler made, or null.
    unsafe {
        if data.is_null() {
            return malloc(ctx, bytes);
        }
        let memory = memory_of(ctx);
        match memory.home.resize(data, bytes) {
            Resized::InPlace => data,
            Resized::Short(held) => memory.home.grow(data, held, bytes),
            Resized::Unknown => in_child(memory, |original| {
                if end_of_region(data.expose_provenance() as u64).is_some() {
                    memory::move_out(original, data, bytes)
                } else {
                    (original.realloc)(original.ctx, data, bytes)
                }
            }),
        }
    }
}

unsafe extern "C" fn free(ctx: *mut c_void, data: *mut c_void, bytes: usize) {
    // SAFETY: called by NumPy with the handler's context, and data that this handler made.
    unsafe {
        let memory = memory_of(ctx);
        if !memory.home.keep(data) {
            give_back(memory, data, bytes);
        }
    }
}

/// The size is a hint that NumPy gets wrong in places; the pool knows its own.
///
/// # Safety
/// `data` was made by the handler, and is no longer used.
// Not where it is called, as above.
#[inline(never)]
unsafe extern "C" fn give_back(memory: &Memory, data: *mut c_void, bytes: usize) {
    let freed = memory.home.give_back(data);
    if let Err(FreeError::Unusable(Unusable::Forked)) = freed
        && let Some(original) = &memory.in_child
        && end_of_region(data.expose_provenance() as u64).is_none()
    {
        // SAFETY: in a forked child, what lies in no region was made by NumPy's own functions.
        unsafe { (original.free)(original.ctx, data, bytes) };
    }
}

/// Does in a forked child what the pool cannot; null where there is nobody to do it.
fn in_child(memory: &Memory, work: impl FnOnce(&Functions) -> *mut c_void) -> *mut c_void {
    let Some(original) = &memory.in_child else { return ptr::null_mut() };
    refused::forget();
    work(original)
}

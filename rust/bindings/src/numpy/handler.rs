//! The handler of a context: four functions over one pool, and the capsule that owns them.
//!
//! An array references the capsule of the handler that made its data and frees through it, on any thread, whichever
//! handler is installed by then. So the capsule owns everything that the handler needs.
//!
//! ```text
//! array ──→ capsule "mem_handler" ──→ Memory { Handler { …, ctx ─┐ }, the pool }
//!                                       ↑────────────────────────┘
//! ```
//!
//! In a forked child the pool belongs to the parent. A handler with a fallback then uses NumPy's own functions, and
//! leaves data inside a region alone: NumPy's own data is never there.

#![allow(unsafe_code)]

use std::ffi::c_void;
use std::ptr;

use allotment::{FreeError, Unusable};
use allotment_host::end_of_region;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use super::abi::{CAPSULE, Functions, Handler};
use super::last_error;
use super::memory::{self, AllocationOutcome, Backend, ResizeOutcome};

/// A handler and its backend; `handler` comes first, because NumPy reads the capsule's pointer as one.
#[repr(C)]
struct Memory {
    handler: Handler,
    backend: Backend,
    /// NumPy's own functions for a forked child; `None` without a fallback.
    in_child: Option<Functions>,
}

/// Creates a capsule that owns a handler over a pool.
pub(super) fn capsule(
    py: Python<'_>,
    backend: Backend,
    in_child: Option<Functions>,
) -> PyResult<Py<PyCapsule>> {
    let functions = Functions { ctx: ptr::null_mut(), malloc, calloc, realloc, free };
    let handler = Handler::new(c"allotment", functions);
    let memory = Box::into_raw(Box::new(Memory { handler, backend, in_child }));
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

/// Destroys the capsule; no array made through the handler exists any more.
unsafe extern "C" fn drop_memory(capsule: *mut ffi::PyObject) {
    // SAFETY: called by the interpreter once, with a capsule made by `capsule` above.
    unsafe {
        let memory = ffi::PyCapsule_GetPointer(capsule, CAPSULE.as_ptr()).cast::<Memory>();
        if !memory.is_null() {
            drop(Box::from_raw(memory));
        }
    }
}

/// Returns the handler of a context pointer.
///
/// # Safety
/// `ctx` is the context of a live handler: NumPy passes the handler's own context and keeps its capsule.
unsafe fn memory_of<'a>(ctx: *mut c_void) -> &'a Memory {
    // SAFETY: guaranteed by the caller.
    unsafe { &*ctx.cast::<Memory>() }
}

unsafe extern "C" fn malloc(ctx: *mut c_void, bytes: usize) -> *mut c_void {
    // SAFETY: called by NumPy with the handler's context.
    let memory = unsafe { memory_of(ctx) };
    memory.backend.take_cached(bytes).unwrap_or_else(|| take(memory, bytes))
}

// Not inlined and without unwinding: its registers would be saved on the cached path, too.
#[inline(never)]
extern "C" fn take(memory: &Memory, bytes: usize) -> *mut c_void {
    match memory.backend.take(bytes) {
        AllocationOutcome::Data(data) => data,
        AllocationOutcome::Refused => ptr::null_mut(),
        // SAFETY: NumPy's own functions, called as NumPy calls this one.
        AllocationOutcome::Forked => unsafe { in_child(memory, |f| (f.malloc)(f.ctx, bytes)) },
    }
}

unsafe extern "C" fn calloc(ctx: *mut c_void, count: usize, each: usize) -> *mut c_void {
    let Some(bytes) = count.checked_mul(each) else { return ptr::null_mut() };
    // SAFETY: called by NumPy with the handler's context.
    let memory = unsafe { memory_of(ctx) };
    if let Some(data) = memory.backend.take_cached(bytes) {
        // SAFETY: the data has at least this many bytes and no other user.
        unsafe { data.cast::<u8>().write_bytes(0, bytes) };
        return data;
    }
    take_cleared(memory, count, each, bytes)
}

#[inline(never)]
extern "C" fn take_cleared(memory: &Memory, count: usize, each: usize, bytes: usize) -> *mut c_void {
    match memory.backend.take(bytes) {
        AllocationOutcome::Data(data) => {
            // SAFETY: the pool allocated at least this many bytes of host memory, with no other user.
            unsafe { memory::clear(data, bytes) };
            data
        }
        AllocationOutcome::Refused => ptr::null_mut(),
        // SAFETY: NumPy's own functions, called as NumPy calls this one.
        AllocationOutcome::Forked => unsafe { in_child(memory, |f| (f.calloc)(f.ctx, count, each)) },
    }
}

unsafe extern "C" fn realloc(ctx: *mut c_void, data: *mut c_void, bytes: usize) -> *mut c_void {
    // SAFETY: called by NumPy with the handler's context, and data that this handler made, or null.
    unsafe {
        if data.is_null() {
            return malloc(ctx, bytes);
        }
        let memory = memory_of(ctx);
        match memory.backend.resize(data, bytes) {
            ResizeOutcome::InPlace => data,
            ResizeOutcome::Short(held) => memory.backend.grow(data, held, bytes),
            ResizeOutcome::Unknown => in_child(memory, |original| {
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
        if !memory.backend.cache(data) {
            give_back(memory, data, bytes);
        }
    }
}

/// Frees data. NumPy's size argument is wrong in some places; the pool knows the size.
///
/// # Safety
/// `data` was made by the handler, and is no longer used.
// Not inlined, as above.
#[inline(never)]
unsafe extern "C" fn give_back(memory: &Memory, data: *mut c_void, bytes: usize) {
    let freed = memory.backend.give_back(data);
    if let Err(FreeError::Unusable(Unusable::Forked)) = freed
        && let Some(original) = &memory.in_child
        && end_of_region(data.expose_provenance() as u64).is_none()
    {
        // SAFETY: in a forked child, data outside of all regions was made by NumPy's own functions.
        unsafe { (original.free)(original.ctx, data, bytes) };
    }
}

/// Serves a call in a forked child with NumPy's own functions; returns null without a fallback.
fn in_child(memory: &Memory, work: impl FnOnce(&Functions) -> *mut c_void) -> *mut c_void {
    let Some(original) = &memory.in_child else { return ptr::null_mut() };
    last_error::clear();
    work(original)
}

//! The handler of the whole process: NumPy's default capsule points to it once a pool was installed process-wide.
//!
//! NumPy gives one capsule to every context without its own handler, so all threads follow the pointer in it. So do
//! earlier arrays: their data is freed here. Data outside of all host regions goes to NumPy's own functions; other
//! data goes to its pool.
//!
//! One lock orders installations and their ends: each reads the state and then changes the list, the serving pool and
//! the pointer in the capsule. Requests and frees take no lock; they read one atomic pointer.
//!
//! The change is permanent, because data of a pool may live as long as the process. After the end of serving, new
//! data comes from NumPy's own functions, and existing data stays valid.

#![allow(unsafe_code)]

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use allotment_host::end_of_region;
use allotment_sync::PerProcess;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;

use super::abi::{Functions, Handler};
use super::last_error;
use super::memory::{self, AllocationOutcome, Backend, ResizeOutcome};
use super::numpy_api::NumpyApi;

/// A pool that serves or has served the process; never dropped, as its data may live as long as the process.
struct ServedPool {
    backend: Backend,
    next: Option<&'static ServedPool>,
}

/// Held while a thread changes the statics below. Per process: a thread that a forked child does not have may hold it.
static CHANGING: PerProcess<Mutex<()>> = PerProcess::new(Mutex::new(()), Mutex::default);
/// All such pools, the latest first. Written under `CHANGING`, read by any thread.
static SERVED: AtomicPtr<ServedPool> = AtomicPtr::new(ptr::null_mut());
/// The pool that serves now; null for none. Written under `CHANGING`, read by any thread.
static SERVING: AtomicPtr<ServedPool> = AtomicPtr::new(ptr::null_mut());

/// The targets of the default capsule, while a pool serves and afterwards: they differ in the name that NumPy
/// displays.
struct HandlerPair {
    serving: Handler,
    idle: Handler,
}

// SAFETY: its contexts point to functions that live as long as the process.
unsafe impl Send for HandlerPair {}
// SAFETY: as above.
unsafe impl Sync for HandlerPair {}

fn change(py: Python<'_>) -> MutexGuard<'static, ()> {
    CHANGING.get().lock_py_attached(py).unwrap_or_else(PoisonError::into_inner)
}

/// Serves all threads from a pool; returns false, without any change, if a pool serves them already.
///
/// # Errors
/// If NumPy's default capsule was changed by other code.
pub(super) fn serve(py: Python<'_>, api: &'static NumpyApi, backend: &Backend) -> PyResult<bool> {
    let _changing = change(py);
    if serving().is_some() {
        return Ok(false);
    }
    let served = entry(backend);
    SERVING.store(ptr::from_ref(served).cast_mut(), Ordering::Release);
    let replaced = api.replace_default(py, &handler_pair(api).serving);
    if replaced.is_err() {
        SERVING.store(ptr::null_mut(), Ordering::Release);
    }
    replaced.map(|()| true)
}

/// Ends serving; returns whether a pool served.
///
/// # Errors
/// As [`serve`].
pub(super) fn stop(py: Python<'_>, api: &'static NumpyApi) -> PyResult<bool> {
    let _changing = change(py);
    let served = !SERVING.swap(ptr::null_mut(), Ordering::AcqRel).is_null();
    if served {
        api.replace_default(py, &handler_pair(api).idle)?;
    }
    Ok(served)
}

/// Returns whether a pool serves the process.
pub(super) fn is_serving() -> bool {
    serving().is_some()
}

fn handler_pair(api: &'static NumpyApi) -> &'static HandlerPair {
    static PAIR: std::sync::OnceLock<HandlerPair> = std::sync::OnceLock::new();
    PAIR.get_or_init(|| {
        let ctx = ptr::from_ref(api.original()).cast_mut().cast();
        let functions = Functions { ctx, malloc, calloc, realloc, free };
        HandlerPair {
            serving: Handler::new(c"allotment", functions),
            idle: Handler::new(c"default_allocator", functions),
        }
    })
}

/// Returns the list entry of a pool; creates it if there is none. The caller holds `CHANGING`.
fn entry(backend: &Backend) -> &'static ServedPool {
    if let Some(there) = all().find(|served| Arc::ptr_eq(&served.backend.pool, &backend.pool)) {
        return there;
    }
    let next = all().next();
    let new: &'static ServedPool = Box::leak(Box::new(ServedPool { backend: backend.clone(), next }));
    SERVED.store(ptr::from_ref(new).cast_mut(), Ordering::Release);
    new
}

fn all() -> impl Iterator<Item = &'static ServedPool> {
    // SAFETY: null or leaked.
    let first = unsafe { SERVED.load(Ordering::Acquire).as_ref() };
    std::iter::successors(first, |served| served.next)
}

/// Returns the pool that serves now.
#[inline]
fn serving() -> Option<&'static ServedPool> {
    // SAFETY: null or leaked.
    unsafe { SERVING.load(Ordering::Acquire).as_ref() }
}

/// Allocates from the serving pool; `None` means that NumPy's own functions must serve the request.
fn take(bytes: usize) -> Option<AllocationOutcome> {
    let taken = serving()?.backend.take(bytes);
    if let AllocationOutcome::Forked = taken {
        last_error::clear();
        return None;
    }
    Some(taken)
}

fn is_in_a_region(data: *mut c_void) -> bool {
    end_of_region(data.expose_provenance() as u64).is_some()
}

/// Returns NumPy's own functions.
///
/// # Safety
/// `ctx` is the context of one of the handlers in `HandlerPair`.
unsafe fn original<'a>(ctx: *mut c_void) -> &'a Functions {
    // SAFETY: guaranteed by the caller.
    unsafe { &*ctx.cast::<Functions>() }
}

unsafe extern "C" fn malloc(ctx: *mut c_void, bytes: usize) -> *mut c_void {
    if let Some(data) = serving().and_then(|served| served.backend.take_cached(bytes)) {
        return data;
    }
    // SAFETY: same contract as this function.
    unsafe { malloc_new(ctx, bytes) }
}

// Not inlined: its registers would be saved on the cached path, too.
#[inline(never)]
unsafe extern "C" fn malloc_new(ctx: *mut c_void, bytes: usize) -> *mut c_void {
    match take(bytes) {
        Some(AllocationOutcome::Data(data)) => data,
        Some(_) => ptr::null_mut(),
        // SAFETY: called by NumPy with the handler's context, as it calls its own functions.
        None => unsafe {
            let original = original(ctx);
            (original.malloc)(original.ctx, bytes)
        },
    }
}

unsafe extern "C" fn calloc(ctx: *mut c_void, count: usize, each: usize) -> *mut c_void {
    let Some(bytes) = count.checked_mul(each) else { return ptr::null_mut() };
    if let Some(data) = serving().and_then(|served| served.backend.take_cached(bytes)) {
        // SAFETY: the data has at least this many bytes and no other user.
        unsafe { data.cast::<u8>().write_bytes(0, bytes) };
        return data;
    }
    // SAFETY: same contract as this function.
    unsafe { calloc_new(ctx, count, each, bytes) }
}

#[inline(never)]
unsafe extern "C" fn calloc_new(ctx: *mut c_void, count: usize, each: usize, bytes: usize) -> *mut c_void {
    match take(bytes) {
        Some(AllocationOutcome::Data(data)) => {
            // SAFETY: the pool allocated at least this many bytes of host memory, with no other user.
            unsafe { memory::clear(data, bytes) };
            data
        }
        Some(_) => ptr::null_mut(),
        // SAFETY: called by NumPy with the handler's context, as it calls its own functions.
        None => unsafe {
            let original = original(ctx);
            (original.calloc)(original.ctx, count, each)
        },
    }
}

unsafe extern "C" fn realloc(ctx: *mut c_void, data: *mut c_void, bytes: usize) -> *mut c_void {
    // SAFETY: called by NumPy with the handler's context, and data of its own functions, of a pool, or null.
    unsafe {
        if data.is_null() {
            return malloc(ctx, bytes);
        }
        let original = original(ctx);
        if !is_in_a_region(data) {
            return (original.realloc)(original.ctx, data, bytes);
        }
        for served in all() {
            match served.backend.resize(data, bytes) {
                ResizeOutcome::InPlace => return data,
                ResizeOutcome::Short(held) => return served.backend.grow(data, held, bytes),
                ResizeOutcome::Unknown => {}
            }
        }
        // Only in a forked child can data in a region be unknown to all pools.
        memory::move_out(original, data, bytes)
    }
}

unsafe extern "C" fn free(ctx: *mut c_void, data: *mut c_void, bytes: usize) {
    // The most common case first: small data of the latest pool.
    if !all().next().is_some_and(|latest| latest.backend.cache(data)) {
        // SAFETY: same contract as this function.
        unsafe { give_back(ctx, data, bytes) };
    }
}

// Not inlined, as above.
#[inline(never)]
unsafe extern "C" fn give_back(ctx: *mut c_void, data: *mut c_void, bytes: usize) {
    if is_in_a_region(data) {
        // In a forked child no pool accepts it: it is the parent's.
        all().find(|served| served.backend.give_back(data).is_ok());
        return;
    }
    // SAFETY: called by NumPy with the handler's context, and data of its own functions with its size.
    unsafe {
        let original = original(ctx);
        (original.free)(original.ctx, data, bytes);
    }
}

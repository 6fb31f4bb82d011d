//! The handler of the whole process: what NumPy's default capsule points to once a pool was installed that way.
//!
//! NumPy hands one capsule to every context without a handler of its own, so all threads, past and future, follow
//! what it points to. Arrays made before do, too: their data comes here to be freed. What lies in no region of host
//! memory goes to NumPy's own functions; what does, to the pool that has it.
//!
//! It is never undone, because data of a pool may be live for as long as the process: from the end of serving on,
//! new data comes from NumPy's own functions, and the rest stays as it is.

#![allow(unsafe_code)]

use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, Ordering};

use allotment_host::end_of_region;
use pyo3::prelude::*;

use super::abi::{Functions, Handler};
use super::door::Door;
use super::memory::{self, Home, Resized, Taken};
use super::refused;

/// A pool that serves, or has served, the process; never dropped, as its data may outlive everything.
struct Served {
    home: Home,
    next: Option<&'static Served>,
}

/// All of them, the latest first. Changed by who is attached to the interpreter, read by anybody.
static SERVED: AtomicPtr<Served> = AtomicPtr::new(ptr::null_mut());
/// The one that serves now; null for none.
static SERVING: AtomicPtr<Served> = AtomicPtr::new(ptr::null_mut());

/// What the default capsule points to while a pool serves, and afterwards: they differ in the name that NumPy shows.
struct Pair {
    serving: Handler,
    idle: Handler,
}

// SAFETY: the contexts in it point to functions that live as long as the process.
unsafe impl Send for Pair {}
// SAFETY: as above.
unsafe impl Sync for Pair {}

/// Serves every thread from a pool, from now on.
///
/// # Errors
/// When NumPy's default capsule is not what it was.
pub(super) fn serve(py: Python<'_>, door: &'static Door, home: &Home) -> PyResult<()> {
    let served = entry(home);
    SERVING.store(ptr::from_ref(served).cast_mut(), Ordering::Release);
    let replaced = door.replace_default(py, &pair(door).serving);
    if replaced.is_err() {
        SERVING.store(ptr::null_mut(), Ordering::Release);
    }
    replaced
}

/// Ends serving; says whether a pool served.
///
/// # Errors
/// As [`serve`].
pub(super) fn stop(py: Python<'_>, door: &'static Door) -> PyResult<bool> {
    let served = !SERVING.swap(ptr::null_mut(), Ordering::AcqRel).is_null();
    if served {
        door.replace_default(py, &pair(door).idle)?;
    }
    Ok(served)
}

/// Whether a pool serves the process.
pub(super) fn is_serving() -> bool {
    !SERVING.load(Ordering::Acquire).is_null()
}

fn pair(door: &'static Door) -> &'static Pair {
    static PAIR: std::sync::OnceLock<Pair> = std::sync::OnceLock::new();
    PAIR.get_or_init(|| {
        let ctx = ptr::from_ref(door.original()).cast_mut().cast();
        let functions = Functions { ctx, malloc, calloc, realloc, free };
        Pair {
            serving: Handler::new(c"allotment", functions),
            idle: Handler::new(c"default_allocator", functions),
        }
    })
}

/// The list's entry for a pool, made if there is none.
fn entry(home: &Home) -> &'static Served {
    if let Some(there) = all().find(|served| Arc::ptr_eq(&served.home.pool, &home.pool)) {
        return there;
    }
    let next = all().next();
    let new: &'static Served = Box::leak(Box::new(Served { home: home.clone(), next }));
    SERVED.store(ptr::from_ref(new).cast_mut(), Ordering::Release);
    new
}

fn all() -> impl Iterator<Item = &'static Served> {
    // SAFETY: null or leaked.
    let first = unsafe { SERVED.load(Ordering::Acquire).as_ref() };
    std::iter::successors(first, |served| served.next)
}

/// The pool that serves.
#[inline]
fn serving() -> Option<&'static Served> {
    // SAFETY: null or leaked.
    unsafe { SERVING.load(Ordering::Acquire).as_ref() }
}

/// Takes memory from the pool that serves; `None`: it is for NumPy's own functions to do.
fn take(bytes: usize) -> Option<Taken> {
    let taken = serving()?.home.take(bytes);
    if let Taken::Forked = taken {
        refused::forget();
        return None;
    }
    Some(taken)
}

fn is_in_a_region(data: *mut c_void) -> bool {
    end_of_region(data.expose_provenance() as u64).is_some()
}

/// NumPy's own functions.
///
/// # Safety
/// `ctx` is the context of one of the pair.
unsafe fn original<'a>(ctx: *mut c_void) -> &'a Functions {
    // SAFETY: the caller's promise.
    unsafe { &*ctx.cast::<Functions>() }
}

unsafe extern "C" fn malloc(ctx: *mut c_void, bytes: usize) -> *mut c_void {
    if let Some(data) = serving().and_then(|served| served.home.take_kept(bytes)) {
        return data;
    }
    // SAFETY: as this.
    unsafe { malloc_new(ctx, bytes) }
}

// Not where it is called: what it takes would be put aside for kept data, too.
#[inline(never)]
unsafe extern "C" fn malloc_new(ctx: *mut c_void, bytes: usize) -> *mut c_void {
    match take(bytes) {
        Some(Taken::Data(data)) => data,
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
    if let Some(data) = serving().and_then(|served| served.home.take_kept(bytes)) {
        // SAFETY: of at least this many bytes, and nobody else's.
        unsafe { data.cast::<u8>().write_bytes(0, bytes) };
        return data;
    }
    // SAFETY: as this.
    unsafe { calloc_new(ctx, count, each, bytes) }
}

#[inline(never)]
unsafe extern "C" fn calloc_new(ctx: *mut c_void, count: usize, each: usize, bytes: usize) -> *mut c_void {
    match take(bytes) {
        Some(Taken::Data(data)) => {
            // SAFETY: the pool handed out at least this many bytes of host memory, to nobody else.
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
            match served.home.resize(data, bytes) {
                Resized::InPlace => return data,
                Resized::Short(held) => return served.home.grow(data, held, bytes),
                Resized::Unknown => {}
            }
        }
        // Only in a forked child does a region have data that no pool answers for.
        memory::move_out(original, data, bytes)
    }
}

unsafe extern "C" fn free(ctx: *mut c_void, data: *mut c_void, bytes: usize) {
    // First what is most: small data of the pool that came last.
    if !all().next().is_some_and(|latest| latest.home.keep(data)) {
        // SAFETY: as this.
        unsafe { give_back(ctx, data, bytes) };
    }
}

// Not where it is called, as above.
#[inline(never)]
unsafe extern "C" fn give_back(ctx: *mut c_void, data: *mut c_void, bytes: usize) {
    if is_in_a_region(data) {
        // In a forked child no pool takes it: it is the parent's.
        all().find(|served| served.home.give_back(data).is_ok());
        return;
    }
    // SAFETY: called by NumPy with the handler's context, and data of its own functions with its size.
    unsafe {
        let original = original(ctx);
        (original.free)(original.ctx, data, bytes);
    }
}

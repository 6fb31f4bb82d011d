//! NumPy's memory handler (NEP 49) over a pool: the unsafe of it, and nothing else.
//!
//! An array keeps a reference to the capsule of the handler that made its data, and frees through it, on any
//! thread, whatever is installed by then. So everything a handler needs lives in its capsule, and goes with it.
//!
//! ```text
//! array ──→ capsule "mem_handler" ──→ Memory { Handler { …, ctx ─┐ }, Arc<Pool> }
//!                                       ↑────────────────────────┘
//! ```

#![allow(unsafe_code)]

use std::cell::Cell;
use std::ffi::{CStr, c_char, c_uint, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::{Arc, OnceLock};

use allotment::{AllocError, FreeError};
use pyo3::exceptions::{PyImportError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::error::IntoPyErr;
use crate::guard::log_damage;
use crate::pool::Pool;

/// The name NumPy wants on a handler's capsule.
const CAPSULE: &CStr = c"mem_handler";

/// Slots of NumPy's table of functions, and the feature version that brought memory handlers.
const FEATURE_VERSION_SLOT: usize = 211;
const SET_HANDLER_SLOT: usize = 304;
const FIRST_FEATURE_VERSION: c_uint = 0xF;

/// NumPy's `PyDataMemAllocator`.
#[repr(C)]
struct Allocator {
    ctx: *mut c_void,
    malloc: unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void,
    calloc: unsafe extern "C" fn(*mut c_void, usize, usize) -> *mut c_void,
    realloc: unsafe extern "C" fn(*mut c_void, *mut c_void, usize) -> *mut c_void,
    free: unsafe extern "C" fn(*mut c_void, *mut c_void, usize),
}

/// NumPy's `PyDataMem_Handler`, version 1.
#[repr(C)]
struct Handler {
    name: [c_char; 127],
    version: u8,
    allocator: Allocator,
}

const _: () = assert!(size_of::<Handler>() == 168 && std::mem::offset_of!(Handler, allocator) == 128);

/// A handler and what it works on; `handler` first, because the capsule's pointer is read as one.
#[repr(C)]
struct Memory {
    handler: Handler,
    pool: Arc<allotment::Pool>,
}

thread_local! {
    /// Why the handler returned null last: NumPy's `MemoryError` has no room for it.
    static REFUSED: Cell<Option<AllocError>> = const { Cell::new(None) };
}

/// A handler over a pool, to be installed in a context (of `contextvars`).
#[pyclass(frozen, module = "allotment._core")]
pub(crate) struct ArrayMemory {
    capsule: Py<PyCapsule>,
    set_handler: SetHandler,
}

type SetHandler = unsafe extern "C" fn(*mut ffi::PyObject) -> *mut ffi::PyObject;

#[pymethods]
impl ArrayMemory {
    #[new]
    fn new(py: Python<'_>, pool: &Bound<'_, Pool>) -> PyResult<Self> {
        let pool = pool.get();
        if !pool.is_host_memory() {
            return Err(PyValueError::new_err(
                "arrays need memory of this process: the pool must have source='host' or HostMemory",
            ));
        }
        Ok(Self { set_handler: set_handler(py)?, capsule: capsule(py, pool.core())? })
    }

    /// From here on, the data of arrays made in the current context is in the pool.
    fn install(&self, py: Python<'_>) -> PyResult<()> {
        // SAFETY: attached to the interpreter; the capsule is a handler's, made by `capsule`. NumPy returns a
        // new reference to the former handler, or null with an exception set.
        unsafe {
            let former = (self.set_handler)(self.capsule.as_ptr());
            if former.is_null() {
                return Err(PyErr::fetch(py));
            }
            ffi::Py_DECREF(former);
        }
        Ok(())
    }

    /// Why a pool refused memory to an array last, on this thread; asked once for each refusal.
    #[staticmethod]
    fn take_refusal(py: Python<'_>) -> Option<PyErr> {
        REFUSED.take().map(|refused| refused.into_py_err(py))
    }
}

/// NumPy's function for installing a handler, from the table it publishes.
fn set_handler(py: Python<'_>) -> PyResult<SetHandler> {
    static FOUND: OnceLock<SetHandler> = OnceLock::new();
    if let Some(&found) = FOUND.get() {
        return Ok(found);
    }
    let table = py.import("numpy._core._multiarray_umath")?.getattr("_ARRAY_API")?;
    let table = table.cast_into::<PyCapsule>()?;
    // SAFETY: the capsule has no name and points to NumPy's table of functions, which lives as long as the
    // process. Slot 211 has had this type since NumPy 1.7; slot 304 is looked at only where the version says
    // that it is the function for installing a handler.
    unsafe {
        let slots = ffi::PyCapsule_GetPointer(table.as_ptr(), ptr::null()).cast::<*const c_void>();
        if slots.is_null() {
            return Err(PyErr::fetch(py));
        }
        let feature_version: unsafe extern "C" fn() -> c_uint =
            std::mem::transmute(*slots.add(FEATURE_VERSION_SLOT));
        let version = feature_version();
        if version < FIRST_FEATURE_VERSION {
            return Err(PyImportError::new_err(format!("NumPy's C API {version:#x} has no memory handlers")));
        }
        let found: SetHandler = std::mem::transmute(*slots.add(SET_HANDLER_SLOT));
        Ok(*FOUND.get_or_init(|| found))
    }
}

/// A capsule that owns a handler over `pool`.
fn capsule(py: Python<'_>, pool: &Arc<allotment::Pool>) -> PyResult<Py<PyCapsule>> {
    let mut name = [0; 127];
    for (to, &from) in name.iter_mut().zip(b"allotment") {
        *to = from.cast_signed();
    }
    let allocator = Allocator { ctx: ptr::null_mut(), malloc, calloc, realloc, free };
    let memory =
        Box::new(Memory { handler: Handler { name, version: 1, allocator }, pool: Arc::clone(pool) });
    let memory = Box::into_raw(memory);
    // SAFETY: `memory` is a live box; the capsule owns it from here on and `drop_memory` frees it once.
    unsafe {
        (*memory).handler.allocator.ctx = memory.cast();
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

/// The pool behind a handler's context.
///
/// # Safety
/// `ctx` is the context of a live handler: NumPy passes what the handler says, and keeps its capsule.
unsafe fn pool_of<'a>(ctx: *mut c_void) -> &'a allotment::Pool {
    // SAFETY: the caller's promise.
    unsafe { &(*ctx.cast::<Memory>()).pool }
}

/// Takes memory from the pool; null, and the reason kept, if it refuses. Never unwinds.
fn take(pool: &allotment::Pool, bytes: usize) -> *mut u8 {
    let bytes = bytes as u64;
    // A host source never needs the interpreter, so waiting for it here cannot stop whoever is asked.
    let allocate = || match pool.try_allocate(bytes, allotment::GRANULE) {
        Ok(Some(allocation)) => Ok(allocation),
        Ok(None) => pool.allocate(bytes).map_err(|mut error| {
            if let AllocError::OutOfMemory(refused) = &mut error {
                // In a forked child the text goes without.
                let _ = pool.look_into(refused);
            }
            error
        }),
        Err(error) => Err(error),
    };
    let taken = catch_unwind(AssertUnwindSafe(|| {
        loop {
            match allocate() {
                // An array that is not made could only say that memory is short, and it is not.
                Err(AllocError::Damaged(damage)) => log_damage(&pool.options().name, &damage),
                taken => return taken,
            }
        }
    }));
    match taken {
        Ok(Ok(allocation)) => pointer(allocation.address),
        Ok(Err(error)) => {
            REFUSED.set(Some(error));
            ptr::null_mut()
        }
        Err(_) => ptr::null_mut(),
    }
}

/// Gives memory back. NumPy has nobody to tell of a failure: in a forked child there is none to give, and damage is
/// told by the next call that can.
fn give_back(pool: &allotment::Pool, data: *mut c_void) {
    let _ = catch_unwind(AssertUnwindSafe(|| {
        if let Err(FreeError::Damaged(damage)) = pool.free(data.expose_provenance() as u64) {
            pool.keep_damage(damage);
        }
    }));
}

fn pointer(address: u64) -> *mut u8 {
    usize::try_from(address).map_or(ptr::null_mut(), ptr::with_exposed_provenance_mut)
}

unsafe extern "C" fn malloc(ctx: *mut c_void, bytes: usize) -> *mut c_void {
    // SAFETY: called by NumPy with the handler's context.
    take(unsafe { pool_of(ctx) }, bytes.max(1)).cast()
}

unsafe extern "C" fn calloc(ctx: *mut c_void, count: usize, each: usize) -> *mut c_void {
    let Some(bytes) = count.checked_mul(each) else { return ptr::null_mut() };
    // SAFETY: called by NumPy with the handler's context.
    let data = take(unsafe { pool_of(ctx) }, bytes.max(1));
    if !data.is_null() {
        // SAFETY: the pool handed out at least this many bytes of host memory, to nobody else.
        unsafe { data.write_bytes(0, bytes) };
    }
    data.cast()
}

unsafe extern "C" fn realloc(ctx: *mut c_void, data: *mut c_void, bytes: usize) -> *mut c_void {
    // SAFETY: called by NumPy with the handler's context, and data that this handler made, or null.
    unsafe {
        if data.is_null() {
            return malloc(ctx, bytes);
        }
        let pool = pool_of(ctx);
        let address = data.expose_provenance() as u64;
        let bytes = bytes.max(1);
        let resized = catch_unwind(AssertUnwindSafe(|| pool.resize_in_place(address, bytes as u64)));
        let Ok(Ok(held)) = resized else { return ptr::null_mut() };
        if held >= bytes as u64 {
            return data;
        }
        let larger = take(pool, bytes);
        if !larger.is_null() {
            // The chunk is shorter than `bytes`, so its length fits.
            larger.copy_from_nonoverlapping(data.cast(), usize::try_from(held).unwrap_or(0));
            give_back(pool, data);
        }
        larger.cast()
    }
}

unsafe extern "C" fn free(ctx: *mut c_void, data: *mut c_void, _bytes: usize) {
    // The size is a hint that NumPy gets wrong in places; the pool knows its own.
    // SAFETY: called by NumPy with the handler's context.
    give_back(unsafe { pool_of(ctx) }, data);
}

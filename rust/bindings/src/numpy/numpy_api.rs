//! NumPy's C functions for memory handlers, from its published table: only the unsafe code for it.

#![allow(unsafe_code)]

use std::ffi::{c_uint, c_void};
use std::ptr::{self, NonNull};
use std::sync::OnceLock;

use pyo3::exceptions::{PyImportError, PyRuntimeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use super::abi::{CAPSULE, Functions, Handler};

/// Slots of NumPy's function table, and the feature version that introduced memory handlers.
const FEATURE_VERSION_SLOT: usize = 211;
const SET_HANDLER_SLOT: usize = 304;
const DEFAULT_HANDLER_SLOT: usize = 306;
const FIRST_FEATURE_VERSION: c_uint = 0xF;

type SetHandler = unsafe extern "C" fn(*mut ffi::PyObject) -> *mut ffi::PyObject;

/// NumPy's functions and objects for memory handlers.
#[derive(Clone, Copy)]
pub(super) struct NumpyApi {
    set: SetHandler,
    /// The capsule of the initial handler; NumPy keeps it for the life of the process.
    default: NonNull<ffi::PyObject>,
    /// The functions of that handler, before its capsule was changed.
    original: Functions,
}

// SAFETY: NumPy's functions and objects live as long as the process; objects are accessed only while attached.
unsafe impl Send for NumpyApi {}
// SAFETY: as above.
unsafe impl Sync for NumpyApi {}

impl NumpyApi {
    /// Finds NumPy's functions; caches them.
    ///
    /// # Errors
    /// If NumPy cannot be imported, or has no supported memory handlers.
    pub(super) fn find(py: Python<'_>) -> PyResult<&'static Self> {
        static FOUND: OnceLock<NumpyApi> = OnceLock::new();
        if let Some(found) = FOUND.get() {
            return Ok(found);
        }
        let table = py.import("numpy._core._multiarray_umath")?.getattr("_ARRAY_API")?;
        let table = table.cast_into::<PyCapsule>()?;
        // SAFETY: the capsule has no name and points to NumPy's table, which lives as long as the process.
        let slots = unsafe { ffi::PyCapsule_GetPointer(table.as_ptr(), ptr::null()) }.cast::<*const c_void>();
        if slots.is_null() {
            return Err(PyErr::fetch(py));
        }
        // SAFETY: the table is NumPy's.
        let api = unsafe { Self::read(slots) }?;
        Ok(FOUND.get_or_init(|| api))
    }

    /// Reads the functions from NumPy's table.
    ///
    /// # Safety
    /// `slots` is NumPy's table of functions.
    unsafe fn read(slots: *const *const c_void) -> PyResult<Self> {
        // SAFETY: slot 211 has had this type since NumPy 1.7; the others are read only if the version says that they
        // exist, and have had these types since.
        unsafe {
            let feature_version: unsafe extern "C" fn() -> c_uint =
                std::mem::transmute(*slots.add(FEATURE_VERSION_SLOT));
            let version = feature_version();
            if version < FIRST_FEATURE_VERSION {
                let text = format!("NumPy's C API {version:#x} has no memory handlers");
                return Err(PyImportError::new_err(text));
            }
            let default = *(*slots.add(DEFAULT_HANDLER_SLOT)).cast::<*mut ffi::PyObject>();
            let unknown = || PyRuntimeError::new_err("NumPy's default memory handler is not of a known kind");
            let default = NonNull::new(default).ok_or_else(unknown)?;
            if ffi::PyCapsule_IsValid(default.as_ptr(), CAPSULE.as_ptr()) == 0 {
                return Err(unknown());
            }
            let handler = ffi::PyCapsule_GetPointer(default.as_ptr(), CAPSULE.as_ptr()).cast::<Handler>();
            if (*handler).version != Handler::VERSION {
                return Err(unknown());
            }
            Ok(Self {
                set: std::mem::transmute::<*const c_void, SetHandler>(*slots.add(SET_HANDLER_SLOT)),
                default,
                original: (*handler).functions,
            })
        }
    }

    /// Makes `capsule` the handler of the current context; returns the former one.
    ///
    /// # Errors
    /// If NumPy rejects the capsule.
    pub(super) fn set<'py>(&self, capsule: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        // SAFETY: attached to the interpreter. NumPy checks the capsule, and returns a new reference to the former
        // one or null with an exception set.
        unsafe { Bound::from_owned_ptr_or_err(capsule.py(), (self.set)(capsule.as_ptr())) }
    }

    /// Returns the functions of NumPy's own handler.
    pub(super) fn original(&self) -> &Functions {
        &self.original
    }

    /// Points the default handler's capsule to another handler. It affects every thread without its own handler and
    /// every array made under the default one.
    ///
    /// # Errors
    /// If the capsule was changed by other code.
    pub(super) fn replace_default(&self, py: Python<'_>, handler: &'static Handler) -> PyResult<()> {
        let capsule = self.default.as_ptr();
        // SAFETY: NumPy keeps its capsule. The handler lives as long as the process and handles data that the
        // original made; it is only read through the capsule.
        let done = unsafe {
            ffi::PyCapsule_IsValid(capsule, CAPSULE.as_ptr()) != 0
                && ffi::PyCapsule_SetPointer(capsule, ptr::from_ref(handler).cast_mut().cast()) == 0
        };
        if done {
            return Ok(());
        }
        let error = PyRuntimeError::new_err("NumPy's default memory handler cannot be replaced");
        Err(PyErr::take(py).unwrap_or(error))
    }
}

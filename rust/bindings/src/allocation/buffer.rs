//! Python's buffer protocol over host memory: only the unsafe code for it.

#![allow(unsafe_code)]

use std::ffi::{c_int, c_void};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use allotment::bindings::PoolForBindings as _;
use allotment::{FreeError, Pool};
use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;

use crate::allocation::{Allocation, Memory};

/// Value instead of a count: the memory was freed.
const RETIRED: u32 = u32::MAX;

/// The number of live buffers over an allocation, or the mark that it was freed.
#[derive(Default)]
pub(crate) struct Exports {
    count: AtomicU32,
    /// Held while a buffer is counted or released, together with the pin in the pool: the pool must pin the memory
    /// before a second buffer is handed out, and a late unpin must not undo the pin of a new buffer.
    changing: Mutex<()>,
}

/// The result of an attempt to free.
pub(crate) enum Retired {
    /// The caller frees the memory.
    Now,
    /// It was freed before.
    Before,
    /// Live buffers expose it.
    InUse,
}

impl Exports {
    /// Claims the right to free the memory; at most one caller succeeds.
    pub(crate) fn retire(&self) -> Retired {
        match self.count.compare_exchange(0, RETIRED, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => Retired::Now,
            Err(RETIRED) => Retired::Before,
            Err(_) => Retired::InUse,
        }
    }

    pub(crate) fn is_retired(&self) -> bool {
        self.count.load(Ordering::Acquire) == RETIRED
    }

    /// Undoes a successful `retire`.
    pub(crate) fn restore(&self) {
        self.count.store(0, Ordering::Release);
    }

    /// Counts a new buffer; returns the previous count, `None` if the memory was freed.
    fn add(&self) -> Option<u32> {
        let one_more = |count: u32| (count < RETIRED - 1).then(|| count + 1);
        self.count.fetch_update(Ordering::AcqRel, Ordering::Acquire, one_more).ok()
    }

    /// Counts a released buffer.
    fn remove(&self) {
        self.count.fetch_sub(1, Ordering::AcqRel);
    }

    /// Returns whether one buffer is left.
    fn is_last(&self) -> bool {
        self.count.load(Ordering::Acquire) == 1
    }

    /// Takes the lock of changes. Its holder waits for no lock but the pool's, so a thread may wait attached. A forked
    /// child needs no lock, as nothing there can free the memory; a thread that it does not have may hold the lock.
    fn change(&self, pool: &Pool) -> Option<MutexGuard<'_, ()>> {
        (!pool.is_inherited()).then(|| self.changing.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[pymethods]
impl Allocation {
    /// Fills a buffer view.
    ///
    /// # Safety
    /// Called by the interpreter with a `view` to fill, as its protocol says.
    unsafe fn __getbuffer__(slf: &Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        let this = slf.get().memory();
        let filled = host_span(this).and_then(|(start, length)| {
            // SAFETY: the interpreter passes a view to fill. `start` is `length` bytes of a host region: the chunk
            // belongs to this allocation until `Exports::retire` succeeds, which it cannot while the export counts;
            // the view references the allocation, and the allocation references the pool.
            if unsafe { ffi::PyBuffer_FillInfo(view, slf.as_ptr(), start, length, 0, flags) } == 0 {
                return Ok(());
            }
            abandon(this);
            Err(PyErr::fetch(slf.py()))
        });
        if filled.is_err() && !view.is_null() {
            // SAFETY: the view is the interpreter's, to be filled or, after an error, marked as empty.
            unsafe { (*view).obj = std::ptr::null_mut() };
        }
        filled
    }

    /// Releases a buffer view.
    ///
    /// # Safety
    /// Called by the interpreter, once for each view that `__getbuffer__` filled.
    unsafe fn __releasebuffer__(&self, _view: *mut ffi::Py_buffer) {
        abandon(self.memory());
    }
}

/// Counts a new buffer; returns its start and length.
fn host_span(memory: &Memory) -> PyResult<(*mut c_void, ffi::Py_ssize_t)> {
    if !memory.on_host {
        return Err(PyBufferError::new_err(
            "this pool's addresses are not known to be memory of this process: only source='host' has buffers",
        ));
    }
    let length = ffi::Py_ssize_t::try_from(memory.inner().requested)?;
    let address = usize::try_from(memory.address)?;
    claim(memory)?;
    let start = if length == 0 {
        NonNull::<u8>::dangling().as_ptr().cast()
    } else {
        std::ptr::with_exposed_provenance_mut(address)
    };
    Ok((start, length))
}

/// Counts a new view of the memory, which cannot be freed until `abandon`.
///
/// # Errors
/// If it was freed.
pub(crate) fn claim(memory: &Memory) -> PyResult<()> {
    let freed = || PyBufferError::new_err("this allocation was freed");
    let _changing = memory.exports().change(memory.pool());
    let before = memory.exports().add().ok_or_else(freed)?;
    if before == 0 { pin(memory) } else { Ok(()) }
}

/// Prevents frees by address while buffers expose the memory. The caller holds the lock of changes.
fn pin(memory: &Memory) -> PyResult<()> {
    let pinned = memory.pool().pin(memory.inner());
    match pinned {
        // In a forked child the parent's memory stays readable, and nothing can free it.
        Ok(()) | Err(FreeError::Unusable(_)) => Ok(()),
        Err(_) => {
            memory.exports().remove();
            Err(PyBufferError::new_err("this allocation was freed, by its address"))
        }
    }
}

/// Counts a view less.
pub(crate) fn abandon(memory: &Memory) {
    let exports = memory.exports();
    let _changing = exports.change(memory.pool());
    if exports.is_last() {
        // Before the count drops: from then on `Allocation.free` may free the memory, which a pin would refuse.
        memory.pool().unpin(memory.inner());
    }
    exports.remove();
}

//! Requests of guests to pools: allocate, resize, free, and the text of the last refusal. None waits for the interpreter,
//! and none unwinds.
//!
//! In a forked child the pool belongs to the parent. The guest then gets memory of the C library, and data inside a
//! region, which the C library never gives out, is left alone.

#![allow(unsafe_code)]

use std::cell::RefCell;
use std::ffi::{CString, c_char, c_int, c_void};
use std::fmt::Arguments;
use std::ptr;
use std::sync::{Arc, Mutex, PoisonError};

use allotment::{AllocError, FreeError, GRANULE, Pool, Request, Unusable};
use allotment_host::{AdmissionControl, end_of_region};
use allotment_sync::PerProcess;

use crate::{held, tag};

unsafe extern "C" {
    /// POSIX: memory at a multiple of `alignment`; returns 0, or the number of an error.
    fn posix_memalign(data: *mut *mut c_void, alignment: usize, bytes: usize) -> c_int;
    /// The C library's: frees what `posix_memalign` gave.
    #[link_name = "free"]
    fn free_of_c(data: *mut c_void);
}

/// A runtime that takes memory from a pool.
///
/// Never dropped: the runtime may free its data as late as at the end of the process.
pub(crate) struct Guest {
    pool: Arc<Pool>,
    admission: Option<Arc<AdmissionControl>>,
    name: Arc<str>,
}

/// All guests. Per process: a thread that a forked child does not have may hold the lock.
static GUESTS: PerProcess<Mutex<Vec<&'static Guest>>> =
    PerProcess::new(Mutex::new(Vec::new()), Mutex::default);

thread_local! {
    static LAST_REFUSAL: RefCell<CString> = RefCell::default();
}

/// Returns the guest of this name in a pool; creates it at the first call.
pub(super) fn guest(
    pool: &Arc<Pool>,
    admission: Option<&Arc<AdmissionControl>>,
    name: &str,
) -> &'static Guest {
    let mut guests = GUESTS.get().lock().unwrap_or_else(PoisonError::into_inner);
    let known = guests.iter().find(|guest| Arc::ptr_eq(&guest.pool, pool) && *guest.name == *name);
    if let Some(guest) = known {
        return guest;
    }
    let guest: &'static Guest = Box::leak(Box::new(Guest {
        pool: Arc::clone(pool),
        admission: admission.cloned(),
        name: Arc::from(name),
    }));
    guests.push(guest);
    guest
}

/// Returns the text of the last refusal on this thread; valid until the next one. Empty before the first.
pub(super) fn last_refusal() -> *const c_char {
    // After the end of the thread's values there is no text.
    LAST_REFUSAL.try_with(|text| text.borrow().as_ptr()).unwrap_or(c"".as_ptr())
}

impl Guest {
    /// Allocates at least one byte at a multiple of `alignment`, a power of two; returns null after a refusal, whose text
    /// is [`last_refusal`].
    pub(super) fn allocate(&self, bytes: usize, alignment: usize) -> *mut c_void {
        let bytes = bytes.max(1);
        let request = Request::new(bytes as u64).align((alignment as u64).max(GRANULE));
        let allocate = || held::allocate(&self.pool, self.admission.as_ref(), request, || false);
        let allocated =
            if self.pool.options().owner_tags { tag::with_default(&self.name, allocate) } else { allocate() };
        match allocated {
            Some(Ok(allocation)) => held::pointer(allocation.address),
            Some(Err(AllocError::Unusable(Unusable::Forked))) => allocate_from_c(bytes, alignment),
            Some(Err(error)) => self.refuse_for(&error),
            None => refuse(format_args!("pool '{}' failed", self.pool.options().name)),
        }
    }

    /// Resizes data in place; false if its chunk is too small, or the pool does not know the data.
    pub(super) fn resize_in_place(&self, data: *mut c_void, bytes: usize) -> bool {
        let bytes = bytes.max(1) as u64;
        held::resize_in_place(&self.pool, data, bytes).is_some_and(|held| held >= bytes)
    }

    /// Frees data of the guest; null is accepted and does nothing.
    ///
    /// # Safety
    /// `data` is null or of [`Guest::allocate`], and not in use any more.
    pub(super) unsafe fn free(&self, data: *mut c_void) {
        if data.is_null() {
            return;
        }
        if let Err(FreeError::Unusable(Unusable::Forked)) = held::free(&self.pool, data)
            && end_of_region(data.expose_provenance() as u64).is_none()
        {
            // SAFETY: guaranteed by the caller; in a forked child, data outside of all regions is of `allocate_from_c`.
            unsafe { free_of_c(data) };
        }
    }

    #[cold]
    fn refuse_for(&self, error: &AllocError) -> *mut c_void {
        let (pool, guest) = (&self.pool.options().name, &self.name);
        match error {
            AllocError::Unusable(Unusable::Closed) => refuse(format_args!(
                "pool '{pool}' is closed, and {guest} still takes its memory from it: before the pool is closed, call \
                 allotment.integrations.{guest}.uninstall() and drop what {guest} has made with the pool"
            )),
            error => refuse(format_args!("pool '{pool}': {error}")),
        }
    }
}

/// Stores the text of a refusal for this thread, and returns null.
fn refuse(text: Arguments<'_>) -> *mut c_void {
    let mut text = text.to_string();
    text.retain(|character| character != '\0');
    let _ = LAST_REFUSAL.try_with(|last| last.replace(CString::new(text).unwrap_or_default()));
    ptr::null_mut()
}

/// Allocates from the C library, in a forked child.
#[cold]
fn allocate_from_c(bytes: usize, alignment: usize) -> *mut c_void {
    let mut data = ptr::null_mut();
    // SAFETY: `data` is written; the alignment is a power of two and at least that of a pointer.
    let failed = unsafe { posix_memalign(&raw mut data, alignment.max(size_of::<*mut c_void>()), bytes) };
    if failed == 0 { data } else { ptr::null_mut() }
}

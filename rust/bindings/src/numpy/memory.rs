//! The operations of a handler on a pool: allocate, clear, resize, free. They neither unwind nor wait for the
//! interpreter.
//!
//! The data is held: a free by its address fails, and only the end of the array frees it.

#![allow(unsafe_code)]

use std::ffi::c_void;
use std::panic::catch_unwind;
use std::ptr;
use std::sync::Arc;

use allotment::{AllocError, FreeError, Pool, Request, Unusable};
use allotment_host::{AdmissionControl, end_of_region};

use super::abi::Functions;
use super::last_error;
use super::small_cache::{LockPolicy, SmallCache};
use crate::held;
use crate::tag;

/// The result of a request to a pool.
pub(super) enum AllocationOutcome {
    Data(*mut c_void),
    /// Null, from which NumPy makes a `MemoryError`.
    Refused,
    /// This process is a forked child of the pool's process.
    Forked,
}

/// The memory of a handler: a pool, and optionally a cache of small data.
#[derive(Clone)]
pub(super) struct Backend {
    pub(super) pool: Arc<Pool>,
    pub(super) small_cache: Option<Arc<SmallCache>>,
    /// Admission control, if the pool may not exceed the machine's memory.
    pub(super) admission: Option<Arc<AdmissionControl>>,
}

impl Backend {
    /// Takes cached small data on the fast path; [`Backend::take`] handles the rest.
    #[inline(always)]
    pub(super) fn take_cached(&self, bytes: usize) -> Option<*mut c_void> {
        self.small_cache.as_ref()?.take(bytes, LockPolicy::OwnerOnly)
    }

    /// Allocates memory; stores the reason of a refusal.
    ///
    /// It does not wait for a free, whatever the pool's options say: the caller may hold the interpreter's lock,
    /// which the freeing thread needs. The smallest request is one byte, as zero bytes have no address.
    pub(super) fn take(&self, bytes: usize) -> AllocationOutcome {
        let bytes = bytes.max(1);
        let Some(small_cache) = &self.small_cache else { return self.take_uncached(bytes) };
        if let Some(data) = small_cache.take(bytes, LockPolicy::TryLock) {
            return AllocationOutcome::Data(data);
        }
        let taken = self.take_from_pool(bytes, || small_cache.flush());
        if let AllocationOutcome::Data(data) = taken {
            small_cache.record_allocation(data, bytes);
        }
        taken
    }

    /// Allocates from a pool without a cache, because each allocation is inspected or has an owner.
    // Not inlined: its registers would be saved on all other paths, too.
    #[cold]
    #[inline(never)]
    fn take_uncached(&self, bytes: usize) -> AllocationOutcome {
        let take = || self.take_from_pool(bytes, || false);
        if self.pool.options().owner_tags {
            tag::with_line_of_array(take)
        } else if tag::stack::are_recorded() {
            tag::stack::with_stack(take)
        } else {
            take()
        }
    }

    /// Allocates from the pool; calls `make_room` once before a refusal, which returns whether it freed anything.
    #[inline]
    fn take_from_pool(&self, bytes: usize, make_room: impl Fn() -> bool) -> AllocationOutcome {
        match held::allocate(&self.pool, self.admission.as_ref(), Request::new(bytes as u64), make_room) {
            Some(Ok(allocation)) => AllocationOutcome::Data(held::pointer(allocation.address)),
            Some(Err(error)) => store_refusal(&self.pool, error),
            None => AllocationOutcome::Refused,
        }
    }

    /// Caches small data of this pool for the next array on the fast path, whatever pool the data belongs to;
    /// [`Backend::give_back`] handles the rest.
    #[inline(always)]
    pub(super) fn cache(&self, data: *mut c_void) -> bool {
        self.small_cache.as_ref().is_some_and(|small_cache| small_cache.put(data))
    }

    /// Frees memory; an error if the pool does not know it, or belongs to the parent of this forked child.
    pub(super) fn give_back(&self, data: *mut c_void) -> Result<(), FreeError> {
        if self.small_cache.as_ref().is_some_and(|small_cache| small_cache.put_or_forget(data)) {
            return Ok(());
        }
        held::free(&self.pool, data)
    }

    /// Resizes data in place: into the free memory after it, or with its tail given back.
    pub(super) fn resize(&self, data: *mut c_void, bytes: usize) -> ResizeOutcome {
        let resized = resize(&self.pool, data, bytes);
        if let (Some(small_cache), ResizeOutcome::InPlace | ResizeOutcome::Short(_)) =
            (&self.small_cache, &resized)
        {
            small_cache.forget(data);
        }
        resized
    }

    /// Moves data of `held` bytes to a larger chunk; returns null, without any change, if the pool refuses.
    ///
    /// # Safety
    /// `data` is the pool's, `held` bytes long, shorter than `bytes`, and has no other user.
    pub(super) unsafe fn grow(&self, data: *mut c_void, held: usize, bytes: usize) -> *mut c_void {
        let AllocationOutcome::Data(longer) = self.take(bytes) else { return ptr::null_mut() };
        // SAFETY: guaranteed by the caller, and the new memory has no other user.
        unsafe { longer.cast::<u8>().copy_from_nonoverlapping(data.cast(), held) };
        let _ = self.give_back(data);
        longer
    }
}

/// Stores the reason of a refusal.
fn store_refusal(pool: &Pool, error: AllocError) -> AllocationOutcome {
    let forked = matches!(error, AllocError::Unusable(Unusable::Forked));
    last_error::store(pool, error);
    if forked { AllocationOutcome::Forked } else { AllocationOutcome::Refused }
}

/// Zeroes newly allocated memory.
///
/// # Safety
/// `data` is that many bytes of host memory without another user.
pub(super) unsafe fn clear(data: *mut c_void, bytes: usize) {
    // SAFETY: guaranteed by the caller. A panic must not unwind into C.
    let _ = catch_unwind(|| unsafe { allotment_host::clear(data.cast(), bytes) });
}

/// The result of a resize in place.
pub(super) enum ResizeOutcome {
    InPlace,
    /// The chunk is too small; this many bytes of the data are worth copying.
    Short(usize),
    /// The pool does not know the data, or belongs to the parent of this forked child.
    Unknown,
}

fn resize(pool: &Pool, data: *mut c_void, bytes: usize) -> ResizeOutcome {
    let bytes = bytes.max(1) as u64;
    match held::resize_in_place(pool, data, bytes) {
        Some(held) if held >= bytes => ResizeOutcome::InPlace,
        // The chunk is shorter than `bytes`, so its length fits.
        Some(held) => ResizeOutcome::Short(usize::try_from(held).unwrap_or(0)),
        None => ResizeOutcome::Unknown,
    }
}

/// Moves data that a forked child cannot free into memory of NumPy's own handler.
///
/// # Safety
/// `data` lies in a region of host memory that is not released; `original` are the functions of a live handler.
pub(super) unsafe fn move_out(original: &Functions, data: *mut c_void, bytes: usize) -> *mut c_void {
    let start = data.expose_provenance() as u64;
    let Some(end) = end_of_region(start) else { return ptr::null_mut() };
    // Only the parent's tables know the data's length. The bytes behind it, up to the region's end, are readable and
    // as meaningless to NumPy as new memory.
    let readable = usize::try_from(end - start).unwrap_or(usize::MAX);
    // SAFETY: guaranteed by the caller; a region is readable to its end.
    unsafe {
        let moved = (original.malloc)(original.ctx, bytes);
        if !moved.is_null() {
            moved.cast::<u8>().copy_from_nonoverlapping(data.cast(), readable.min(bytes));
        }
        moved
    }
}

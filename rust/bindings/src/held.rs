//! Held allocations for other runtimes, such as NumPy: each function returns without unwinding, and none waits for the
//! interpreter, which the calling thread may hold.
//!
//! A held allocation cannot be freed by its address from Python, only by the runtime that requested it.

use std::ffi::c_void;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::Arc;

use allotment::bindings::PoolForBindings as _;
use allotment::{AllocError, Allocation, AllocationAttempt, FreeError, Pool, Request, ResizeError};
use allotment_host::AdmissionControl;

use crate::error::admission::admit_data;
use crate::guard::log_damage;

/// Allocates from a pool; calls `make_room` once before a refusal, which returns whether it freed anything. `None`
/// after a panic.
///
/// It does not wait for a free, whatever the pool's options say: the caller may hold the interpreter's lock, which the
/// freeing thread needs.
#[inline]
pub(crate) fn allocate(
    pool: &Pool,
    admission: Option<&Arc<AdmissionControl>>,
    request: Request<'_>,
    make_room: impl Fn() -> bool,
) -> Option<Result<Allocation, AllocError>> {
    // A host source never needs the interpreter, so waiting for the source lock cannot deadlock.
    let allocate = || {
        let mut tried = false;
        let make_room = |_: &AllocationAttempt| !mem::replace(&mut tried, true) && make_room();
        pool.allocate_held(request, make_room).map_err(|mut error| {
            if let AllocError::OutOfMemory(refused) = &mut error {
                // In a forked child the error has no details.
                let _ = pool.add_details(refused);
            }
            error
        })
    };
    let allocated = catch_unwind(AssertUnwindSafe(|| {
        admit_data(pool, admission, request.bytes())?;
        loop {
            match allocate() {
                // A refusal would report a lack of memory, which is wrong here; the damage is logged instead.
                Err(AllocError::Damaged(damage)) => log_damage(&pool.options().name, &damage),
                allocated => return allocated,
            }
        }
    }));
    allocated.ok()
}

/// Frees a held allocation. The runtime cannot receive errors, so the next call of the pool that can reports damage.
///
/// # Errors
/// If the pool does not know the data, or belongs to the parent of this forked child.
pub(crate) fn free(pool: &Pool, data: *mut c_void) -> Result<(), FreeError> {
    let freed = catch_unwind(AssertUnwindSafe(|| match pool.free_held(data.expose_provenance() as u64) {
        Err(FreeError::Damaged(damage)) => {
            pool.defer_damage(damage);
            Ok(())
        }
        freed => freed,
    }));
    freed.unwrap_or(Ok(()))
}

/// Resizes data in place to at least one byte: into the free memory after it, or with its tail given back. Returns the
/// bytes that its chunk has: fewer than `bytes` if it cannot grow that far, and is unchanged then. `None` if the pool does not know the data, or belongs to the parent of this forked
/// child.
pub(crate) fn resize_in_place(pool: &Pool, data: *mut c_void, bytes: u64) -> Option<u64> {
    let address = data.expose_provenance() as u64;
    match catch_unwind(AssertUnwindSafe(|| pool.resize_held(address, bytes))).ok()? {
        Ok(resized) => Some(resized.size),
        // A chunk may have more than a scope's limit allows to use.
        Err(ResizeError::NoRoom { size, .. } | ResizeError::ScopeLimit { size, .. }) => {
            Some(size.min(bytes - 1))
        }
        Err(_) => None,
    }
}

/// Returns the pointer of an address in host memory.
pub(crate) fn pointer(address: u64) -> *mut c_void {
    usize::try_from(address).map_or(ptr::null_mut(), ptr::with_exposed_provenance_mut)
}

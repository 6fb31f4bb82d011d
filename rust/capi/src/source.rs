//! Region sources that are functions of C.

use std::ffi::c_void;
use std::sync::Arc;

use allotment::RegionSource;
use allotment::source::{Grant, ReserveError};

use crate::status::{Failure, null};

/// `reserve` granted a region.
pub const ALLOTMENT_GRANTED: i32 = 0;
/// `reserve` does not have that many bytes; a smaller request may succeed.
pub const ALLOTMENT_DECLINED: i32 = 1;

/// A source of regions: functions that a pool calls from one thread at a time, and never while it holds its lock.
/// They may free memory of the pool, and must not throw or jump out.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Source {
    /// Passed to the functions. They may be called from any thread.
    pub context: *mut c_void,
    /// Reserves at least `bytes` bytes, a multiple of 256, at a multiple of `alignment`. Stores the first byte and the
    /// length, both multiples of 256, and returns `ALLOTMENT_GRANTED`; or returns `ALLOTMENT_DECLINED`; or any other
    /// number if it failed, which the error of the request names.
    pub reserve: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            bytes: u64,
            alignment: u64,
            address: *mut u64,
            granted_bytes: *mut u64,
        ) -> i32,
    >,
    /// Takes a region back: a former grant, or the span of several that were joined.
    pub release: Option<unsafe extern "C" fn(context: *mut c_void, address: u64, bytes: u64)>,
    /// Called once, after all other calls, when the pool has ended. May be null.
    pub destroy: Option<unsafe extern "C" fn(context: *mut c_void)>,
    /// Not 0: a grant that starts where another ends may be joined to it.
    pub joins_regions: i32,
    /// Not 0: grants may start at address 0, as offsets on a device do. Zero bytes then have the address
    /// `UINT64_MAX`.
    pub starts_at_zero: i32,
}

/// A failure of a C source.
#[derive(Debug)]
struct SourceCode(i32);

impl std::fmt::Display for SourceCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "its function reserve returned {}", self.0)
    }
}

impl std::error::Error for SourceCode {}

type Reserve = unsafe extern "C" fn(*mut c_void, u64, u64, *mut u64, *mut u64) -> i32;
type Release = unsafe extern "C" fn(*mut c_void, u64, u64);

/// The functions of a source, checked.
pub(crate) struct CSource {
    context: *mut c_void,
    reserve: Reserve,
    release: Release,
    destroy: Option<unsafe extern "C" fn(*mut c_void)>,
    joins_regions: bool,
    starts_at_zero: bool,
}

// SAFETY: the caller of `CSource::new` guarantees functions that may be called from any thread.
unsafe impl Send for CSource {}

impl CSource {
    /// Checks and copies a source.
    ///
    /// # Safety
    /// `source` is null or points to a source whose functions keep their contract until `destroy` is called.
    pub(crate) unsafe fn new(source: *const Source) -> Result<Self, Failure> {
        // SAFETY: guaranteed by the caller.
        let source = unsafe { source.as_ref() }.ok_or_else(|| null("source"))?;
        Ok(Self {
            context: source.context,
            reserve: source.reserve.ok_or_else(|| null("source->reserve"))?,
            release: source.release.ok_or_else(|| null("source->release"))?,
            destroy: source.destroy,
            joins_regions: source.joins_regions != 0,
            starts_at_zero: source.starts_at_zero != 0,
        })
    }

    /// Gives the source up without its end, as the caller keeps it.
    pub(crate) fn keep(mut self) {
        self.destroy = None;
    }
}

impl RegionSource for CSource {
    fn reserve(&mut self, bytes: u64, alignment: u64) -> Result<Grant, ReserveError> {
        let (mut address, mut granted) = (0, 0);
        // SAFETY: the contract of `CSource::new`; both numbers are writable.
        match unsafe { (self.reserve)(self.context, bytes, alignment, &raw mut address, &raw mut granted) } {
            ALLOTMENT_GRANTED => Ok(Grant { address, bytes: granted }),
            ALLOTMENT_DECLINED => Err(ReserveError::Declined),
            code => Err(ReserveError::Failed(Arc::new(SourceCode(code)))),
        }
    }

    fn release(&mut self, region: Grant) {
        // SAFETY: the contract of `CSource::new`.
        unsafe { (self.release)(self.context, region.address, region.bytes) }
    }

    fn joins_regions(&self) -> bool {
        self.joins_regions
    }

    fn starts_at_zero(&self) -> bool {
        self.starts_at_zero
    }
}

impl Drop for CSource {
    fn drop(&mut self) {
        if let Some(destroy) = self.destroy {
            // SAFETY: the contract of `CSource::new`; the last call.
            unsafe { destroy(self.context) }
        }
    }
}

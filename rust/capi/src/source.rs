//! Region sources that are functions of C.

use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use allotment::source::{Grant, PageSource, ReserveError, SourceFailure};
use allotment::{Gauge, RegionSource};
use allotment_host::HostAccessible;

use crate::headroom::{CGauge, HeadroomFunction};
use crate::pages::Pages;
use crate::status::{Failure, null};

/// `reserve` granted a region.
pub const ALLOTMENT_GRANTED: i32 = 0;
/// `reserve` does not have that many bytes; a smaller request may succeed.
pub const ALLOTMENT_DECLINED: i32 = 1;

/// A source of regions: functions that a pool calls from one thread at a time, which may be another one each time, and
/// never while it holds its lock. They may free memory of the pool, and allocate what fits without growth; calls that
/// wait for the source return `ALLOTMENT_INSIDE_SOURCE`. They must not throw, jump out, or destroy a pool. A forked child
/// calls none of them for a pool of its parent.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Source {
    /// Passed to the functions. They may be called from any thread.
    pub context: *mut c_void,
    /// Reserves at least `bytes` bytes, a multiple of 256, at a multiple of `alignment`. Stores the first byte and the
    /// length, both multiples of 256, and returns `ALLOTMENT_GRANTED`; or returns `ALLOTMENT_DECLINED`, and the pool
    /// may try with fewer bytes; or any other number if it failed, which the error of the request names. A grant that
    /// is too short, or above the limit, is released at once.
    pub reserve: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            bytes: u64,
            alignment: u64,
            address: *mut u64,
            granted_bytes: *mut u64,
        ) -> i32,
    >,
    /// Takes a region back: a former grant, or the span of several that were joined. An elastic pool calls neither
    /// `reserve` nor `release`: both may be null for it.
    pub release: Option<unsafe extern "C" fn(context: *mut c_void, address: u64, bytes: u64)>,
    /// Called once, after all other calls, when the pool has ended; regions that were not released have live
    /// allocations. May be null.
    pub destroy: Option<unsafe extern "C" fn(context: *mut c_void)>,
    /// Not 0: a grant that starts where another ends may be joined to it.
    pub joins_regions: i32,
    /// Not 0: grants may start at address 0, as offsets on a device do. Zero bytes then have the address
    /// `UINT64_MAX`.
    pub starts_at_zero: i32,
}

/// A failure of a C source.
#[derive(Debug)]
struct SourceCode {
    function: &'static str,
    code: i32,
}

impl std::fmt::Display for SourceCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "its function {} returned {}", self.function, self.code)
    }
}

impl std::error::Error for SourceCode {}

/// Returns the failure of a function that returned an unknown number.
pub(crate) fn failure(function: &'static str, code: i32) -> SourceFailure {
    Arc::new(SourceCode { function, code })
}

type Reserve = unsafe extern "C" fn(*mut c_void, u64, u64, *mut u64, *mut u64) -> i32;
type Release = unsafe extern "C" fn(*mut c_void, u64, u64);

/// The functions of a source, checked.
pub(crate) struct CSource {
    pub(crate) context: *mut c_void,
    /// Null in elastic pools alone, which have `pages`.
    reserve: Option<Reserve>,
    release: Option<Release>,
    destroy: Option<unsafe extern "C" fn(*mut c_void)>,
    joins_regions: bool,
    starts_at_zero: bool,
    pages: Option<Pages>,
    headroom: HeadroomFunction,
    is_owned: Ownership,
}

/// Whether the end of a source calls `destroy`: not before there is a pool, and not in a forked child.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ownership(Arc<AtomicBool>);

impl Ownership {
    pub(crate) fn set(&self, is_owned: bool) {
        self.0.store(is_owned, Ordering::Release);
    }
}

// SAFETY: the caller of `CSource::new` guarantees functions that may be called from any thread.
unsafe impl Send for CSource {}

impl CSource {
    /// Checks and copies a source, which stays the caller's until [`Ownership::set`].
    ///
    /// # Safety
    /// `source` is null or points to a source. Its functions, those of `pages`, and `headroom` keep their contract until
    /// `destroy` is called.
    pub(crate) unsafe fn new(
        source: *const Source,
        pages: Option<Pages>,
        headroom: HeadroomFunction,
    ) -> Result<Self, Failure> {
        // SAFETY: guaranteed by the caller.
        let source = unsafe { source.as_ref() }.ok_or_else(|| null("source"))?;
        if pages.is_none() {
            let functions = [(source.reserve.is_none(), "reserve"), (source.release.is_none(), "release")];
            if let Some((_, name)) = functions.into_iter().find(|(is_null, _)| *is_null) {
                return Err(null(&format!("source->{name}")));
            }
        }
        Ok(Self {
            context: source.context,
            reserve: source.reserve,
            release: source.release,
            destroy: source.destroy,
            joins_regions: source.joins_regions != 0,
            starts_at_zero: source.starts_at_zero != 0,
            pages,
            headroom,
            is_owned: Ownership::default(),
        })
    }

    pub(crate) fn ownership(&self) -> Ownership {
        self.is_owned.clone()
    }

    /// Returns the functions for pages of a source that has them.
    pub(crate) fn functions(&self) -> &Pages {
        self.pages.as_ref().expect("a source with pages")
    }
}

/// A source of memory of this process.
pub(crate) struct HostSource(CSource);

impl HostSource {
    /// # Safety
    /// All memory that the source grants is memory of this process, which all threads may read and write until it is
    /// released, and nothing else uses.
    pub(crate) unsafe fn new(source: CSource) -> Self {
        Self(source)
    }
}

impl RegionSource for HostSource {
    fn reserve(&mut self, bytes: u64, alignment: u64) -> Result<Grant, ReserveError> {
        self.0.reserve(bytes, alignment)
    }

    fn release(&mut self, region: Grant) {
        self.0.release(region);
    }

    fn gauge(&self) -> Option<Arc<dyn Gauge>> {
        self.0.gauge()
    }
}

// SAFETY: the contract of `HostSource::new`.
unsafe impl HostAccessible for HostSource {}

impl RegionSource for CSource {
    fn reserve(&mut self, bytes: u64, alignment: u64) -> Result<Grant, ReserveError> {
        let Some(reserve) = self.reserve else { return Err(ReserveError::Declined) };
        let (mut address, mut granted) = (0, 0);
        // SAFETY: the contract of `CSource::new`; both numbers are writable.
        match unsafe { reserve(self.context, bytes, alignment, &raw mut address, &raw mut granted) } {
            ALLOTMENT_GRANTED => Ok(Grant { address, bytes: granted }),
            ALLOTMENT_DECLINED => Err(ReserveError::Declined),
            code => Err(ReserveError::Failed(failure("reserve", code))),
        }
    }

    fn release(&mut self, region: Grant) {
        if let Some(release) = self.release {
            // SAFETY: the contract of `CSource::new`.
            unsafe { release(self.context, region.address, region.bytes) }
        }
    }

    fn joins_regions(&self) -> bool {
        self.joins_regions
    }

    fn starts_at_zero(&self) -> bool {
        self.starts_at_zero
    }

    fn gauge(&self) -> Option<Arc<dyn Gauge>> {
        CGauge::of(self.context, self.headroom)
    }

    fn pages(&mut self) -> Option<&mut dyn PageSource> {
        if self.pages.is_some() { Some(self) } else { None }
    }
}

impl Drop for CSource {
    fn drop(&mut self) {
        if let Some(destroy) = self.destroy
            && self.is_owned.0.load(Ordering::Acquire)
        {
            // SAFETY: the contract of `CSource::new`; the last call.
            unsafe { destroy(self.context) }
        }
    }
}

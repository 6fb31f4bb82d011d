//! Region sources: the trait, and sources without unsafe code.
//!
//! A source receives and returns numbers. It never sees the allocator, and a pool calls it without holding its lock,
//! so a source may be slow or written in Python.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::error::Error;
use core::fmt;
use core::panic::RefUnwindSafe;

use crate::guard::MemoryGuard;

mod address_space;
#[cfg(feature = "std")]
mod capped;
#[cfg(feature = "std")]
mod checked_pages;
mod descending;
mod failing;
mod failing_pages;
mod forwarding;
#[cfg(feature = "std")]
mod objects;
mod pages;
#[cfg(feature = "std")]
mod recording;
#[cfg(feature = "std")]
mod spans;

pub use address_space::AddressSpace;
#[cfg(feature = "std")]
pub use capped::{Cap, Capped};
#[cfg(feature = "std")]
pub use checked_pages::{CheckedPages, CommittedPages, PageCalls};
pub use descending::DescendingAddresses;
pub use failing::FailingSource;
pub use failing_pages::{FailingPages, PageCall, RefusedOnPurpose};
#[cfg(feature = "std")]
pub use objects::{ObjectSource, ObjectTable, Objects};
#[cfg(feature = "std")]
pub(crate) use pages::PageSizes;
pub use pages::PageSource;
#[cfg(feature = "std")]
pub use recording::{Call, Log, Recording};

/// A span of memory granted by a source: `bytes` bytes from `address`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Grant {
    /// First byte; a multiple of the requested alignment; 0 only if [`RegionSource::starts_at_zero`].
    pub address: u64,
    /// Length in bytes; a multiple of [`GRANULE`](crate::GRANULE).
    pub bytes: u64,
}

impl Grant {
    /// Returns the first address after the span.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.address + self.bytes
    }
}

/// Why a source did not grant a region.
#[derive(Debug, Clone)]
pub enum ReserveError {
    /// The source does not have that many bytes; a smaller request may succeed.
    Declined,
    /// The source itself failed; further requests are useless. The failure reaches the caller unchanged.
    Failed(SourceFailure),
}

/// The failure of a source, as it was raised.
pub type SourceFailure = Arc<dyn Error + Send + Sync>;

/// Grants regions and takes them back.
///
/// A pool calls its source from one thread at a time and never while it holds its lock. A source may free memory of
/// the same pool, and may allocate from it what fits without growth.
pub trait RegionSource: Send {
    /// Reserves at least `bytes` bytes, a multiple of [`GRANULE`](crate::GRANULE), aligned to `alignment`.
    ///
    /// The grant may be longer and states its length. The pool releases at once a grant that would exceed its limit
    /// or is too short for the request.
    ///
    /// # Errors
    /// If the source has no such span.
    fn reserve(&mut self, bytes: u64, alignment: u64) -> Result<Grant, ReserveError>;

    /// Takes a region back: a former grant, or the span of several joined ones.
    fn release(&mut self, region: Grant);

    /// Returns whether a grant that starts where another ends may be joined to it. Must be constant.
    fn joins_regions(&self) -> bool {
        false
    }

    /// Returns whether grants may start at address 0, as offsets on a device do. Must be constant.
    ///
    /// Otherwise 0 is the address of zero bytes, and a grant there is an error. A pool over such a source uses
    /// `u64::MAX` for zero bytes.
    fn starts_at_zero(&self) -> bool {
        false
    }

    /// Returns whether [`RegionSource::discard`] has an effect. Must be constant.
    fn discards(&self) -> bool {
        false
    }

    /// Drops the content of a span within a granted region: the physical memory may be freed until the next write.
    /// The span stays granted.
    fn discard(&mut self, _span: Grant) {}

    /// Returns the interface through which elastic pools reserve addresses and commit pages; `None` if the source has
    /// only whole regions. Must be constant.
    fn pages(&mut self) -> Option<&mut dyn PageSource> {
        None
    }

    /// Returns an object that reports the source's headroom; `None` means [`Headroom::UNKNOWN`]. Must be constant.
    ///
    /// A source that grants more than requested must return `None`. A wrapper that declines requests of its own must
    /// not pass on its upstream's gauge.
    fn gauge(&self) -> Option<Arc<dyn Gauge>> {
        None
    }

    /// Returns an object that reads and writes this source's memory in guard mode; `None` if that is impossible. Must
    /// be constant.
    ///
    /// A pool passes spans within granted regions to which no caller may write at that time.
    fn guard(&self) -> Option<Arc<dyn MemoryGuard>> {
        None
    }
}

/// How much a source could grant in one region at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Headroom {
    /// Regions of up to this many bytes are granted for sure, at exactly the requested length.
    pub guaranteed: u64,
    /// Longer regions than this are declined for sure until something is released.
    pub maximum: u64,
    /// Released bytes add to `guaranteed`.
    pub grants_released: bool,
    /// Each grant starts where the last one ended.
    pub is_sequential: bool,
}

impl Headroom {
    /// The headroom of a source that does not report any.
    pub const UNKNOWN: Self =
        Self { guaranteed: 0, maximum: u64::MAX, grants_released: false, is_sequential: false };
}

/// Reports the [`Headroom`] of a source. A pool calls it after refusals and for queries, possibly while another
/// thread is inside the source.
pub trait Gauge: fmt::Debug + Send + Sync + RefUnwindSafe {
    /// Returns the current headroom.
    fn headroom(&self) -> Headroom;
}

impl<S: RegionSource + ?Sized> RegionSource for Box<S> {
    fn reserve(&mut self, bytes: u64, alignment: u64) -> Result<Grant, ReserveError> {
        (**self).reserve(bytes, alignment)
    }

    fn release(&mut self, region: Grant) {
        (**self).release(region);
    }

    fn joins_regions(&self) -> bool {
        (**self).joins_regions()
    }

    fn starts_at_zero(&self) -> bool {
        (**self).starts_at_zero()
    }

    fn discards(&self) -> bool {
        (**self).discards()
    }

    fn discard(&mut self, span: Grant) {
        (**self).discard(span);
    }

    fn pages(&mut self) -> Option<&mut dyn PageSource> {
        (**self).pages()
    }

    fn gauge(&self) -> Option<Arc<dyn Gauge>> {
        (**self).gauge()
    }

    fn guard(&self) -> Option<Arc<dyn MemoryGuard>> {
        (**self).guard()
    }
}

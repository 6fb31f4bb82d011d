//! Where regions come from.
//!
//! A source gets numbers and gives numbers. It never sees the allocator, and nobody calls it with the
//! pool's lock held, so it may be slow, or written in Python.

use std::error::Error;
use std::fmt;
use std::panic::RefUnwindSafe;
use std::sync::Arc;

use crate::guard::MemoryGuard;

mod address_space;
mod capped;
mod falling;
mod recording;
mod refusing;

pub use address_space::AddressSpace;
pub use capped::{Cap, Capped};
pub use falling::FallingAddresses;
pub use recording::{Call, Log, Recording};
pub use refusing::Refusing;

/// A span of memory that a source has handed over: `bytes` bytes from `address`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Grant {
    /// First byte; a multiple of the alignment asked for, never 0.
    pub address: u64,
    /// Length in bytes; a multiple of [`GRANULE`](crate::GRANULE).
    pub bytes: u64,
}

impl Grant {
    /// The first byte after the span.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.address + self.bytes
    }
}

/// What a source says instead of granting.
#[derive(Debug, Clone)]
pub enum Refusal {
    /// Not that many bytes: a smaller request may be granted.
    Declined,
    /// The source itself broke; asking again is no use. The failure reaches the caller as it is.
    Failed(SourceFailure),
}

/// What went wrong inside a source, kept as it was raised.
pub type SourceFailure = Arc<dyn Error + Send + Sync>;

/// Grants regions and takes them back.
///
/// A pool calls its source from one thread at a time and never while it holds its lock. A source may free
/// memory of the same pool, and may allocate from it what fits without growth.
pub trait RegionSource: Send {
    /// Reserves at least `bytes` bytes, a multiple of [`GRANULE`](crate::GRANULE), at a multiple of
    /// `alignment`.
    ///
    /// The grant may be longer than asked and says how long it is. One that would take the pool over its
    /// limit, or is too short to serve the request behind it, is handed back at once.
    ///
    /// # Errors
    /// When it has no such span.
    fn reserve(&mut self, bytes: u64, alignment: u64) -> Result<Grant, Refusal>;

    /// Takes a region back: a former grant, or the span of several that were joined.
    fn release(&mut self, region: Grant);

    /// Whether a grant that starts where another ends may be joined to it. The answer never changes.
    fn joins_regions(&self) -> bool {
        false
    }

    /// Whether [`RegionSource::discard`] does anything. The answer never changes.
    fn discards(&self) -> bool {
        false
    }

    /// What is in a span of a region that is out is of no use to anybody: the memory behind it may go, until
    /// somebody writes there again. The span stays out.
    fn discard(&mut self, _span: Grant) {}

    /// What tells how much it could grant; none where that is [`Headroom::UNKNOWN`]. The answer never changes.
    ///
    /// A source that grants more than it was asked for has none, and one that declines what its upstream would grant
    /// must not pass on that one's.
    fn gauge(&self) -> Option<Arc<dyn Gauge>> {
        None
    }

    /// What touches this source's memory for a pool in guard mode; none where that is not to be touched, or
    /// cannot be. The answer never changes.
    ///
    /// A pool passes it spans within regions that this source has granted and not taken back, of memory that no
    /// caller may write to at the time.
    fn guard(&self) -> Option<Arc<dyn MemoryGuard>> {
        None
    }
}

/// How much a source could grant, in one region, at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Headroom {
    /// It grants regions of up to so many bytes for sure, exactly as long as asked for.
    pub sure: u64,
    /// It refuses longer regions than this for sure, until something is released.
    pub most: u64,
    /// What is released adds to `sure`.
    pub grants_released: bool,
    /// Each grant starts where the last one ended.
    pub is_sequential: bool,
}

impl Headroom {
    /// Of a source that says nothing.
    pub const UNKNOWN: Self = Self { sure: 0, most: u64::MAX, grants_released: false, is_sequential: false };
}

/// Tells the [`Headroom`] of a source. A pool asks after a refusal, also while another thread is in a call of the
/// source, and answers questions and gives advice by it.
pub trait Gauge: fmt::Debug + Send + Sync + RefUnwindSafe {
    /// What the source could grant now.
    fn headroom(&self) -> Headroom;
}

impl<S: RegionSource + ?Sized> RegionSource for Box<S> {
    fn reserve(&mut self, bytes: u64, alignment: u64) -> Result<Grant, Refusal> {
        (**self).reserve(bytes, alignment)
    }

    fn release(&mut self, region: Grant) {
        (**self).release(region);
    }

    fn joins_regions(&self) -> bool {
        (**self).joins_regions()
    }

    fn discards(&self) -> bool {
        (**self).discards()
    }

    fn discard(&mut self, span: Grant) {
        (**self).discard(span);
    }

    fn gauge(&self) -> Option<Arc<dyn Gauge>> {
        (**self).gauge()
    }

    fn guard(&self) -> Option<Arc<dyn MemoryGuard>> {
        (**self).guard()
    }
}

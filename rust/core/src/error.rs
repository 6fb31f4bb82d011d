//! Error types: they carry numbers, and their `Display` texts are used by every language.
//!
//! Longer than 300 lines: one variant after the other, each with its text.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::time::Duration;

use thiserror::Error;

use crate::guard::Damage;
use crate::options::MAX_WAIT;
use crate::report::out_of_memory::OutOfMemory;
use crate::request::MAX_ALIGNMENT;
use crate::source::{Grant, SourceFailure};
use crate::tables::owner::ScopeLimitReached;
use crate::units::MAX_BYTES;

/// Why a request was not served. The pool is unchanged.
#[derive(Debug, Clone, Error)]
#[non_exhaustive]
pub enum AllocError {
    /// No free chunk fits, and the pool cannot grow.
    #[error(transparent)]
    OutOfMemory(#[from] Box<OutOfMemory>),
    /// The request exceeds the size of any pool.
    #[error("cannot allocate {bytes} bytes: the largest request is {MAX_BYTES} bytes")]
    TooLarge {
        /// Requested bytes.
        bytes: u64,
    },
    /// The alignment is not a power of two up to [`MAX_ALIGNMENT`].
    #[error("alignment {alignment} is not a power of two between 1 and {MAX_ALIGNMENT}")]
    BadAlignment {
        /// The requested alignment in bytes.
        alignment: u64,
    },
    /// The source itself failed.
    #[error("the region source failed: {failure}")]
    SourceFailed {
        /// The failure, as the source raised it.
        failure: SourceFailure,
        /// The refused request, with the state of the pool at that moment.
        refused: Box<OutOfMemory>,
    },
    /// The source granted a span that cannot become a region.
    #[error("the region source granted {} bytes at address {}, which {fault}", grant.bytes, grant.address)]
    BadGrant {
        /// The span.
        grant: Grant,
        /// The reason.
        fault: GrantFault,
    },
    /// Guard mode found memory damage since the last call that could report it: see [`Options::guard`]. Each damage
    /// is reported once; the next call proceeds.
    ///
    /// [`Options::guard`]: crate::Options::guard
    #[error(transparent)]
    Damaged(#[from] Damage),
    /// The pool cannot be used.
    #[error(transparent)]
    Unusable(#[from] Unusable),
}

/// Why a granted span cannot become a region.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[cfg_attr(not(feature = "_exhaustive"), non_exhaustive)]
pub enum GrantFault {
    /// Its address or length is not a multiple of the page size of an elastic pool.
    #[error(
        "is not a multiple of the page size of {page_size} bytes in address and length; it was handed back"
    )]
    NoPages {
        /// The page size of the pool, in bytes.
        page_size: u64,
    },
    /// A range of addresses for an elastic pool is shorter than needed.
    #[error("is shorter than the {needed} bytes that were needed; it was handed back")]
    TooShort {
        /// The least bytes that the pool could use.
        needed: u64,
    },
    /// It has no bytes.
    #[error("has no bytes; it was handed back")]
    Empty,
    /// Its address or length is not a multiple of the granule.
    #[error("is not a multiple of 256 in address and length; it was handed back")]
    Misaligned,
    /// It starts at address 0 or ends beyond the last address.
    #[error("is not within the addresses from 1 to {MAX_BYTES}; it was handed back")]
    OutOfRange,
    /// It overlaps a region that the pool holds.
    #[error("overlaps a region that it granted before and was not given back")]
    Overlap,
}

/// Why a pool cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Unusable {
    /// It was closed.
    #[error("the pool is closed and takes no more requests: make a new one")]
    Closed,
    /// It was paused.
    #[error("the pool is paused, and none of its pages has memory: resume it first")]
    Paused,
    /// The process was forked after the pool was made.
    #[error(
        "the process was forked after this pool was made, and its state does not survive that: make a new \
         pool in the child"
    )]
    Forked,
    /// The source called back into its own pool for an operation that needs the source lock.
    #[error(
        "the region source called its own pool for something that has to wait for that source: a request \
         that fits what is reserved, or a free, would have been served"
    )]
    InsideSource,
    /// The system call `membarrier` was forbidden after the pool was made.
    #[error(
        "the system call membarrier has been forbidden since this pool was made, and the thread that used the pool \
         last does not use it now: allow membarrier, forbid it before pools are made, or make a new pool"
    )]
    BarrierForbidden,
    /// The thread is about to end, and opens a scope of its own after its thread-local data is gone.
    #[error(
        "this thread is about to end, and can open no scope of its own: open it earlier, or a shared one"
    )]
    ThreadEnds,
}

/// Why an address was not freed. Except for [`FreeError::Damaged`], the pool is unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum FreeError {
    /// No allocation in use starts there: it was freed before, or never allocated by this pool.
    #[error(
        "address {address:#x} is not the start of an allocation of this pool: freed twice, or never its own"
    )]
    NotAllocated {
        /// The address passed.
        address: u64,
    },
    /// Another runtime holds it, or exposes its memory.
    #[error("the allocation at address {address:#x} is held: only the runtime that holds it can free it")]
    Pinned {
        /// The address passed.
        address: u64,
    },
    /// The allocation was freed, and guard mode found damage: its own, or earlier damage that no call could report.
    /// See [`Options::guard`](crate::Options::guard).
    #[error(transparent)]
    Damaged(#[from] Damage),
    /// The pool cannot be used.
    #[error(transparent)]
    Unusable(#[from] Unusable),
}

/// Why an allocation keeps its size. Nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ResizeError {
    /// The memory after it is in use, or its region ends.
    #[error(
        "the allocation at address {address:#x} cannot grow to {bytes} bytes in place: it has {size} bytes, and with \
         the free memory after it {possible}"
    )]
    NoRoom {
        /// The address of the allocation.
        address: u64,
        /// The wanted bytes.
        bytes: u64,
        /// The usable bytes that it has.
        size: u64,
        /// The most bytes to which it can grow in place now.
        possible: u64,
    },
    /// A scope may not hold that much.
    #[error("the allocation at address {address:#x} cannot grow to {bytes} bytes: {limit}")]
    ScopeLimit {
        /// The address of the allocation.
        address: u64,
        /// The wanted bytes.
        bytes: u64,
        /// The usable bytes that it has.
        size: u64,
        /// The limit that it would exceed.
        limit: ScopeLimitReached,
    },
    /// Zero bytes are requested: only a free takes all memory of an allocation.
    #[error("the allocation at address {address:#x} cannot shrink to 0 bytes: free it")]
    ZeroBytes {
        /// The address of the allocation.
        address: u64,
    },
    /// No allocation in use starts there.
    #[error(
        "address {address:#x} is not the start of an allocation of this pool: freed before, or never its own"
    )]
    NotAllocated {
        /// The address passed.
        address: u64,
    },
    /// Another runtime holds it, or exposes its memory.
    #[error("the allocation at address {address:#x} is held: only the runtime that holds it can resize it")]
    Pinned {
        /// The address passed.
        address: u64,
    },
    /// The pool cannot be used.
    #[error(transparent)]
    Unusable(#[from] Unusable),
}

/// Why the chunk of an allocation cannot become larger.
#[derive(Debug)]
pub(crate) enum Shortage {
    /// The chunk has `size` bytes and, with the free chunk after it, `possible`.
    Neighbour { size: u64, possible: u64 },
    /// A scope limit forbids it.
    Scope { size: u64, limit: ScopeLimitReached },
}

/// Why a pool could not be created.
#[derive(Debug, Clone, Copy, PartialEq, Error)]
#[non_exhaustive]
pub enum OptionsError {
    /// The limit is 0 or above [`MAX_BYTES`].
    #[error("limit {limit} is not between 1 and {MAX_BYTES} bytes")]
    Limit {
        /// The limit passed, in bytes.
        limit: u64,
    },
    /// The option is one of pools, and an [`Allocator`](crate::Allocator) has no use for it.
    #[error("the option {option} is for pools: an allocator without one cannot keep it")]
    OnlyForPools {
        /// The name of the option.
        option: &'static str,
    },
    /// Guard mode was requested for memory that is not known to belong to this process.
    #[error(
        "guard mode writes to the memory and reads it: this source's is not known to be memory of this process"
    )]
    NotGuardable,
    /// The source has whole regions only.
    #[error("this source cannot commit memory page by page, which an elastic pool needs")]
    NotPaged,
    /// The page size is no power of two, no multiple of the source's granule, or above the limit.
    #[error(
        "page size {page_size} is not a power of two that is a multiple of {granule} bytes and at most the limit of \
         {limit} bytes"
    )]
    PageSize {
        /// The page size, in bytes: the one passed, or the source's own.
        page_size: u64,
        /// The smallest one of the source, in bytes.
        granule: u64,
        /// The limit, in bytes.
        limit: u64,
    },
    /// The option has no meaning in an elastic pool.
    #[error("an elastic pool cannot have the option {option}")]
    NotElastic {
        /// The name of the option.
        option: &'static str,
    },
    /// A page size without the option elastic.
    #[error("a page size is for elastic pools")]
    OnlyForElastic,
    /// The option changes where allocations lie, or which requests reach the pool.
    #[error("a pool with a plan cannot have the option {option}")]
    NotPlanned {
        /// The name of the option.
        option: &'static str,
    },
    /// The plan's alignment is below the granule, the unit of all chunks.
    #[error("the plan has an alignment of {alignment} bytes: a pool follows plans with 256 or more")]
    PlanAlignment {
        /// The alignment of the plan, in bytes.
        alignment: u64,
    },
    /// The limit leaves no room for the arena.
    #[error("the plan has an arena of {arena} bytes, which is above the limit of {limit} bytes")]
    PlanAboveLimit {
        /// The bytes of the arena.
        arena: u64,
        /// The limit, in bytes.
        limit: u64,
    },
    /// The wait exceeds a year.
    #[error("wait {wait:?} is not between 0 and {MAX_WAIT:?}")]
    Wait {
        /// The wait passed.
        wait: Duration,
    },
    /// The fraction is outside 0 to 1.
    #[error("fragmentation_fraction {fraction} is not between 0 and 1")]
    Fraction {
        /// The fraction passed.
        fraction: f64,
    },
}

/// Why a trim did not give back all that it was asked for.
#[derive(Debug, Clone, Error)]
#[non_exhaustive]
pub enum TrimError {
    /// The source did not take pages of an elastic pool, which keep their memory until a later trim.
    #[error("the region source failed: {failure}; it took {released} bytes, and the pool keeps the rest")]
    SourceFailed {
        /// The first failure, as the source raised it.
        failure: SourceFailure,
        /// The bytes that it took.
        released: u64,
    },
    /// The pool cannot be used. Nothing was given back.
    #[error(transparent)]
    Unusable(#[from] Unusable),
}

impl TrimError {
    /// Returns the bytes that the source took.
    #[must_use]
    pub fn released(&self) -> u64 {
        match self {
            Self::SourceFailed { released, .. } => *released,
            Self::Unusable(_) => 0,
        }
    }
}

/// Errors are equal if their values are, and if the failure of a source is the same object.
impl PartialEq for TrimError {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (
                Self::SourceFailed { failure, released },
                Self::SourceFailed { failure: other, released: also },
            ) => Arc::ptr_eq(failure, other) && released == also,
            (Self::Unusable(unusable), Self::Unusable(other)) => unusable == other,
            _ => false,
        }
    }
}

/// Why a limit was not changed. The pool is unchanged, but for free memory that it gave back before
/// [`LimitError::SourceFailed`], or before another thread used what was to be given back.
#[derive(Debug, Clone, Error)]
#[non_exhaustive]
pub enum LimitError {
    /// The limit is 0 or above [`MAX_BYTES`].
    #[error("limit {limit} is not between 1 and {MAX_BYTES} bytes")]
    OutOfRange {
        /// The limit passed, in bytes.
        limit: u64,
    },
    /// More bytes are reserved than the limit allows.
    #[error("limit {limit} is below the {reserved} bytes that {}", floor(*after_trim, *trim_helps))]
    BelowReserved {
        /// The limit passed, in bytes.
        limit: u64,
        /// Bytes of the regions that would remain; in a paused pool, those that it has after a resume.
        reserved: u64,
        /// Whether a trim was requested and does not suffice.
        after_trim: bool,
        /// Whether a trim would suffice.
        trim_helps: bool,
    },
    /// The source did not take enough of an elastic pool's free pages.
    #[error(
        "limit {limit} is below the {reserved} bytes that stay reserved, as the region source failed: {failure}"
    )]
    SourceFailed {
        /// The limit passed, in bytes.
        limit: u64,
        /// Bytes of the pages that have memory still, or have it after a resume.
        reserved: u64,
        /// The first failure, as the source raised it.
        failure: SourceFailure,
    },
    /// The allocations of a paused pool have more pages than the limit allows.
    #[error(
        "limit {limit} is below the {bytes} bytes that resuming the paused pool takes: free something first"
    )]
    BelowPaused {
        /// The limit passed, in bytes.
        limit: u64,
        /// Bytes of the pages that allocations touch.
        bytes: u64,
    },
    /// The pool cannot be used.
    #[error(transparent)]
    Unusable(#[from] Unusable),
}

/// Errors are equal if their values are, and if the failure of a source is the same object.
impl PartialEq for LimitError {
    fn eq(&self, other: &Self) -> bool {
        let failures_are_equal = match (self, other) {
            (Self::SourceFailed { failure, .. }, Self::SourceFailed { failure: other, .. }) => {
                Arc::ptr_eq(failure, other)
            }
            _ => true,
        };
        failures_are_equal && self.values() == other.values()
    }
}

impl LimitError {
    /// Returns the kind of the error and its values, but for the failure of a source.
    fn values(&self) -> (core::mem::Discriminant<Self>, [u64; 2], [bool; 2], Option<Unusable>) {
        let (numbers, flags, unusable) = match *self {
            Self::OutOfRange { limit } => ([limit, 0], [false; 2], None),
            Self::BelowReserved { limit, reserved, after_trim, trim_helps } => {
                ([limit, reserved], [after_trim, trim_helps], None)
            }
            Self::SourceFailed { limit, reserved, .. } => ([limit, reserved], [false; 2], None),
            Self::BelowPaused { limit, bytes } => ([limit, bytes], [false; 2], None),
            Self::Unusable(unusable) => ([0; 2], [false; 2], Some(unusable)),
        };
        (core::mem::discriminant(self), numbers, flags, unusable)
    }
}

fn floor(after_trim: bool, trim_helps: bool) -> &'static str {
    match (after_trim, trim_helps) {
        (true, _) => "stay reserved after a trim: free something first",
        (false, true) => "are reserved: trim first",
        (false, false) => "are reserved: free something first, then trim",
    }
}

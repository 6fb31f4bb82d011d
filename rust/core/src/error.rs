//! What can go wrong, in numbers. The sentences are made here, once, for every language.

use std::time::Duration;

use thiserror::Error;

use crate::guard::Damage;
use crate::pool::MAX_WAIT;
use crate::refusal::OutOfMemory;
use crate::source::{Grant, SourceFailure};
use crate::units::MAX_BYTES;

/// Why a request was not served. Nothing was taken and nothing was lost.
#[derive(Debug, Clone, Error)]
#[non_exhaustive]
pub enum AllocError {
    /// No free chunk fits and there is no more to get.
    #[error(transparent)]
    OutOfMemory(#[from] Box<OutOfMemory>),
    /// More than any pool can hold.
    #[error("cannot allocate {bytes} bytes: the largest request is {MAX_BYTES} bytes")]
    TooLarge {
        /// Bytes asked for.
        bytes: u64,
    },
    /// An alignment that is no power of two up to 4096.
    #[error("alignment {alignment} is not a power of two between 1 and 4096")]
    BadAlignment {
        /// The alignment asked for, in bytes.
        alignment: u64,
    },
    /// The source itself broke while it was asked.
    #[error("the region source failed: {failure}")]
    SourceFailed {
        /// What it raised, and the state of the pool at that moment.
        failure: SourceFailure,
        /// The request that was refused for it.
        refused: Box<OutOfMemory>,
    },
    /// The source granted a span that cannot be a region.
    #[error("the region source granted {} bytes at address {}, which {fault}", grant.bytes, grant.address)]
    BadGrant {
        /// The span.
        grant: Grant,
        /// What is wrong with it.
        fault: GrantFault,
    },
    /// Memory was found damaged since the last call that could say so: see [`Options::guard`]. Each damage is told
    /// once; the next call goes on.
    ///
    /// [`Options::guard`]: crate::Options::guard
    #[error(transparent)]
    Damaged(#[from] Damage),
    /// The pool cannot be used at all.
    #[error(transparent)]
    Unusable(#[from] Unusable),
}

/// What is wrong with a span that a source granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum GrantFault {
    /// Address or length is not a multiple of the granule.
    #[error("is not a multiple of 256 in address and length; it was handed back")]
    Misaligned,
    /// It starts at address 0 or ends past the last address.
    #[error("is not within the addresses from 1 to {MAX_BYTES}; it was handed back")]
    OutOfRange,
    /// It overlaps a region the pool still holds.
    #[error("overlaps a region that it granted before and was not given back")]
    Overlap,
}

/// Why a pool does nothing any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Unusable {
    /// It was closed.
    #[error("the pool is closed and takes no more requests: make a new one")]
    Closed,
    /// The process was forked after the pool was made.
    #[error(
        "the process was forked after this pool was made, and its state does not survive that: make a new \
         pool in the child, or start the child with spawn"
    )]
    Forked,
    /// The source called back into its own pool for something that needs the source.
    #[error(
        "the region source called its own pool for something that has to wait for that source: a request \
         that fits what is reserved, or a free, would have been served"
    )]
    InsideSource,
}

/// Why an address was not freed; except for [`FreeError::Damaged`], the pool is as it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum FreeError {
    /// Not the start of a chunk in use: freed before, or never handed out.
    #[error(
        "address {address:#x} is not the start of an allocation of this pool: freed twice, or never its own"
    )]
    NotAllocated {
        /// The address that was passed.
        address: u64,
    },
    /// Somebody has a view of its memory: see [`Pool::pin`](crate::Pool::pin).
    #[error("the allocation at address {address:#x} has a buffer or an array over it: drop that first")]
    Pinned {
        /// The address that was passed.
        address: u64,
    },
    /// It was freed, and memory was found damaged: its own, or some that was found since the last call that could
    /// say so. See [`Options::guard`](crate::Options::guard).
    #[error(transparent)]
    Damaged(#[from] Damage),
    /// The pool cannot be used at all.
    #[error(transparent)]
    Unusable(#[from] Unusable),
}

/// Why a pool could not be made.
#[derive(Debug, Clone, Copy, PartialEq, Error)]
#[non_exhaustive]
pub enum OptionsError {
    /// A limit of nothing, or above [`MAX_BYTES`].
    #[error("limit {limit} is not between 1 and {MAX_BYTES} bytes")]
    Limit {
        /// The limit that was passed, in bytes.
        limit: u64,
    },
    /// Guard mode for memory that is not this process's own.
    #[error(
        "guard mode writes to the memory and reads it: this source's is not known to be memory of this process"
    )]
    NotGuardable,
    /// A wait of more than a year.
    #[error("wait_seconds {} is not between 0 and {}", wait.as_secs_f64(), MAX_WAIT.as_secs())]
    Wait {
        /// The wait that was passed.
        wait: Duration,
    },
    /// A fraction outside 0 to 1.
    #[error("fragmentation_fraction {fraction} is not between 0 and 1")]
    Fraction {
        /// The fraction that was passed.
        fraction: f64,
    },
}

/// Why a limit was not changed. The pool is as it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum LimitError {
    /// A limit of nothing, or above [`MAX_BYTES`].
    #[error("limit {limit} is not between 1 and {MAX_BYTES} bytes")]
    OutOfRange {
        /// The limit that was passed, in bytes.
        limit: u64,
    },
    /// More is reserved than the limit would allow.
    #[error("limit {limit} is below the {reserved} bytes that {}", floor(*after_trim, *trim_helps))]
    BelowReserved {
        /// The limit that was passed, in bytes.
        limit: u64,
        /// Bytes of the regions that would stay.
        reserved: u64,
        /// Whether a trim was asked for, and would not be enough.
        after_trim: bool,
        /// Whether a trim would be enough.
        trim_helps: bool,
    },
    /// The pool cannot be used at all.
    #[error(transparent)]
    Unusable(#[from] Unusable),
}

fn floor(after_trim: bool, trim_helps: bool) -> &'static str {
    match (after_trim, trim_helps) {
        (true, _) => "stay reserved after a trim: free something first",
        (false, true) => "are reserved: trim first",
        (false, false) => "are reserved: free something first, then trim",
    }
}

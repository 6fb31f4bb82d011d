//! What can go wrong, in numbers. The sentences are made here, once, for every language.

use std::fmt;
use std::time::Duration;

use thiserror::Error;

use crate::pool::MAX_WAIT;
use crate::source::{Grant, SourceFailure};
use crate::units::{Bytes, MAX_BYTES};

/// Why a request was not served. Nothing was taken and nothing was lost.
#[derive(Debug, Clone, Error)]
#[non_exhaustive]
pub enum AllocError {
    /// No free chunk fits and there is no more to get.
    #[error(transparent)]
    OutOfMemory(#[from] OutOfMemory),
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
        refused: OutOfMemory,
    },
    /// The source granted a span that cannot be a region.
    #[error("the region source granted {} bytes at address {}, which {fault}", grant.bytes, grant.address)]
    BadGrant {
        /// The span.
        grant: Grant,
        /// What is wrong with it.
        fault: GrantFault,
    },
    /// The pool cannot be used at all.
    #[error(transparent)]
    Unusable(#[from] Unusable),
}

/// No free chunk fits and there is no more to get. All figures are of the moment of the refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub struct OutOfMemory {
    /// Bytes asked for.
    pub requested: u64,
    /// Bytes a chunk would have had to have: rounded, padding for alignment included.
    pub needed: u64,
    /// The most the pool may reserve, in bytes.
    pub limit: u64,
    /// Bytes of the chunks in use.
    pub in_use: u64,
    /// Bytes of all regions.
    pub reserved: u64,
    /// `reserved - in_use`, in bytes.
    pub free: u64,
    /// Size of the largest free chunk in bytes, 0 if there is none.
    pub largest_free: u64,
    /// Allocations held.
    pub num_live: u64,
    /// What stood in the way.
    pub verdict: Verdict,
    /// Handing back wholly free regions would let the pool grow enough, and it is set not to do so itself.
    pub trim_helps: bool,
}

/// What stood in the way of a refused request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "lowercase"))]
pub enum Verdict {
    /// In use and the request together are above the limit: no arrangement would hold them.
    Full,
    /// There is room under the limit, but in pieces that are too small.
    Fragmented,
    /// The request alone is above the limit.
    Limit,
    /// The limit would allow it; the source would not.
    Source,
}

impl Verdict {
    /// The word other programs see.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Fragmented => "fragmented",
            Self::Limit => "limit",
            Self::Source => "source",
        }
    }
}

impl fmt::Display for OutOfMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            requested, needed, limit, in_use, reserved, free, largest_free, num_live, verdict, ..
        } = *self;
        write!(f, "out of memory: asked for {} ({requested} bytes", Bytes(requested))?;
        if needed != requested {
            write!(f, ", {needed} rounded up")?;
        }
        writeln!(f, ")")?;
        let mut line = |what: &str, bytes: u64, note: &str| {
            writeln!(f, "  {what:<14} {:>12}  {bytes} bytes{note}", Bytes(bytes))
        };
        line("limit", limit, "")?;
        let plural = if num_live == 1 { "" } else { "s" };
        line("in use", in_use, &format!(" in {num_live} allocation{plural}"))?;
        line("reserved", reserved, "")?;
        line("free", free, "")?;
        line("largest free", largest_free, "")?;
        let (said, help) = match verdict {
            _ if self.trim_helps => (
                "free regions are in the way: the pool is at its limit and is set to keep them",
                "call trim(), or make the pool with trim_on_oom on",
            ),
            Verdict::Full => (
                "full: what is in use and the request together are above the limit",
                "free something first, or make the limit larger",
            ),
            Verdict::Fragmented => (
                "fragmented, not full: the room under the limit is in pieces that are too small",
                "free the allocations between the pieces, or allocate the large ones first",
            ),
            Verdict::Limit => {
                ("the request alone is above the limit", "ask for less, or make the limit larger")
            }
            Verdict::Source => (
                "the limit allows it, the source of the memory refused",
                "free something, or find out what else uses the memory behind the source",
            ),
        };
        write!(f, "  verdict        {said}\n  what helps     {help}")
    }
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

/// Why an address was not freed. The pool is as it was.
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

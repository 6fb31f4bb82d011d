//! Static plans: where each buffer of a known program lies, so that a small arena holds them all.
//!
//! The problem is *dynamic storage allocation*: buffers with a size and a lifetime, those that live at the same time
//! apart from each other. No arena is smaller than the most bytes that live at once. Whether one of that size suffices is
//! NP-complete, so [`plan`] searches for a time, and says what it found beside that bound.
//!
//! ```text
//! offset
//!   ▲ ┌──────┐   ┌────┐
//!   │ │  B   │   │ D  │   a buffer is a rectangle: its lifetime wide, its size high;
//!   │ └──────┘ ┌─┴────┤   the arena is as high as the highest one reaches
//!   │ ┌────────┤  C   │
//!   │ │   A    │      │
//!   └─┴────────┴──────┴──▶ time
//! ```

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use thiserror::Error;

use crate::units::{GRANULE, MAX_BYTES};

#[cfg(feature = "std")]
mod clock;
#[cfg(feature = "std")]
mod exact;
#[cfg(feature = "std")]
mod neighbours;
#[cfg(feature = "std")]
mod orders;
#[cfg(feature = "std")]
mod placing;
#[cfg(feature = "std")]
mod sections;
#[cfg(feature = "std")]
mod solve;
#[cfg(feature = "std")]
mod sweep;

#[cfg(feature = "std")]
pub use clock::{Effort, PlanProgress};
#[cfg(feature = "std")]
pub use solve::plan;

/// The largest alignment of a plan in bytes.
pub const MAX_PLAN_ALIGNMENT: u64 = 1 << 40;

/// A buffer to plan: its size, and when it lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Buffer {
    /// Size in bytes, at least 1.
    pub bytes: u64,
    /// When it starts to live. Any unit of time; only the order counts.
    pub start: u64,
    /// When it ends: the first time at which it no longer lives, after `start`.
    pub end: u64,
}

/// An offset for each buffer, such that no two that live at the same time overlap. Every plan is checked when it is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    buffers: Vec<Buffer>,
    offsets: Vec<u64>,
    alignment: u64,
    arena: u64,
    lower_bound: u64,
    is_optimal: bool,
}

/// Why buffers and offsets are no plan. Buffers count from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PlanError {
    /// The alignment is not a power of two in the range.
    #[error("alignment {alignment} is not a power of two between 1 and {MAX_PLAN_ALIGNMENT}")]
    Alignment {
        /// The alignment.
        alignment: u64,
    },
    /// The numbers of buffers and offsets differ.
    #[error("there are {buffers} buffers and {offsets} offsets")]
    Lengths {
        /// The number of buffers.
        buffers: usize,
        /// The number of offsets.
        offsets: usize,
    },
    /// There are more buffers than the search can number.
    #[error("{buffers} buffers are more than {}, the most that are planned", u32::MAX)]
    TooMany {
        /// The number of buffers.
        buffers: usize,
    },
    /// A buffer has no bytes, or more than any arena.
    #[error("buffer {buffer}: {bytes} bytes are not between 1 and {MAX_BYTES}")]
    Size {
        /// The buffer.
        buffer: usize,
        /// Its size.
        bytes: u64,
    },
    /// A buffer ends before or when it starts.
    #[error("buffer {buffer}: it ends at {end}, which is not after its start {start}")]
    Lifetime {
        /// The buffer.
        buffer: usize,
        /// Its start.
        start: u64,
        /// Its end.
        end: u64,
    },
    /// A buffer starts before the one ahead of it in the list.
    #[error("buffer {buffer}: it starts before buffer {} does: buffers are in the order of their requests", buffer - 1)]
    Order {
        /// The buffer.
        buffer: usize,
    },
    /// An offset is not a multiple of the alignment.
    #[error("buffer {buffer}: offset {offset} is not a multiple of the alignment, {alignment}")]
    Misaligned {
        /// The buffer.
        buffer: usize,
        /// Its offset.
        offset: u64,
        /// The alignment.
        alignment: u64,
    },
    /// A buffer ends beyond the largest arena, or so many bytes live at once.
    #[error("buffer {buffer}: it ends beyond {MAX_BYTES} bytes, the most that an arena can have")]
    TooLarge {
        /// The buffer.
        buffer: usize,
    },
    /// Two buffers that live at the same time overlap.
    #[error("buffers {first} and {second} live at the same time and overlap at offset {offset}")]
    Overlap {
        /// The buffer that starts first.
        first: usize,
        /// The other one.
        second: usize,
        /// The first byte of both.
        offset: u64,
    },
    /// The caller ended the search before there was a plan.
    #[error("the search for a plan was ended")]
    Stopped,
}

impl Plan {
    /// Makes a plan of buffers, in the order of their requests, and of their offsets; checks it.
    ///
    /// Each buffer takes its bytes rounded up to the alignment, which is a power of two. For a pool that is to follow the
    /// plan it is at least [`GRANULE`].
    ///
    /// # Errors
    /// If a number is out of range, or two buffers overlap that live at the same time.
    ///
    /// # Cost
    /// n log n.
    pub fn new(buffers: Vec<Buffer>, offsets: Vec<u64>, alignment: u64) -> Result<Self, PlanError> {
        check_buffers(&buffers, alignment)?;
        if buffers.len() != offsets.len() {
            return Err(PlanError::Lengths { buffers: buffers.len(), offsets: offsets.len() });
        }
        let mut arena = 0;
        for (buffer, (&Buffer { bytes, .. }, &offset)) in buffers.iter().zip(&offsets).enumerate() {
            if !offset.is_multiple_of(alignment) {
                return Err(PlanError::Misaligned { buffer, offset, alignment });
            }
            let end = offset.checked_add(rounded(bytes, alignment)).filter(|&end| end <= MAX_BYTES);
            arena = arena.max(end.ok_or(PlanError::TooLarge { buffer })?);
        }
        let lower_bound = check_overlaps(&buffers, &offsets, alignment)?;
        let is_optimal = arena == lower_bound;
        Ok(Self { buffers, offsets, alignment, arena, lower_bound, is_optimal })
    }

    /// Notes what a search has proven: no arena is smaller. This is not checked.
    #[must_use]
    pub fn proven_optimal(self) -> Self {
        Self { is_optimal: true, ..self }
    }

    /// Returns the buffers in the order of their requests.
    #[must_use]
    pub fn buffers(&self) -> &[Buffer] {
        &self.buffers
    }

    /// Returns the offset of each buffer in bytes.
    #[must_use]
    pub fn offsets(&self) -> &[u64] {
        &self.offsets
    }

    /// Returns the alignment in bytes: offsets are multiples of it, and sizes are rounded up to it.
    #[must_use]
    pub fn alignment(&self) -> u64 {
        self.alignment
    }

    /// Returns the bytes that hold all buffers.
    #[must_use]
    pub fn arena(&self) -> u64 {
        self.arena
    }

    /// Returns the most bytes that live at once, each buffer rounded up to the alignment: no arena is smaller.
    #[must_use]
    pub fn lower_bound(&self) -> u64 {
        self.lower_bound
    }

    /// Returns whether no arena is smaller: this one has the lower bound, or the search has tried everything below it.
    #[must_use]
    pub fn is_optimal(&self) -> bool {
        self.is_optimal
    }

    /// Returns whether a pool can follow the plan: its alignment is at least the granule.
    #[must_use]
    pub fn fits_pools(&self) -> bool {
        self.alignment.is_multiple_of(GRANULE)
    }
}

/// Rounds up to a power of two.
pub(crate) fn rounded(bytes: u64, alignment: u64) -> u64 {
    bytes.div_ceil(alignment) * alignment
}

/// Checks all that does not depend on offsets.
fn check_buffers(buffers: &[Buffer], alignment: u64) -> Result<(), PlanError> {
    if !alignment.is_power_of_two() || alignment > MAX_PLAN_ALIGNMENT {
        return Err(PlanError::Alignment { alignment });
    }
    if u32::try_from(buffers.len()).is_err() {
        return Err(PlanError::TooMany { buffers: buffers.len() });
    }
    let mut last_start = 0;
    for (buffer, &Buffer { bytes, start, end }) in buffers.iter().enumerate() {
        if bytes == 0 || bytes > MAX_BYTES {
            return Err(PlanError::Size { buffer, bytes });
        }
        if start >= end {
            return Err(PlanError::Lifetime { buffer, start, end });
        }
        if start < last_start {
            return Err(PlanError::Order { buffer });
        }
        last_start = start;
    }
    Ok(())
}

/// Plays all starts and ends in the order of time and keeps the live ranges by offset. Returns the most live bytes.
///
/// Shares nothing with the search, so that it would notice its mistakes.
fn check_overlaps(buffers: &[Buffer], offsets: &[u64], alignment: u64) -> Result<u64, PlanError> {
    let mut by_end: Vec<usize> = (0..buffers.len()).collect();
    by_end.sort_unstable_by_key(|&buffer| buffers[buffer].end);
    let mut ended = by_end.into_iter().peekable();
    // The end and the buffer of each live range, by its start.
    let mut by_offset: BTreeMap<u64, (u64, usize)> = BTreeMap::new();
    let (mut bytes, mut most) = (0_u64, 0);
    for (buffer, &Buffer { bytes: size, start, .. }) in buffers.iter().enumerate() {
        while let Some(&gone) = ended.peek()
            && buffers[gone].end <= start
        {
            by_offset.remove(&offsets[gone]);
            bytes -= rounded(buffers[gone].bytes, alignment);
            ended.next();
        }
        let (offset, end) = (offsets[buffer], offsets[buffer] + rounded(size, alignment));
        // Live ranges are apart: the last one that starts below `end` is the only one that can reach `offset`.
        if let Some((&other_start, &(other_end, first))) = by_offset.range(..end).next_back()
            && other_end > offset
        {
            return Err(PlanError::Overlap { first, second: buffer, offset: offset.max(other_start) });
        }
        by_offset.insert(offset, (end, buffer));
        bytes += rounded(size, alignment);
        most = most.max(bytes);
    }
    Ok(most)
}

#[cfg(test)]
mod tests;

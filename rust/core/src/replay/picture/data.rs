//! What a picture shows, and how much of it.

use std::ops::Range;

use super::Shade;
use crate::replay::play::Outcome;

/// The part of a replay that a picture shows, and its most detail.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(not(feature = "_exhaustive"), non_exhaustive)]
pub struct Detail {
    /// The events that are shown. All events before them are replayed as well.
    pub events: Range<usize>,
    /// The most points of the curves, at least 1.
    pub points: usize,
    /// The most blocks that are shown one by one.
    pub blocks: usize,
    /// Columns and rows of the grid for all other blocks, at least 1 each.
    pub columns: usize,
    /// See `columns`.
    pub rows: usize,
}

impl Default for Detail {
    /// All events, and what fits a page of some thousand pixels.
    fn default() -> Self {
        Self { events: 0..usize::MAX, points: 16_384, blocks: 65_536, columns: 512, rows: 256 }
    }
}

/// The memory after the last of some events, and its extremes in bytes over all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(not(feature = "_exhaustive"), non_exhaustive)]
pub struct Point {
    /// The last of the events.
    pub event: usize,
    /// The fewest bytes live, as requested.
    pub least_live: u64,
    /// The most bytes live, as requested.
    pub most_live: u64,
    /// The most bytes of the chunks in use.
    pub most_in_use: u64,
    /// The most bytes of all regions.
    pub most_reserved: u64,
    /// Free bytes after the last event.
    pub free: u64,
    /// Bytes of the largest free chunk after the last event.
    pub largest_free: u64,
}

/// The chunk that served a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(not(feature = "_exhaustive"), non_exhaustive)]
pub struct BlockSpan {
    /// The event of the allocation; it may be before the events that are shown.
    pub start: usize,
    /// The event of the free; `None` if the block is live at the end of the program.
    pub end: Option<usize>,
    /// Distance from the first region's start in bytes.
    pub offset: u64,
    /// Bytes of the chunk.
    pub size: u64,
    /// Requested bytes.
    pub requested: u64,
}

/// The content of a picture of a replay.
#[derive(Debug)]
#[cfg_attr(not(feature = "_exhaustive"), non_exhaustive)]
pub struct Picture {
    /// The whole replay's result; its time includes what the picture took.
    pub outcome: Outcome,
    /// The events that are shown: those of [`Detail`], cut to the program's length.
    pub events: Range<usize>,
    /// The curves.
    pub points: Vec<Point>,
    /// Blocks of the largest area, by event of their allocation.
    pub blocks: Vec<BlockSpan>,
    /// The blocks that are not among them.
    pub shade: Shade,
    /// The end of the highest chunk that is shown, as a distance from the first region's start.
    pub top: u64,
    /// The event after which the most bytes are live, the first of several; `None` without events.
    pub peak: Option<usize>,
    /// All blocks that are live then, largest request first.
    pub at_peak: Vec<BlockSpan>,
    /// Refused requests that are shown: event and bytes.
    pub refusals: Vec<(usize, u64)>,
    /// Number and bytes of the requests that are shown by size: class n is of more than 2^(n-1) and up to 2^n bytes.
    pub sizes: [(u64, u64); 64],
}

impl BlockSpan {
    /// Whether the block is live after an event.
    pub(super) fn is_live(&self, event: Option<usize>) -> bool {
        event.is_some_and(|event| self.start <= event && self.end.is_none_or(|end| end > event))
    }

    /// Returns bytes times events, of the events that are shown.
    pub(super) fn area(&self, shown: &Range<usize>) -> u128 {
        let end = self.end.unwrap_or(shown.end).min(shown.end);
        u128::from(self.size) * (end.saturating_sub(self.start.max(shown.start))) as u128
    }
}

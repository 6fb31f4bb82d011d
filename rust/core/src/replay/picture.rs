//! A replay with the detail that a picture of it has room for.
//!
//! A recorded program may have millions of blocks and a page some thousand pixels. [`picture`] keeps the memory after
//! every n-th event with the extremes in between, the blocks of the largest area (size times lifetime), and the area of
//! all others as a grid of shares.

mod shade;

use std::ops::{ControlFlow, Range};

pub use shade::Shade;

use super::play::{Outcome, ReplayError, ReplayObserver, run};
use super::program::{Event, Program};
use crate::error::AllocError;
use crate::options::Options;
use crate::pool::Pool;
use crate::source::AddressSpace;
use crate::stats::Stats;
use crate::tables::Allocation;

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

/// What a picture of a replay shows.
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

/// Replays a program in a new pool on made-up addresses whose regions lie `gap` bytes apart, and keeps a picture of it.
///
/// # Errors
/// If the options are out of range.
///
/// # Panics
/// If `gap` is not a multiple of the granule.
pub fn picture(
    program: &Program,
    options: &Options,
    gap: u64,
    detail: &Detail,
) -> Result<Picture, ReplayError> {
    let pool = Pool::new(AddressSpace::new(gap), options.clone())?;
    let mut watcher = Watcher::new(&pool, program, detail);
    let start = std::time::Instant::now();
    let _ = run(&pool, program, &mut watcher).map_err(ReplayError::Alloc)?;
    let elapsed = start.elapsed();
    let stats = pool.stats().map_err(|error| ReplayError::Alloc(AllocError::Unusable(error)))?;
    let outcome = Outcome { refused: watcher.refused, first_refused: watcher.first_refused, elapsed, stats };
    Ok(watcher.finish(outcome, detail))
}

/// A block that is live.
#[derive(Clone, Copy)]
struct Live {
    start: usize,
    allocation: Allocation,
}

/// Watches a replay and collects the picture.
struct Watcher<'a> {
    pool: &'a Pool,
    program: &'a Program,
    events: Range<usize>,
    /// Number of events in a point.
    step: usize,
    points: Vec<Point>,
    live: Vec<Option<Live>>,
    blocks: Vec<BlockSpan>,
    refused: u64,
    first_refused: Option<usize>,
    refusals: Vec<(usize, u64)>,
    sizes: [(u64, u64); 64],
    /// The most bytes live so far, and after which event.
    peak: Option<(u64, usize)>,
}

impl<'a> Watcher<'a> {
    fn new(pool: &'a Pool, program: &'a Program, detail: &Detail) -> Self {
        let all = program.events().len();
        let end = detail.events.end.min(all);
        let events = detail.events.start.min(end)..end;
        Self {
            pool,
            program,
            step: events.len().div_ceil(detail.points.max(1)).max(1),
            events,
            points: Vec::new(),
            live: vec![None; program.slots()],
            blocks: Vec::new(),
            refused: 0,
            first_refused: None,
            refusals: Vec::new(),
            sizes: [(0, 0); 64],
            peak: None,
        }
    }

    fn slot(&self, event: usize) -> usize {
        match self.program.events()[event] {
            Event::Allocate { slot, .. } | Event::Free { slot } => slot as usize,
        }
    }

    /// Adds the memory after an event to the curves.
    fn add(&mut self, event: usize) {
        if !self.events.contains(&event) {
            return;
        }
        // The replay's own pool is not closed, and no other process has it.
        let Ok(Stats { requested, in_use, reserved, free, largest_free, .. }) = self.pool.stats() else {
            return;
        };
        if self.peak.is_none_or(|(most, _)| requested > most) {
            self.peak = Some((requested, event));
        }
        if (event - self.events.start).is_multiple_of(self.step) {
            self.points.push(Point { least_live: u64::MAX, ..Point::default() });
        }
        if let Some(point) = self.points.last_mut() {
            *point = Point {
                event,
                least_live: point.least_live.min(requested),
                most_live: point.most_live.max(requested),
                most_in_use: point.most_in_use.max(in_use),
                most_reserved: point.most_reserved.max(reserved),
                free,
                largest_free,
            };
        }
    }

    fn count(&mut self, event: usize) -> u64 {
        let Event::Allocate { bytes, .. } = self.program.events()[event] else { return 0 };
        if self.events.contains(&event) {
            let class = &mut self.sizes[bytes.next_power_of_two().trailing_zeros() as usize];
            class.0 += 1;
            class.1 += bytes;
        }
        bytes
    }

    fn finish(mut self, outcome: Outcome, detail: &Detail) -> Picture {
        for live in std::mem::take(&mut self.live).into_iter().flatten() {
            self.blocks.push(live.span(None));
        }
        let shown = self.events.clone();
        self.blocks.retain(|block| block.start < shown.end && block.end.is_none_or(|end| end > shown.start));
        let peak = self.peak.map(|(_, event)| event);
        let mut at_peak: Vec<_> = self.blocks.iter().copied().filter(|block| block.is_live(peak)).collect();
        at_peak.sort_by_key(|block| (std::cmp::Reverse(block.requested), block.start));
        let top = self.blocks.iter().map(|block| block.offset + block.size).max().unwrap_or(0);
        let mut shade = Shade::new(detail.columns, detail.rows);
        if self.blocks.len() > detail.blocks {
            let area = |block: &BlockSpan| block.area(&shown);
            if detail.blocks > 0 {
                let by_area =
                    |a: &BlockSpan, b: &BlockSpan| area(b).cmp(&area(a)).then(a.start.cmp(&b.start));
                self.blocks.select_nth_unstable_by(detail.blocks - 1, by_area);
            }
            for block in self.blocks.drain(detail.blocks..) {
                shade.add(&block, &shown, top);
            }
        }
        self.blocks.sort_by_key(|block| block.start);
        Picture {
            outcome,
            events: shown,
            points: self.points,
            blocks: self.blocks,
            shade,
            top,
            peak,
            at_peak,
            refusals: self.refusals,
            sizes: self.sizes,
        }
    }
}

impl Live {
    fn span(self, end: Option<usize>) -> BlockSpan {
        let Allocation { address, size, requested, .. } = self.allocation;
        BlockSpan { start: self.start, end, offset: address - AddressSpace::START, size, requested }
    }
}

impl BlockSpan {
    /// Whether the block is live after an event.
    fn is_live(&self, event: Option<usize>) -> bool {
        event.is_some_and(|event| self.start <= event && self.end.is_none_or(|end| end > event))
    }

    /// Returns bytes times events, of the events that are shown.
    fn area(&self, shown: &Range<usize>) -> u128 {
        let end = self.end.unwrap_or(shown.end).min(shown.end);
        u128::from(self.size) * (end.saturating_sub(self.start.max(shown.start))) as u128
    }
}

impl ReplayObserver for Watcher<'_> {
    fn allocated(&mut self, event: usize, allocation: &Allocation) -> ControlFlow<()> {
        self.count(event);
        // Zero bytes have no chunk.
        if allocation.id != 0 {
            let slot = self.slot(event);
            self.live[slot] = Some(Live { start: event, allocation: *allocation });
        }
        self.add(event);
        ControlFlow::Continue(())
    }

    fn refused(&mut self, event: usize) -> ControlFlow<()> {
        let bytes = self.count(event);
        self.refused += 1;
        self.first_refused = self.first_refused.or(Some(event));
        if self.events.contains(&event) {
            self.refusals.push((event, bytes));
        }
        self.add(event);
        ControlFlow::Continue(())
    }

    fn freed(&mut self, event: usize, _address: u64) {
        let slot = self.slot(event);
        if let Some(live) = self.live[slot].take() {
            self.blocks.push(live.span(Some(event)));
        }
        self.add(event);
    }
}

#[cfg(test)]
mod tests;

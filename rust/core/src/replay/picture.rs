//! A replay with the detail that a picture of it has room for.
//!
//! A recorded program may have millions of blocks and a page some thousand pixels. [`picture`] keeps the memory after
//! every n-th event with the extremes in between, the blocks of the largest area (size times lifetime), and the area of
//! all others as a grid of shares.

mod data;
mod shade;

use std::ops::{ControlFlow, Range};

pub use data::{BlockSpan, Detail, Picture, Point};
pub use shade::Shade;

use super::play::{Outcome, ReplayError, ReplayObserver, run};
use super::program::{Event, Program};
use crate::error::AllocError;
use crate::options::Options;
use crate::pool::Pool;
use crate::source::AddressSpace;
use crate::stats::Stats;
use crate::tables::Allocation;

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

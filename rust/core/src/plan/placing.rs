//! Places blocks one after the other, each into a gap between the placed ones that live at the same time.

use super::clock::Clock;
use super::neighbours::Neighbours;
use super::sections::Block;

/// The offset of a block that is not placed.
pub(super) const NOWHERE: u64 = u64::MAX;

/// Which gap a block gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fit {
    /// The lowest that is large enough.
    First,
    /// The smallest that is large enough, the lowest among equals.
    Best,
}

/// Places blocks, with what that needs again and again.
pub(super) struct Placer<'a> {
    pub(super) blocks: &'a [Block],
    pub(super) neighbours: Neighbours,
    pub(super) offsets: Vec<u64>,
    ranges: Vec<(u64, u64)>,
}

impl<'a> Placer<'a> {
    pub(super) fn new(blocks: &'a [Block]) -> Self {
        Self {
            blocks,
            neighbours: Neighbours::new(blocks),
            offsets: vec![NOWHERE; blocks.len()],
            ranges: Vec::new(),
        }
    }

    /// Places all blocks in an order; returns how far they reach. Gives up and returns `None` if that is `bound` or more,
    /// or if time is up.
    pub(super) fn place(
        &mut self,
        order: &[u32],
        fit: Fit,
        bound: u64,
        clock: &mut Clock<'_>,
    ) -> Option<u64> {
        self.offsets.fill(NOWHERE);
        self.neighbours.clear();
        let mut arena = 0;
        for &block in order {
            let block = block as usize;
            let offset = self.gap(block, fit);
            arena = arena.max(offset + self.blocks[block].size);
            self.offsets[block] = offset;
            self.neighbours.place(self.blocks, block);
            let steps = 1 + self.ranges.len() as u64 / 8;
            if arena >= bound || !clock.goes_on(steps) {
                return None;
            }
        }
        Some(arena)
    }

    /// Returns the offset of the gap for a block.
    fn gap(&mut self, block: usize, fit: Fit) -> u64 {
        let Self { blocks, neighbours, offsets, ranges } = self;
        ranges.clear();
        neighbours.visit(blocks, block, |other| {
            let offset = offsets[other];
            if offset != NOWHERE {
                ranges.push((offset, offset + blocks[other].size));
            }
        });
        ranges.sort_unstable();
        let size = blocks[block].size;
        let (mut end, mut best) = (0, None);
        for &(start, next_end) in &*ranges {
            let gap = start.saturating_sub(end);
            if gap >= size {
                if fit == Fit::First {
                    return end;
                }
                if best.is_none_or(|(smallest, _)| gap < smallest) {
                    best = Some((gap, end));
                }
            }
            end = end.max(next_end);
        }
        best.map_or(end, |(_, offset)| offset)
    }
}

//! Branch and bound: whether a part fits into an arena of a given size.
//!
//! Blocks are placed from below: each at the lowest offset that the blocks placed so far allow, and no block below one
//! that was placed before. Every way to fit the blocks can be pushed down to one that is found so (its *canonical* form).
//! The search gives up a branch as soon as a section cannot hold what is still to be placed in it, and where the rest
//! falls into parts that have no section in common it solves them one by one. Both are published for `MiniMalloc`
//! (Moffitt, ASPLOS 2024); which block is tried first decides nearly everything, so the search starts over under several
//! orders, each time with more steps.

use super::clock::Clock;
use super::neighbours::Neighbours;
use super::sections::{Part, totals};

/// The answer of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    /// It fits; the offsets say how.
    Fits,
    /// It does not.
    Impossible,
    /// The steps ran out.
    Unknown,
}

/// A change of the state, to be undone.
#[derive(Debug, Clone, Copy)]
enum Change {
    Raised { block: u32, before: u64 },
    Placed { block: u32 },
}

/// The state of a search.
pub(super) struct Exact<'a> {
    part: &'a Part,
    neighbours: &'a Neighbours,
    capacity: u64,
    /// The position of each block in the order in which equals are tried.
    rank: Vec<u32>,
    is_placed: Vec<bool>,
    /// The lowest offset of each block above the placed ones that live at the same time; of placed ones their own.
    pub(super) offsets: Vec<u64>,
    /// The number of blocks to be placed that live in a section and in the next one.
    crossing: Vec<u32>,
    /// Bytes of each section, for [`Exact::fits`].
    sums: Vec<u64>,
    /// The number of blocks that were ever placed, and that number when each block was raised last.
    placings: u64,
    raised_at: Vec<u64>,
    trail: Vec<Change>,
    steps_left: u64,
}

/// The last placement on the path to a node: the next one is not below it, and at the same offset not before it in
/// the order.
#[derive(Debug, Clone, Copy)]
struct Last {
    offset: u64,
    rank: u32,
}

impl<'a> Exact<'a> {
    /// Prepares the search for a part of which `neighbours` has the lists.
    pub(super) fn new(part: &'a Part, neighbours: &'a Neighbours) -> Self {
        Self {
            part,
            neighbours,
            capacity: 0,
            rank: vec![0; part.blocks.len()],
            is_placed: Vec::new(),
            offsets: Vec::new(),
            crossing: Vec::new(),
            sums: Vec::new(),
            placings: 0,
            raised_at: vec![0; part.blocks.len()],
            trail: Vec::new(),
            steps_left: 0,
        }
    }

    /// Searches for offsets below `capacity`, trying blocks in an order, for a number of nodes.
    pub(super) fn search(
        &mut self,
        capacity: u64,
        order: &[u32],
        nodes: u64,
        clock: &mut Clock<'_>,
    ) -> Answer {
        let blocks = &self.part.blocks;
        self.capacity = capacity;
        for (rank, &block) in (0..).zip(order) {
            self.rank[block as usize] = rank;
        }
        self.is_placed = vec![false; blocks.len()];
        self.offsets = vec![0; blocks.len()];
        self.crossing = vec![0; self.part.sections];
        for block in blocks {
            for section in block.from..block.to - 1 {
                self.crossing[section as usize] += 1;
            }
        }
        self.sums = vec![0; self.part.sections];
        self.trail.clear();
        self.steps_left = nodes;
        if totals(blocks, self.part.sections).into_iter().any(|total| total > capacity) {
            return Answer::Impossible;
        }
        self.descend(order, Last { offset: 0, rank: 0 }, clock)
    }

    /// Places all of `blocks`, which are sorted by their lowest offset and their rank and have no other neighbours to be
    /// placed.
    fn descend(&mut self, blocks: &[u32], last: Last, clock: &mut Clock<'_>) -> Answer {
        if blocks.is_empty() {
            return Answer::Fits;
        }
        if self.steps_left == 0 {
            return Answer::Unknown;
        }
        self.steps_left -= 1;
        // A block that starts above this leaves a gap below it that another one fills.
        let ends =
            blocks.iter().map(|&block| self.offsets[block as usize] + self.part.blocks[block as usize].size);
        let lowest_end = ends.min().unwrap_or(0);
        // Nor above this: what is to be placed in some section would not fit above it.
        let mut checked = last.offset;
        let mut rest = Vec::with_capacity(blocks.len() - 1);
        let mut raised = Vec::new();
        for &block in blocks {
            let (offset, rank) = (self.offsets[block as usize], self.rank[block as usize]);
            if offset >= lowest_end {
                break;
            }
            if (offset, rank) < (last.offset, last.rank) {
                continue;
            }
            if offset > checked {
                if !self.fits(blocks, offset) {
                    break;
                }
                checked = offset;
            }
            if !clock.goes_on(1 + blocks.len() as u64 / 8) {
                return Answer::Unknown;
            }
            let mark = self.trail.len();
            let splits = self.place(block);
            if self.raise(block, &mut raised) {
                self.merge(blocks, block, &raised, &mut rest);
                if self.fits(&rest, offset) {
                    let last = Last { offset, rank };
                    let answer = if splits {
                        self.descend_groups(&rest, last, clock)
                    } else {
                        self.descend(&rest, last, clock)
                    };
                    if answer != Answer::Impossible {
                        return answer;
                    }
                }
            }
            self.undo(mark);
        }
        Answer::Impossible
    }

    /// Places blocks that fall into groups without a section in common.
    fn descend_groups(&mut self, blocks: &[u32], last: Last, clock: &mut Clock<'_>) -> Answer {
        let mut group = 0;
        let group_of: Vec<u32> = self
            .crossing
            .iter()
            .map(|&crossing| {
                let current = group;
                group += u32::from(crossing == 0);
                current
            })
            .collect();
        let mut groups: Vec<(u32, Vec<u32>)> = Vec::new();
        for &block in blocks {
            let number = group_of[self.part.blocks[block as usize].from as usize];
            match groups.iter_mut().find(|(other, _)| *other == number) {
                Some((_, group)) => group.push(block),
                None => groups.push((number, vec![block])),
            }
        }
        // The smaller ones fail sooner, if they do.
        groups.sort_by_key(|(_, group)| group.len());
        for (_, group) in groups {
            match self.descend(&group, last, clock) {
                Answer::Fits => {}
                answer => return answer,
            }
        }
        Answer::Fits
    }

    /// Places a block at its lowest offset; returns whether those that remain may fall into groups.
    fn place(&mut self, block: u32) -> bool {
        let placed = self.part.blocks[block as usize];
        self.is_placed[block as usize] = true;
        self.placings += 1;
        self.trail.push(Change::Placed { block });
        let mut splits = false;
        for crossing in &mut self.crossing[placed.from as usize..placed.to as usize - 1] {
            *crossing -= 1;
            splits |= *crossing == 0;
        }
        splits
    }

    /// Raises the lowest offsets of those that live at the same time as a placed block. Returns false if one does not fit
    /// then.
    fn raise(&mut self, block: u32, raised: &mut Vec<u32>) -> bool {
        raised.clear();
        let end = self.offsets[block as usize] + self.part.blocks[block as usize].size;
        for &other in self.neighbours.list(block as usize) {
            let before = self.offsets[other as usize];
            if self.is_placed[other as usize] || before >= end {
                continue;
            }
            if end + self.part.blocks[other as usize].size > self.capacity {
                return false;
            }
            self.trail.push(Change::Raised { block: other, before });
            self.offsets[other as usize] = end;
            self.raised_at[other as usize] = self.placings;
            raised.push(other);
        }
        raised.sort_unstable_by_key(|&other| self.rank[other as usize]);
        true
    }

    /// Sorts what remains of `blocks` after a block was placed, which raised some to the same offset.
    fn merge(&self, blocks: &[u32], placed: u32, raised: &[u32], rest: &mut Vec<u32>) {
        rest.clear();
        let key = |block: u32| (self.offsets[block as usize], self.rank[block as usize]);
        let mut raised = raised.iter().copied().peekable();
        for &block in blocks {
            if block == placed || self.raised_at[block as usize] == self.placings {
                continue;
            }
            while let Some(&other) = raised.peek()
                && key(other) < key(block)
            {
                rest.push(other);
                raised.next();
            }
            rest.push(block);
        }
        rest.extend(raised);
    }

    /// Returns whether each section can hold what is to be placed in it: blocks with a lowest offset of at least some
    /// offset must fit above that. Nothing will be below `lowest`. `blocks` are sorted.
    fn fits(&mut self, blocks: &[u32], lowest: u64) -> bool {
        self.sums.fill(0);
        for &block in blocks.iter().rev() {
            let placed = self.part.blocks[block as usize];
            let room = self.capacity - self.offsets[block as usize].max(lowest);
            // The highest bit is set where a sum is above the room: this loop has no branch, and so runs in parallel.
            let mut above = 0;
            for sum in &mut self.sums[placed.from as usize..placed.to as usize] {
                *sum += placed.size;
                above |= room.wrapping_sub(*sum);
            }
            if above > u64::MAX / 2 {
                return false;
            }
        }
        true
    }

    /// Takes changes back until the trail is as long as `mark`.
    fn undo(&mut self, mark: usize) {
        while self.trail.len() > mark
            && let Some(change) = self.trail.pop()
        {
            match change {
                Change::Raised { block, before } => self.offsets[block as usize] = before,
                Change::Placed { block } => {
                    let placed = self.part.blocks[block as usize];
                    self.is_placed[block as usize] = false;
                    for crossing in &mut self.crossing[placed.from as usize..placed.to as usize - 1] {
                        *crossing += 1;
                    }
                }
            }
        }
    }
}

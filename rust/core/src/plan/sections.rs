//! Time as sections, and the parts of a problem that have no buffer in common.
//!
//! Only the moments count at which the live bytes may be at a maximum: after an allocation, before the next free. Time
//! falls into as many **sections**, and a buffer lives in consecutive ones. Two buffers live at the same time if and only
//! if they have a section in common.

use super::{Buffer, rounded};

/// A buffer as the search sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Block {
    /// Bytes rounded up to the alignment.
    pub(super) size: u64,
    /// The first section.
    pub(super) from: u32,
    /// The section behind the last one.
    pub(super) to: u32,
}

impl Block {
    /// Returns the number of sections.
    pub(super) fn width(self) -> u32 {
        self.to - self.from
    }

    /// Returns width times size.
    pub(super) fn area(self) -> u128 {
        u128::from(self.size) * u128::from(self.width())
    }
}

/// Buffers none of which lives at the same time as one of another part.
#[derive(Debug, Clone)]
pub(super) struct Part {
    /// The numbers of the buffers, in the order of their requests.
    pub(super) members: Vec<u32>,
    /// The same as blocks. Sections count from the start of the part.
    pub(super) blocks: Vec<Block>,
    /// The number of sections.
    pub(super) sections: usize,
    /// The most bytes that live at once.
    pub(super) lower_bound: u64,
}

/// Converts buffers, which are in the order of their starts, into blocks; returns also the number of sections.
pub(super) fn to_blocks(buffers: &[Buffer], alignment: u64) -> (Vec<Block>, usize) {
    let mut by_end: Vec<u32> = (0..).take(buffers.len()).collect();
    by_end.sort_by_key(|&buffer| buffers[buffer as usize].end);
    let mut ended = by_end.into_iter().peekable();
    let mut section = 0;
    let mut blocks: Vec<Block> = Vec::with_capacity(buffers.len());
    for buffer in buffers {
        let mut is_new = false;
        while let Some(&gone) = ended.peek()
            && buffers[gone as usize].end <= buffer.start
        {
            blocks[gone as usize].to = section + 1;
            is_new = true;
            ended.next();
        }
        if is_new {
            section += 1;
        }
        blocks.push(Block { size: rounded(buffer.bytes, alignment), from: section, to: u32::MAX });
    }
    for block in &mut blocks {
        block.to = block.to.min(section + 1);
    }
    let sections = if blocks.is_empty() { 0 } else { section as usize + 1 };
    (blocks, sections)
}

/// Returns the live bytes of each section.
pub(super) fn totals(blocks: &[Block], sections: usize) -> Vec<u64> {
    let mut changes = vec![0_i64; sections + 1];
    for block in blocks {
        changes[block.from as usize] += block.size.cast_signed();
        changes[block.to as usize] -= block.size.cast_signed();
    }
    let mut live = 0_i64;
    changes.truncate(sections);
    changes
        .into_iter()
        .map(|change| {
            live += change;
            live.cast_unsigned()
        })
        .collect()
}

/// Divides blocks, which are in the order of their first sections, where no block lives in two consecutive sections.
pub(super) fn parts(blocks: &[Block]) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    let (mut first, mut reach) = (0, 0);
    for index in 0..=blocks.len() {
        let is_cut = blocks.get(index).is_none_or(|block| block.from >= reach);
        if is_cut && index > first {
            parts.push(Part::new(blocks, first..index));
            first = index;
        }
        if let Some(block) = blocks.get(index) {
            reach = reach.max(block.to);
        }
    }
    parts
}

impl Part {
    fn new(all: &[Block], members: std::ops::Range<usize>) -> Self {
        let start = all[members.start].from;
        let blocks: Vec<_> = all[members.clone()]
            .iter()
            .map(|&Block { size, from, to }| Block { size, from: from - start, to: to - start })
            .collect();
        let sections = blocks.iter().map(|block| block.to as usize).max().unwrap_or(0);
        let lower_bound = totals(&blocks, sections).into_iter().max().unwrap_or(0);
        let members = members.map(|member| u32::try_from(member).expect("checked before")).collect();
        Self { members, blocks, sections, lower_bound }
    }
}

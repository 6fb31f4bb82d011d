//! Which placed blocks live at the same time as a block.

use super::sections::Block;

/// The most pairs of blocks that are kept in lists: 160 MiB.
const MAX_LISTED: u64 = 40 << 20;

/// Finds the blocks that have a section in common with a block.
#[derive(Debug)]
pub(super) enum Neighbours {
    /// A list for each block.
    Listed {
        /// The start of each list, and the end of the last.
        starts: Vec<u32>,
        /// All lists, one after the other.
        all: Vec<u32>,
    },
    /// A tree over the blocks, which are in the order of their first section, of the largest last section below each
    /// node; 0 where no block is placed.
    Searched {
        /// The nodes of each level, the leaves at the end.
        tree: Vec<u32>,
        /// The number of leaves, a power of two.
        leaves: usize,
    },
}

impl Neighbours {
    /// Prepares for blocks in the order of their first section.
    pub(super) fn new(blocks: &[Block]) -> Self {
        if count_pairs(blocks) <= MAX_LISTED {
            return Self::listed(blocks);
        }
        Self::searched(blocks)
    }

    /// Prepares the tree.
    pub(super) fn searched(blocks: &[Block]) -> Self {
        let leaves = blocks.len().next_power_of_two();
        Self::Searched { tree: vec![0; 2 * leaves], leaves }
    }

    /// Prepares lists whatever they take.
    pub(super) fn listed(blocks: &[Block]) -> Self {
        let mut pairs: Vec<(u32, u32)> = Vec::new();
        let mut lengths = vec![0_u32; blocks.len() + 1];
        let mut live: Vec<u32> = Vec::new();
        for (index, block) in (0..).zip(blocks) {
            live.retain(|&other| blocks[other as usize].to > block.from);
            for &other in &live {
                pairs.push((index, other));
                lengths[index as usize] += 1;
                lengths[other as usize] += 1;
            }
            live.push(index);
        }
        let mut next = 0;
        let starts: Vec<u32> = lengths
            .into_iter()
            .map(|length| {
                next += length;
                next - length
            })
            .collect();
        let mut ends = starts.clone();
        let mut all = vec![0; 2 * pairs.len()];
        for (one, other) in pairs {
            for (of, neighbour) in [(one, other), (other, one)] {
                let end = &mut ends[of as usize];
                all[*end as usize] = neighbour;
                *end += 1;
            }
        }
        Self::Listed { starts, all }
    }

    /// Returns the neighbours of a block, where they are listed.
    pub(super) fn list(&self, block: usize) -> &[u32] {
        match self {
            Self::Listed { starts, all } => &all[starts[block] as usize..starts[block + 1] as usize],
            Self::Searched { .. } => &[],
        }
    }

    /// Forgets which blocks are placed.
    pub(super) fn clear(&mut self) {
        if let Self::Searched { tree, .. } = self {
            tree.fill(0);
        }
    }

    /// Notes that a block is placed.
    pub(super) fn place(&mut self, blocks: &[Block], block: usize) {
        if let Self::Searched { tree, leaves } = self {
            let mut node = *leaves + block;
            let to = blocks[block].to;
            while node > 0 && tree[node] < to {
                tree[node] = to;
                node /= 2;
            }
        }
    }

    /// Calls `visit` with each neighbour of a block: in any order, and with those that are not placed if they are listed.
    pub(super) fn visit(&self, blocks: &[Block], block: usize, mut visit: impl FnMut(usize)) {
        match self {
            Self::Listed { .. } => self.list(block).iter().for_each(|&other| visit(other as usize)),
            Self::Searched { tree, leaves } => {
                let Block { from, to, .. } = blocks[block];
                // Blocks from here on start when this one is over.
                let end = blocks.partition_point(|other| other.from < to);
                visit_from(tree, *leaves, 1, (0, *leaves), end, from, &mut visit);
            }
        }
    }
}

/// Visits leaves below a node, of which `range` are the leaves: those before `end` with a last section behind `from`.
fn visit_from(
    tree: &[u32],
    leaves: usize,
    node: usize,
    range: (usize, usize),
    end: usize,
    from: u32,
    visit: &mut impl FnMut(usize),
) {
    if tree[node] <= from || range.0 >= end {
        return;
    }
    if node >= leaves {
        visit(node - leaves);
        return;
    }
    let middle = usize::midpoint(range.0, range.1);
    visit_from(tree, leaves, 2 * node, (range.0, middle), end, from, visit);
    visit_from(tree, leaves, 2 * node + 1, (middle, range.1), end, from, visit);
}

/// Counts the pairs of blocks with a section in common.
pub(super) fn count_pairs(blocks: &[Block]) -> u64 {
    let mut ends: Vec<u32> = blocks.iter().map(|block| block.to).collect();
    ends.sort_unstable();
    let (mut ended, mut pairs) = (0, 0);
    for (index, block) in blocks.iter().enumerate() {
        while ends[ended] <= block.from {
            ended += 1;
        }
        pairs += (index - ended) as u64;
    }
    pairs
}

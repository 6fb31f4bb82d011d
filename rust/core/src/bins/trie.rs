//! A radix tree for size classes with many free chunks, in best-fit order.
//!
//! The keys are the digits of size and address. An inner node branches on the first digit in which the chunks below
//! differ, so no node has a single child. Up to [`MAX_LEAF`] chunks form a leaf: a list that is linked through the
//! chunks. A lookup visits at most one node per digit, usually two or three.
//!
//! Longer than 300 lines: the nodes of the tree, and each change of them.

use alloc::vec;
use alloc::vec::Vec;
use core::num::NonZeroU32;

use crate::bins::free_list::{self, FreeChunk};
use crate::chunk::{ChunkTable, Handle};
use crate::units::GRANULE;

/// Bits of a digit.
const DIGIT: u32 = 5;
const CHILDREN: usize = 1 << DIGIT;
/// The most chunks of a leaf, and of the list that a dissolved tree leaves.
pub(crate) const MAX_LEAF: u8 = 8;
/// A node with this many chunks below it becomes a leaf again.
const COLLAPSE_COUNT: u32 = 5;
/// Length that marks a child as an inner node.
const NODE: u8 = u8::MAX;

/// Identifies a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NodeId(NonZeroU32);

impl NodeId {
    fn index(self) -> usize {
        self.0.get() as usize
    }
}

/// Size and address in granules, concatenated: the order of keys is best-fit order.
type Key = u128;

fn key(size: u64, address: u64) -> Key {
    const ADDRESS: u32 = u64::BITS - GRANULE.ilog2();
    Key::from(size / GRANULE) << ADDRESS | Key::from(address / GRANULE)
}

fn key_of(chunks: &ChunkTable, handle: Handle) -> Key {
    let chunk = chunks.get(handle);
    key(chunk.size, chunk.address)
}

#[derive(Debug, Clone, Copy, Default)]
struct Node {
    /// The digits before the one on which this node branches.
    prefix: Key,
    /// The number of bits after that digit.
    shift: u32,
    /// The number of chunks below.
    count: u32,
    /// Bit `d` is set iff digit `d` has a child.
    occupied: u32,
    /// Head of a leaf, or a node; in a vacant node, the first entry links to the next vacant node.
    children: [u32; CHILDREN],
    /// Chunks of the leaf, or [`NODE`].
    lengths: [u8; CHILDREN],
}

/// The child of a node for one digit.
#[derive(Debug, Clone, Copy)]
enum Child {
    Empty,
    List(Handle, u8),
    Node(NodeId),
}

/// The parent link of a node or leaf.
#[derive(Debug, Clone, Copy)]
enum Place {
    Root,
    Below(NodeId, usize),
}

impl Node {
    #[inline]
    fn prefix_of(&self, key: Key) -> Key {
        key >> self.shift >> DIGIT
    }

    #[inline]
    fn digit_of(&self, key: Key) -> usize {
        (key >> self.shift) as usize % CHILDREN
    }

    #[inline]
    fn child(&self, chunks: &ChunkTable, digit: usize) -> Child {
        let child = NonZeroU32::new(self.children[digit]);
        match (child, self.lengths[digit]) {
            (None, _) => Child::Empty,
            (Some(node), NODE) => Child::Node(NodeId(node)),
            (Some(head), length) => Child::List(chunks.handle(head), length),
        }
    }

    fn set_child(&mut self, digit: usize, child: Child) {
        let (number, length) = match child {
            Child::Empty => (0, 0),
            Child::List(head, length) => (head.number().get(), length),
            Child::Node(node) => (node.0.get(), NODE),
        };
        self.children[digit] = number;
        self.lengths[digit] = length;
        self.occupied &= !(1 << digit);
        self.occupied |= u32::from(number != 0) << digit;
    }

    /// Returns the child of the first occupied digit from `digit` on.
    fn child_from(&self, chunks: &ChunkTable, digit: usize) -> Option<Child> {
        let rest = self.occupied.checked_shr(u32::try_from(digit).unwrap_or(u32::MAX)).unwrap_or(0);
        (rest != 0).then(|| self.child(chunks, digit + rest.trailing_zeros() as usize))
    }
}

/// The nodes of all trees of an allocator.
#[derive(Debug)]
pub(crate) struct Tries {
    /// Index 0 is unused, so that 0 identifies no node.
    nodes: Vec<Node>,
    vacant: u32,
}

impl Default for Tries {
    fn default() -> Self {
        Self { nodes: vec![Node::default()], vacant: 0 }
    }
}

impl Tries {
    /// Builds a tree from a list of at least two chunks.
    pub(crate) fn of_list(&mut self, chunks: &mut ChunkTable, head: Handle) -> NodeId {
        let first = key_of(chunks, head);
        let members = free_list::members(chunks, Some(head));
        let differing = members.fold(0, |bits, handle| bits | (first ^ key_of(chunks, handle)));
        let root = self.allocate_node(first, differing);
        let mut at = Some(head);
        while let Some(handle) = at {
            at = chunks.get(handle).link;
            self.insert(chunks, root, handle);
        }
        root
    }

    /// Adds a chunk; returns the root, which may have changed.
    pub(crate) fn insert(&mut self, chunks: &mut ChunkTable, root: NodeId, handle: Handle) -> NodeId {
        let key = key_of(chunks, handle);
        // Marks the chunk as a member of a tree, not of a bin's list.
        chunks.get_mut(handle).back = Some(handle);
        let mut place = Place::Root;
        let mut at = root;
        loop {
            let node = self.node_mut(at);
            if node.prefix_of(key) != node.prefix {
                let above = self.insert_parent(chunks, at, key, handle);
                return self.replace_child(root, place, Child::Node(above)).unwrap_or(above);
            }
            node.count += 1;
            let digit = node.digit_of(key);
            let child = match node.child(chunks, digit) {
                Child::Node(below) => {
                    place = Place::Below(at, digit);
                    at = below;
                    continue;
                }
                Child::Empty => {
                    chunks.get_mut(handle).link = None;
                    Child::List(handle, 1)
                }
                Child::List(head, length) => {
                    chunks.get_mut(handle).link = Some(head);
                    if length < MAX_LEAF {
                        Child::List(handle, length + 1)
                    } else {
                        Child::Node(self.of_list(chunks, handle))
                    }
                }
            };
            self.node_mut(at).set_child(digit, child);
            return root;
        }
    }

    /// Removes a chunk; returns the root, or the list of the remaining chunks if they are few.
    pub(crate) fn remove(
        &mut self,
        chunks: &mut ChunkTable,
        root: NodeId,
        handle: Handle,
    ) -> Result<NodeId, Option<Handle>> {
        let key = key_of(chunks, handle);
        let mut place = Place::Root;
        let mut at = root;
        loop {
            let node = self.node_mut(at);
            node.count -= 1;
            if node.count <= COLLAPSE_COUNT {
                let mut left = None;
                self.flatten(chunks, at, handle, &mut left);
                let left = left.map_or(Child::Empty, |(head, length)| Child::List(head, length));
                return self.replace_child(root, place, left);
            }
            let digit = node.digit_of(key);
            match node.child(chunks, digit) {
                Child::Node(below) => {
                    place = Place::Below(at, digit);
                    at = below;
                }
                Child::Empty => unreachable!("a free chunk of this class is in its tree"),
                Child::List(head, length) => {
                    let mut left = Some(head);
                    free_list::find_and_remove(chunks, &mut left, handle);
                    let child = left.map_or(Child::Empty, |head| Child::List(head, length - 1));
                    node.set_child(digit, child);
                    if !node.occupied.is_power_of_two() {
                        return Ok(root);
                    }
                    let only = node.child_from(chunks, 0).unwrap_or(Child::Empty);
                    self.free_node(at);
                    return self.replace_child(root, place, only);
                }
            }
        }
    }

    /// Returns the smallest chunk of at least `size` bytes, the lowest address among equals.
    pub(crate) fn best(&self, chunks: &ChunkTable, root: NodeId, size: u64) -> Option<FreeChunk> {
        let key = key(size, 0);
        // The next larger sibling of the deepest node on the path that has one.
        let mut next_best = None;
        let mut at = root;
        loop {
            let node = self.node(at);
            let prefix = node.prefix_of(key);
            if prefix < node.prefix {
                return self.first(chunks, Child::Node(at), size);
            }
            if prefix > node.prefix {
                break;
            }
            let digit = node.digit_of(key);
            if let Some(after) = node.child_from(chunks, digit + 1) {
                next_best = Some(after);
            }
            match node.child(chunks, digit) {
                Child::Node(below) => at = below,
                Child::Empty => break,
                Child::List(head, _) => match free_list::best_fit(chunks, Some(head), size) {
                    Some(best) => return Some(FreeChunk::of(chunks, best)),
                    None => break,
                },
            }
        }
        next_best.and_then(|child| self.first(chunks, child, size))
    }

    /// Returns the first chunk below `child`, all of whose chunks have at least `size` bytes.
    fn first(&self, chunks: &ChunkTable, mut child: Child, size: u64) -> Option<FreeChunk> {
        while let Child::Node(node) = child {
            child = self.node(node).child_from(chunks, 0)?;
        }
        let Child::List(head, _) = child else { return None };
        free_list::best_fit(chunks, Some(head), size).map(|best| FreeChunk::of(chunks, best))
    }

    /// Returns the size of the largest chunk.
    pub(crate) fn largest(&self, chunks: &ChunkTable, root: NodeId) -> u64 {
        let mut at = root;
        loop {
            let node = self.node(at);
            match node.occupied.checked_ilog2().map(|digit| node.child(chunks, digit as usize)) {
                Some(Child::Node(below)) => at = below,
                Some(Child::List(head, _)) => {
                    return free_list::largest(chunks, Some(head));
                }
                Some(Child::Empty) | None => return 0,
            }
        }
    }

    /// Inserts a node above `below` for a chunk that differs from all chunks in it.
    fn insert_parent(&mut self, chunks: &mut ChunkTable, below: NodeId, key: Key, handle: Handle) -> NodeId {
        let Node { prefix, shift, count, .. } = *self.node(below);
        let first = prefix << shift << DIGIT;
        // The digits that `below` branches on are irrelevant.
        let differing = (first ^ key) >> shift >> DIGIT << shift << DIGIT;
        let above = self.allocate_node(key, differing);
        chunks.get_mut(handle).link = None;
        let node = self.node_mut(above);
        node.count = count + 1;
        node.set_child(node.digit_of(first), Child::Node(below));
        node.set_child(node.digit_of(key), Child::List(handle, 1));
        above
    }

    /// Allocates an empty node for keys that agree with `key` above the topmost bit of `differing`.
    fn allocate_node(&mut self, key: Key, differing: Key) -> NodeId {
        let shift = differing.ilog2() / DIGIT * DIGIT;
        let node = Node { prefix: key >> shift >> DIGIT, shift, ..Node::default() };
        if let Some(number) = NonZeroU32::new(self.vacant) {
            self.vacant = self.node(NodeId(number)).children[0];
            *self.node_mut(NodeId(number)) = node;
            return NodeId(number);
        }
        let number = u32::try_from(self.nodes.len()).ok().and_then(NonZeroU32::new);
        if self.nodes.len() == self.nodes.capacity() {
            // Grows by an eighth, like the chunk table.
            self.nodes.reserve_exact(self.nodes.len() / 8 + 16);
        }
        self.nodes.push(node);
        NodeId(number.expect("fewer nodes than chunks"))
    }

    fn free_node(&mut self, node: NodeId) {
        self.node_mut(node).children[0] = self.vacant;
        self.vacant = node.0.get();
    }

    /// Replaces the node at `place`; returns the root, or the list that replaces the root.
    fn replace_child(&mut self, root: NodeId, place: Place, child: Child) -> Result<NodeId, Option<Handle>> {
        match (place, child) {
            (Place::Below(above, digit), _) => {
                self.node_mut(above).set_child(digit, child);
                Ok(root)
            }
            (Place::Root, Child::Node(node)) => Ok(node),
            (Place::Root, Child::List(head, _)) => Err(Some(head)),
            (Place::Root, Child::Empty) => Err(None),
        }
    }

    /// Moves all chunks below a node except `gone` into one list, in front of `left`.
    fn flatten(
        &mut self,
        chunks: &mut ChunkTable,
        at: NodeId,
        gone: Handle,
        left: &mut Option<(Handle, u8)>,
    ) {
        let node = *self.node(at);
        self.free_node(at);
        for digit in 0..CHILDREN {
            match node.child(chunks, digit) {
                Child::Empty => {}
                Child::Node(below) => self.flatten(chunks, below, gone, left),
                Child::List(head, _) => {
                    let mut member = Some(head);
                    while let Some(handle) = member {
                        member = chunks.get(handle).link;
                        if handle != gone {
                            chunks.get_mut(handle).link = left.map(|(head, _)| head);
                            *left = Some((handle, left.map_or(1, |(_, length)| length + 1)));
                        }
                    }
                }
            }
        }
    }

    fn node(&self, node: NodeId) -> &Node {
        &self.nodes[node.index()]
    }

    fn node_mut(&mut self, node: NodeId) -> &mut Node {
        &mut self.nodes[node.index()]
    }
}

mod collect;
#[cfg(test)]
mod tests;

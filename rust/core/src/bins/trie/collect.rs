//! Enumerates the chunks of a tree: all of them, or the largest.

use super::{CHILDREN, Child, NodeId, Tries};
use crate::bins::free_list;
use crate::chunk::{ChunkTable, Handle};
use alloc::vec::Vec;

impl Tries {
    /// Adds the chunks below, the largest first, until `found` has `count`.
    pub(crate) fn collect_largest(
        &self,
        chunks: &ChunkTable,
        root: NodeId,
        found: &mut Vec<Handle>,
        count: usize,
    ) {
        let node = self.node(root);
        for digit in (0..CHILDREN).rev() {
            if found.len() >= count {
                return;
            }
            match node.child(chunks, digit) {
                Child::Empty => {}
                Child::List(head, _) => {
                    found.extend(free_list::members(chunks, Some(head)).take(count - found.len()));
                }
                Child::Node(below) => self.collect_largest(chunks, below, found, count),
            }
        }
    }

    /// Adds every chunk below to `all`.
    pub(crate) fn collect(&self, chunks: &ChunkTable, root: NodeId, all: &mut Vec<Handle>) {
        let node = self.node(root);
        for digit in 0..CHILDREN {
            match node.child(chunks, digit) {
                Child::Empty => {}
                Child::List(head, _) => all.extend(free_list::members(chunks, Some(head))),
                Child::Node(below) => self.collect(chunks, below, all),
            }
        }
    }
}

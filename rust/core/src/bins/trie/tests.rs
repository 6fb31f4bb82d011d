use std::collections::BTreeSet;

use super::*;

/// One tree, its chunks, and a sorted set of them as the model.
struct Grown {
    tries: Tries,
    chunks: ChunkTable,
    root: Option<NodeId>,
    model: BTreeSet<FreeChunk>,
}

impl Grown {
    fn new() -> Self {
        Self { tries: Tries::default(), chunks: ChunkTable::default(), root: None, model: BTreeSet::new() }
    }

    fn add(&mut self, size: u64, address: u64) {
        let handle = self.chunks.insert(address, size);
        self.model.insert(FreeChunk { size, address, handle });
        self.root = match self.root {
            Some(root) => Some(self.tries.insert(&mut self.chunks, root, handle)),
            None if self.model.len() <= usize::from(MAX_LEAF) => return,
            None => {
                let mut head = None;
                for chunk in &self.model {
                    self.chunks.get_mut(chunk.handle).link = head.replace(chunk.handle);
                }
                head.map(|head| self.tries.of_list(&mut self.chunks, head))
            }
        };
    }

    fn remove(&mut self, chunk: FreeChunk) {
        self.model.remove(&chunk);
        if let Some(root) = self.root {
            self.root = match self.tries.remove(&mut self.chunks, root, chunk.handle) {
                Ok(root) => Some(root),
                Err(left) => {
                    let left: BTreeSet<_> = free_list::members(&self.chunks, left).collect();
                    assert_eq!(left, self.model.iter().map(|chunk| chunk.handle).collect());
                    None
                }
            };
        }
        self.chunks.remove(chunk.handle);
    }

    fn agrees(&self, size: u64) {
        let Some(root) = self.root else { return };
        let expected = self.model.iter().find(|chunk| chunk.size >= size).copied();
        assert_eq!(self.tries.best(&self.chunks, root, size), expected, "{size}");
        assert_eq!(self.tries.largest(&self.chunks, root), self.model.last().map_or(0, |chunk| chunk.size));
    }

    /// Checks every node's prefix, number of children and count.
    fn is_sound(&self) {
        let Some(root) = self.root else { return };
        let mut all = Vec::new();
        self.tries.collect(&self.chunks, root, &mut all);
        let all: BTreeSet<_> = all.into_iter().collect();
        assert_eq!(all, self.model.iter().map(|chunk| chunk.handle).collect());
        let nodes = self.sound_below(root);
        let vacant = std::iter::successors(NonZeroU32::new(self.tries.vacant), |&number| {
            NonZeroU32::new(self.tries.node(NodeId(number)).children[0])
        });
        assert_eq!(nodes + vacant.count() + 1, self.tries.nodes.len(), "no node is lost");
    }

    fn sound_below(&self, at: NodeId) -> usize {
        let node = self.tries.node(at);
        let mut all = Vec::new();
        self.tries.collect(&self.chunks, at, &mut all);
        assert_eq!(node.count as usize, all.len());
        assert!(node.count > COLLAPSE_COUNT);
        assert!(!node.occupied.is_power_of_two(), "a node with one child tells nothing apart");
        let mut nodes = 1;
        for digit in 0..CHILDREN {
            let child = node.child(&self.chunks, digit);
            assert_eq!(node.occupied >> digit & 1 == 0, matches!(child, Child::Empty));
            let mut below = Vec::new();
            match child {
                Child::Empty => {}
                Child::List(head, length) => {
                    below.extend(free_list::members(&self.chunks, Some(head)));
                    assert_eq!(below.len(), usize::from(length));
                    assert!(length <= MAX_LEAF);
                }
                Child::Node(id) => {
                    assert!(self.tries.node(id).shift < node.shift);
                    nodes += self.sound_below(id);
                    self.tries.collect(&self.chunks, id, &mut below);
                }
            }
            for handle in below {
                let key = key_of(&self.chunks, handle);
                assert_eq!((node.prefix_of(key), node.digit_of(key)), (node.prefix, digit));
            }
        }
        nodes
    }
}

/// Returns a cheap seeded generator.
fn numbers(mut state: u64) -> impl FnMut() -> u64 {
    move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    }
}

/// Grows to at most `most` chunks and shrinks to none, repeatedly.
fn follows_the_model(most: usize, steps: usize, mut place: impl FnMut(u64) -> (u64, u64)) {
    let mut next = numbers(most as u64);
    let mut grown = Grown::new();
    let mut taken = BTreeSet::new();
    for step in 0..steps {
        let wanted = if (step / (2 * most)).is_multiple_of(2) { most } else { 0 };
        if grown.model.len() < wanted {
            let (size, address) = place(next());
            if taken.insert(address) {
                grown.add(size, address);
            }
        } else if let Some(&last) = grown.model.last() {
            let (size, address) = place(next());
            let chunk =
                grown.model.range(FreeChunk { size, address, ..last }..).next().copied().unwrap_or(last);
            taken.remove(&chunk.address);
            grown.remove(chunk);
        }
        grown.agrees(place(next()).0);
        if step % 64 == 0 {
            grown.is_sound();
        }
    }
}

#[test]
fn equal_sizes_are_told_apart_by_address() {
    follows_the_model(400, 10_000, |random| (1024, (1 + random % 100_000) * GRANULE));
}

#[test]
fn sizes_and_addresses_of_all_kinds() {
    follows_the_model(1_000, 20_000, |random| {
        let size = 1 + random % (1 << (random % 20));
        let region = 1 + (random / 7) % 3;
        (size * GRANULE, (region << (20 * region)) + (random % 5_000) * GRANULE)
    });
}

#[test]
fn addresses_at_both_ends_of_what_can_be_counted() {
    let top = crate::units::MAX_BYTES;
    follows_the_model(60, 8_000, |random| {
        let near = (1 + random % 40) * GRANULE;
        let address = if random.is_multiple_of(3) { top - near } else { near };
        (if random.is_multiple_of(2) { top } else { GRANULE }, address)
    });
}

#[test]
fn one_bit_apart_at_every_bit() {
    follows_the_model(50, 5_000, |random| (GRANULE << (random % 3), GRANULE << (random / 3 % 48)));
}

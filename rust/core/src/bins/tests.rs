use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::test_strategies::{config, size};
use crate::units::{MAX_BYTES, round_up};

/// Bins and the table of their chunks.
#[derive(Default)]
struct Holes {
    bins: Bins,
    chunks: ChunkTable,
}

impl Holes {
    fn add(&mut self, size: u64, address: u64) -> FreeChunk {
        let handle = self.chunks.insert(address, size);
        self.bins.insert(&mut self.chunks, handle, size);
        FreeChunk { size, address, handle }
    }

    fn remove(&mut self, chunk: FreeChunk) {
        self.bins.remove(&mut self.chunks, chunk.handle, chunk.size);
        self.chunks.remove(chunk.handle);
    }

    fn take(&mut self, size: u64) -> Option<FreeChunk> {
        let chunk = self.bins.take_best_fit(&mut self.chunks, size)?;
        self.chunks.remove(chunk.handle);
        Some(chunk)
    }

    fn fits(&self, size: u64) -> bool {
        self.bins.fits(&self.chunks, size)
    }

    fn largest(&self) -> u64 {
        self.bins.largest(&self.chunks)
    }
}

#[test]
fn classes_never_go_down() {
    let mut last = 0;
    let near_powers =
        (8..63).flat_map(|shift| [(1_u64 << shift) - GRANULE, 1 << shift, (1 << shift) + GRANULE]);
    let mut sizes: Vec<u64> = (1..2_000_000).map(|granules| granules * GRANULE).chain(near_powers).collect();
    sizes.retain(|&size| size > 0);
    sizes.sort_unstable();
    for size in sizes {
        let class = class_of(size);
        assert!(class >= last && class < CLASSES, "{size}");
        last = class;
    }
    assert_eq!(class_of(MAX_BYTES), CLASSES - 1);
}

#[test]
fn classes_are_those_of_the_drawing() {
    assert_eq!(
        [1, 2, 3, 4, 5, 6, 7, 8].map(|granules| class_of(granules * GRANULE)),
        [0, 4, 6, 8, 9, 10, 11, 12]
    );
    let mib = |megabytes: u64| megabytes << 20;
    let starts =
        [(mib(1), 48), (mib(2) - GRANULE, 51), (mib(4) - GRANULE, 55), (mib(4), 56), (mib(8) - GRANULE, 56)];
    for (size, class) in starts {
        assert_eq!(class_of(size), class, "{size}");
    }
    assert_eq!([mib(8), mib(256), mib(512) - GRANULE, mib(512), 8 << 30].map(class_of), [57, 62, 62, 63, 63]);
}

#[test]
fn the_best_fit_is_the_smallest_then_the_lowest() {
    let mut holes = Holes::default();
    let first = holes.add(1 << 20, 1 << 30);
    let lower = holes.add(1 << 20, 1 << 29);
    let larger = holes.add(5 << 20, 1 << 20);
    let small = holes.add(512, 256);
    assert_eq!(holes.take((5 << 20) + 256), None);
    assert_eq!(holes.take(MAX_BYTES), None);
    assert!(holes.fits(5 << 20) && !holes.fits((5 << 20) + 256));
    assert_eq!(holes.take(256), Some(small));
    assert_eq!(holes.take(768), Some(lower));
    assert_eq!(holes.take((1 << 20) + 256), Some(larger));
    assert_eq!(holes.take(256), Some(first));
    assert!(!holes.fits(256));
}

#[test]
fn a_class_with_only_smaller_chunks_is_passed_over() {
    let mut holes = Holes::default();
    // Chunks of 16 MiB and 17 MiB share a class; a request of 17 MiB must not get the smaller one.
    holes.add(16 << 20, 0x1000);
    assert_eq!(class_of(16 << 20), class_of(17 << 20));
    assert_eq!(holes.take(17 << 20), None);
    let larger = holes.add(64 << 20, 0x2000);
    assert_eq!(holes.take(17 << 20), Some(larger));
}

/// Grows and shrinks the bins between none and hundreds of chunks of `sizes` sizes that differ by `step_size`.
fn follows_the_model(sizes: u64, step_size: u64) {
    let mut holes = Holes::default();
    let mut model = BTreeSet::new();
    let mut state = 1_u64;
    for step in 0..20_000_u64 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let random = state >> 33;
        let wanted = if step / 1000 % 2 == 0 { 300 } else { 0 };
        let size = (64 << 20) + random % sizes * step_size;
        if model.len() < wanted || model.is_empty() {
            model.insert(holes.add(size, (random % 1_000_000 * 20_000 + step) * GRANULE));
        } else if random.is_multiple_of(2) {
            let expected = model.iter().find(|chunk| chunk.size >= size).copied();
            assert_eq!(holes.take(size), expected, "step {step}");
            expected.map(|chunk| model.remove(&chunk));
        } else {
            let chunk = *model.iter().nth(usize::try_from(random).unwrap() % model.len()).unwrap();
            holes.remove(chunk);
            model.remove(&chunk);
        }
        assert_eq!(holes.largest(), model.last().map_or(0, |chunk| chunk.size));
        assert_eq!(holes.fits(size), model.last().is_some_and(|chunk| chunk.size >= size));
    }
    assert_eq!(holes.bins.sorted(&holes.chunks), model.into_iter().collect::<Vec<_>>());
}

#[test]
fn a_bin_gives_the_best_fit_whether_it_is_a_list_or_a_tree() {
    // Equal sizes; one class; two classes; many classes, some with trees.
    follows_the_model(1, 0);
    follows_the_model(5, 1 << 20);
    follows_the_model(3, 32 << 20);
    follows_the_model(40, 16 << 20);
}

#[test]
fn largest_returns_the_largest_free_chunk() {
    let mut holes = Holes::default();
    assert_eq!(holes.largest(), 0);
    let small = holes.add(16 << 20, 0x1000);
    let large = holes.add(17 << 20, 0x100);
    assert_eq!(holes.largest(), 17 << 20);
    holes.remove(large);
    assert_eq!(holes.largest(), 16 << 20);
    holes.remove(small);
    assert_eq!(holes.largest(), 0);
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn every_size_has_a_class_and_a_larger_one_never_a_smaller(one in size(), other in size()) {
        let [less, more] = [one.min(other), one.max(other)].map(|size| round_up(size.max(1)));
        prop_assert!(class_of(less) <= class_of(more) && class_of(more) < CLASSES);
    }
}

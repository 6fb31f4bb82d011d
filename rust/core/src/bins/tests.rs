use super::*;

fn free(size: u64, address: u64) -> FreeChunk {
    FreeChunk { size, address, handle: Handle::new(1).unwrap() }
}

#[test]
fn classes_never_go_down_and_have_no_gaps() {
    let mut last = class_of(GRANULE);
    for granules in 2..100_000 {
        let class = class_of(granules * GRANULE);
        assert!(class == last || class == last + 1, "{granules} granules");
        last = class;
    }
    for shift in 8..63 {
        let size = 1_u64 << shift;
        assert!(class_of(size - GRANULE) < class_of(size), "2^{shift}");
    }
    assert_eq!(class_of(MAX_BYTES), CLASSES - 1);
}

#[test]
fn the_best_fit_is_the_smallest_then_the_lowest() {
    let mut bins = Bins::default();
    for chunk in [free(1 << 20, 1 << 30), free(1 << 20, 1 << 29), free(5 << 20, 1 << 20), free(512, 256)] {
        bins.insert(chunk);
    }
    assert_eq!(bins.take_best_fit((5 << 20) + 256), None);
    assert_eq!(bins.take_best_fit(MAX_BYTES), None);
    assert!(bins.fits(5 << 20) && !bins.fits((5 << 20) + 256));
    assert_eq!(bins.take_best_fit(256), Some(free(512, 256)));
    assert_eq!(bins.take_best_fit(768), Some(free(1 << 20, 1 << 29)));
    assert_eq!(bins.take_best_fit((1 << 20) + 256), Some(free(5 << 20, 1 << 20)));
    assert_eq!(bins.take_best_fit(256), Some(free(1 << 20, 1 << 30)));
    assert!(!bins.fits(256));
}

#[test]
fn a_class_with_only_smaller_chunks_is_passed_over() {
    let mut bins = Bins::default();
    // 17 MiB and 16 MiB share a class; a request of 17 MiB must not get the 16.
    bins.insert(free(16 << 20, 0x1000));
    assert_eq!(class_of(16 << 20), class_of(17 << 20));
    assert_eq!(bins.take_best_fit(17 << 20), None);
    bins.insert(free(64 << 20, 0x2000));
    assert_eq!(bins.take_best_fit(17 << 20), Some(free(64 << 20, 0x2000)));
}

#[test]
fn a_bin_keeps_its_order_whether_it_holds_few_or_many() {
    let mut bins = Bins::default();
    let mut model = std::collections::BTreeSet::new();
    let mut state = 1_u64;
    for step in 0..20_000_u64 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let random = state >> 33;
        // Up and down between none and hundreds, all in one class or its neighbour.
        let wanted = if step / 1000 % 2 == 0 { 300 } else { 0 };
        if model.len() < wanted || model.is_empty() {
            let chunk = free((64 << 20) + random % 3 * (8 << 20), (step + 1) * (1 << 30));
            bins.insert(chunk);
            model.insert(chunk);
        } else if random.is_multiple_of(2) {
            let size = (64 << 20) + random % 5 * (4 << 20);
            let expected = model.range(FreeChunk::lowest(size)..).next().copied();
            assert_eq!(bins.take_best_fit(size), expected, "step {step}");
            expected.map(|chunk| model.remove(&chunk));
        } else {
            let chunk = *model.iter().nth(usize::try_from(random).unwrap() % model.len()).unwrap();
            bins.remove(chunk);
            model.remove(&chunk);
        }
        assert_eq!(bins.largest(), model.last().map_or(0, |chunk| chunk.size));
        assert_eq!(bins.fits(64 << 20), !model.is_empty());
    }
    assert!(bins.iter().eq(model));
}

#[test]
fn the_largest_is_known_without_a_search() {
    let mut bins = Bins::default();
    assert_eq!(bins.largest(), 0);
    bins.insert(free(16 << 20, 0x1000));
    bins.insert(free(17 << 20, 0x100));
    assert_eq!(bins.largest(), 17 << 20);
    bins.remove(free(17 << 20, 0x100));
    assert_eq!(bins.largest(), 16 << 20);
    bins.remove(free(16 << 20, 0x1000));
    assert_eq!(bins.largest(), 0);
}

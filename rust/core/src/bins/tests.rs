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
    assert_eq!(bins.best_fit(256), Some(free(512, 256)));
    assert_eq!(bins.best_fit(768), Some(free(1 << 20, 1 << 29)));
    assert_eq!(bins.best_fit((1 << 20) + 256), Some(free(5 << 20, 1 << 20)));
    assert_eq!(bins.best_fit((5 << 20) + 256), None);
    assert_eq!(bins.best_fit(MAX_BYTES), None);
}

#[test]
fn a_class_with_only_smaller_chunks_is_passed_over() {
    let mut bins = Bins::default();
    // 17 MiB and 16 MiB share a class; a request of 17 MiB must not get the 16.
    bins.insert(free(16 << 20, 0x1000));
    assert_eq!(class_of(16 << 20), class_of(17 << 20));
    assert_eq!(bins.best_fit(17 << 20), None);
    bins.insert(free(64 << 20, 0x2000));
    assert_eq!(bins.best_fit(17 << 20), Some(free(64 << 20, 0x2000)));
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

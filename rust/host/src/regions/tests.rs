use std::thread;

use super::*;

/// Addresses outside of all regions of other tests.
const FAR: u64 = 1 << 60;

#[test]
fn an_address_is_in_a_region_from_its_first_byte_to_its_last() {
    let (start, end) = (FAR, FAR + 4096);
    register(start, end, Origin::Mapping);
    assert_eq!([start - 1, start, end - 1, end].map(end_of_region), [None, Some(end), Some(end), None]);
    unregister(start);
    assert_eq!(end_of_region(start), None);
}

#[test]
fn a_slot_that_is_used_again_has_the_origin_of_its_new_region() {
    for origin in [Origin::Other, Origin::Mapping, Origin::Other] {
        register(4 * FAR, 4 * FAR + 1, origin);
        assert_eq!(is_of_other_allocator(4 * FAR), origin == Origin::Other);
        unregister(4 * FAR);
        assert!(!is_of_other_allocator(4 * FAR));
    }
}

#[test]
fn slots_are_used_again() {
    let count = || slots().count();
    for round in 0..1_000 {
        register(2 * FAR + round, 2 * FAR + round + 1, Origin::Mapping);
        unregister(2 * FAR + round);
    }
    // Other tests run concurrently.
    assert!(count() < 500, "{} slots", count());
}

#[test]
fn regions_of_several_threads_are_told_apart() {
    let work = |thread: u64| {
        for round in 0..2_000 {
            let starts = [0, 1, 2].map(|n| 3 * FAR + (thread << 32) + ((round % 7 * 3 + n) << 16));
            for start in starts {
                register(start, start + 4096, Origin::Mapping);
            }
            for start in starts {
                assert_eq!(end_of_region(start + 4095), Some(start + 4096));
                assert_eq!(end_of_region(start + 4096), None);
            }
            for start in starts {
                unregister(start);
                assert_eq!(end_of_region(start), None);
            }
        }
    };
    thread::scope(|scope| {
        for thread in 1..=4 {
            scope.spawn(move || work(thread));
        }
    });
}

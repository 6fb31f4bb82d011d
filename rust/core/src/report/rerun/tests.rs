use super::*;

const MIB: u64 = 1 << 20;

/// A program that makes requests of these sizes one after another.
fn rerun(sizes: &[u64], growth: bool) -> Rerun {
    Rerun {
        events: sizes.iter().map(|&bytes| Event::Allocated(bytes)).collect(),
        limit: 256,
        policy: Policy::TensorFlow,
        growth,
        trim_on_oom: true,
        fraction: 0.0,
        joins_regions: false,
        capacity: u64::MAX,
        capacity_is_exact: true,
        internal_fragmentation: 0,
        live: 0,
        page_sizes: None,
    }
}

#[test]
fn the_smallest_limit_is_found_where_it_is_the_first_one_tried() {
    let rerun = rerun(&[MIB, MIB], false);
    assert!(rerun.serves(2 * MIB, Policy::TensorFlow) && !rerun.serves(2 * MIB - 256, Policy::TensorFlow));
    assert_eq!(rerun.limit_from(2 * MIB), Some(2 * MIB));
}

#[test]
fn a_limit_is_found_where_a_little_more_does_not_help() {
    // Slightly more than the sum goes to the second request, whose chunk is not split.
    let rerun = rerun(&[400_128, 400_128, 256], false);
    let found = rerun.limit_from(MIB).expect("twice as much is enough");
    assert!(found > 3 * 400_000 && found < 2 * MIB, "{found}");
    assert!(rerun.serves(found, Policy::TensorFlow) && rerun.serves(MIB, Policy::Tight));
}

#[test]
fn no_limit_is_found_where_the_source_is_too_small() {
    let rerun = Rerun { capacity: MIB, ..rerun(&[MIB, 256], true) };
    assert_eq!(rerun.limit_from(MIB + 256), None);
}

#[test]
fn frees_and_releases_are_played_too() {
    let mut rerun = rerun(&[MIB], false);
    rerun.events.extend([Event::Freed(1), Event::Allocated(MIB)]);
    assert!(rerun.serves(MIB, Policy::TensorFlow));
    // With growth, the first region must be released before a larger one fits.
    let mut rerun = Rerun { growth: true, ..rerun };
    rerun.events.extend([Event::Freed(2), Event::Allocated(5 * MIB)]);
    assert!(rerun.serves(5 * MIB, Policy::TensorFlow));
    rerun.trim_on_oom = false;
    assert!(!rerun.serves(5 * MIB, Policy::TensorFlow));
}

#[test]
fn pages_are_the_largest_that_suffice_wherever_chunks_lie() {
    let pages = |default| Some(PageSizes { exist: true, granule: 4096, default });
    let mut rerun = Rerun { limit: 4 * MIB, page_sizes: pages(2 * MIB), ..rerun(&[MIB, MIB], true) };
    // Two pages of 1 MiB for the first, one for the second. Of 2 MiB it would be two and one.
    assert_eq!(rerun.page_size(), Some(MIB));
    rerun.limit = 2 * MIB;
    assert_eq!(rerun.page_size(), None);
    rerun.limit = 2 * MIB + 4096;
    assert_eq!(rerun.page_size(), Some(4096));
    rerun.capacity = 2 * MIB;
    assert_eq!(rerun.page_size(), None);
    rerun.capacity = 8 * MIB;
    // A freed allocation touches no page.
    rerun.limit = 2 * MIB;
    rerun.events.insert(1, Event::Freed(1));
    assert_eq!(rerun.page_size(), Some(2 * MIB));
    rerun.growth = false;
    rerun.capacity = 2 * MIB - 256;
    assert_eq!(rerun.page_size(), None);
    assert_eq!(Rerun { page_sizes: None, ..rerun }.page_size(), None);
}

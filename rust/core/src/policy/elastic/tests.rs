use super::*;

const MIB: u64 = 1 << 20;

#[test]
fn what_is_in_use_may_always_be_committed() {
    assert_eq!(most_committed(4096, 10, 0, 0, MIB), 10);
}

#[test]
fn free_pages_stay_up_to_a_fiftieth_and_a_page_for_each_allocation() {
    // 100 MiB in 50 allocations: 25,600 pages, 512 for the fiftieth, 50.
    assert_eq!(most_committed(4096, 25_600, 100 * MIB, 50, 1 << 30), 26_162);
    assert_eq!(most_committed(2 * MIB, 50, 100 * MIB, 50, 1 << 30), 101);
}

#[test]
fn the_limit_bounds_what_is_committed() {
    assert_eq!(most_committed(2 * MIB, 3, 100 * MIB, 50, 9 * MIB), 4);
}

#[test]
fn places_are_searched_from_half_of_the_limit_on() {
    assert_eq!(tight_from(4096, MIB), 128);
    assert_eq!(tight_from(4096, MIB + 2), 129);
}

#[test]
fn a_range_has_four_times_the_limit() {
    assert_eq!(range_bytes(2 * MIB, 100 * MIB, 256), (400 * MIB, 4 * MIB));
}

#[test]
fn a_small_limit_still_has_64_pages() {
    assert_eq!(range_bytes(4096, 4096, 256), (256 << 10, 8192));
}

#[test]
fn a_huge_limit_takes_a_bounded_range_and_a_huge_request_what_it_needs() {
    assert_eq!(range_bytes(2 * MIB, 1 << 60, 256).0, 1 << 42);
    assert_eq!(range_bytes(2 * MIB, 1 << 60, 1 << 50).0, (1 << 50) + 2 * MIB);
}

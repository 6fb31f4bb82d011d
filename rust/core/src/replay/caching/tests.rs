use super::{CachingAllocator, CachingOptions, CachingOutcome, replay_caching, round_size};
use crate::replay::Program;

const MIB: u64 = 1 << 20;

/// Replays events of (kind, block, bytes).
fn outcome(events: &[(i64, i64, u64)], options: CachingOptions) -> CachingOutcome {
    let ops: Vec<_> = events.iter().map(|event| event.0).collect();
    let ids: Vec<_> = events.iter().map(|event| event.1).collect();
    let sizes: Vec<_> = events.iter().map(|event| event.2.cast_signed()).collect();
    replay_caching(&Program::from_columns(&ops, &ids, &sizes).unwrap(), &[], options)
}

#[test]
fn requests_round_as_documented() {
    for (bytes, divisions, rounded) in [
        (1, 0, 512),
        (512, 0, 512),
        (513, 0, 1024),
        (1200, 4, 1536),               // below 512 bytes times the divisions
        (1200 * 1024, 4, 1280 * 1024), // steps of 256 KiB between 1 and 2 MiB
        (MIB, 4, MIB),
        (1200 * 1024, 1, 2 * MIB),
    ] {
        assert_eq!(round_size(bytes, divisions), rounded, "{bytes} {divisions}");
    }
}

#[test]
fn segments_have_the_documented_sizes_and_serve_their_own_kind() {
    let mut model = CachingAllocator::new(CachingOptions::new(1 << 40));
    for (bytes, reserved) in [
        (100, 2 * MIB),
        (MIB, 2 * MIB),
        (MIB, 4 * MIB), // the first segment has less than that left
        (MIB + 1, 4 * MIB + 20 * MIB),
        (9 * MIB, 24 * MIB),
        (10 * MIB, 34 * MIB), // a segment of its own; 9.5 MiB are left of the one of 20
        (10 * MIB + 1, 34 * MIB + 12 * MIB),
    ] {
        model.allocate(bytes, 0).unwrap();
        assert_eq!(model.reserved, reserved, "{bytes}");
    }
    // Streams do not share.
    model.allocate(100, 1).unwrap();
    assert_eq!(model.reserved, 48 * MIB);
}

/// A weight of 270 MiB in a cached segment of 530 MiB keeps the rest of it from both.
#[test]
fn a_split_pins_a_segment_and_max_split_size_does_not() {
    let events = [(1, 1, 530 * MIB), (2, 1, 530 * MIB), (1, 2, 270 * MIB), (1, 3, 530 * MIB)];
    let options = |limit| CachingOptions::new(limit * MIB);
    let split = |limit| CachingOptions { max_split_size: Some(20 * MIB), ..options(limit) };
    let refused = outcome(&events, options(1000));
    assert_eq!((refused.refused, refused.first_refused), (1, Some(3)));
    assert_eq!(outcome(&events, split(1000)).refused, 0);
    assert_eq!(outcome(&events, options(1100)).peak_reserved, 1060 * MIB);
    assert_eq!(outcome(&events, split(1100)).peak_reserved, 800 * MIB);
}

#[test]
fn wholly_free_segments_are_given_back_before_a_refusal() {
    let events = [(1, 1, 30 * MIB), (1, 2, 100), (2, 1, 30 * MIB), (1, 3, 50 * MIB), (1, 4, 100 * MIB)];
    let done = outcome(&events, CachingOptions::new(60 * MIB));
    assert_eq!((done.first_refused, done.segments), (Some(4), 2));
    assert_eq!((done.reserved, done.peak_reserved), (52 * MIB, 52 * MIB));
}

#[test]
fn neighbours_merge_in_a_segment_and_not_across() {
    let mut model = CachingAllocator::new(CachingOptions::new(1 << 40));
    let blocks: Vec<_> = (0..3).map(|_| model.allocate(6 * MIB, 0).unwrap()).collect();
    let other = model.allocate(30 * MIB, 0).unwrap();
    for block in [blocks[0], blocks[2], blocks[1], other] {
        model.free(block);
    }
    let free: Vec<_> = model.free[1].iter().map(|&(_, size, _)| size).collect();
    assert_eq!(free, [20 * MIB, 30 * MIB]);
    assert_eq!((model.in_use, model.segments.len()), (0, 2));
}

#[test]
fn the_state_of_a_recording_can_be_continued() {
    let mut model = CachingAllocator::new(CachingOptions::new(1 << 40));
    model.add_segment(1 << 40, false, 3, &[(4 * MIB, true), (8 * MIB, false), (8 * MIB, true)]);
    assert_eq!(model.allocate(6 * MIB, 3), Some((1 << 40) + 4 * MIB));
    model.free((1 << 40) + 4 * MIB);
    assert_eq!(model.allocate(8 * MIB, 3), Some((1 << 40) + 4 * MIB));
}

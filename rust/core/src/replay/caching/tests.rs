use super::sizes::round_size;
use super::{CachingAllocator, CachingOptions, CachingOutcome, replay_caching};
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

fn expandable(limit: u64) -> CachingOptions {
    CachingOptions { expandable_segments: true, ..CachingOptions::new(limit) }
}

#[test]
fn expandable_segments_map_whole_pages_and_reuse_what_is_free_before_them() {
    let mut model = CachingAllocator::new(expandable(1 << 40));
    let first = model.allocate(30 * MIB, 0).unwrap();
    assert_eq!(model.reserved, 40 * MIB);
    // 10 MiB are free behind the first; 20 more are mapped.
    let second = model.allocate(25 * MIB, 0).unwrap();
    assert_eq!((second, model.reserved), (first + 30 * MIB, 60 * MIB));
    // Everything is one range, also of sizes that would have segments of their own.
    model.free(first);
    assert_eq!(model.allocate(29 * MIB, 0), Some(first));
    assert_eq!(model.mapped_ranges(), 1);
    // Small blocks and other streams have ranges of their own; pages of small ones have 2 MiB.
    model.allocate(100, 0).unwrap();
    model.allocate(100, 1).unwrap();
    assert_eq!((model.reserved, model.mapped_ranges()), (64 * MIB, 3));
}

#[test]
fn pages_of_free_blocks_are_unmapped_before_a_refusal_and_mapped_again() {
    // The range has an eighth more addresses than the limit has bytes.
    let mut model = CachingAllocator::new(expandable(400 * MIB));
    let blocks: Vec<_> = (0..20).map(|_| model.allocate(20 * MIB, 0).unwrap()).collect();
    model.free(blocks[1]);
    model.free(blocks[3]);
    // 40 MiB are free in two pieces: their pages serve a request at the end of the range.
    assert_eq!(model.allocate(40 * MIB, 0), Some(blocks[19] + 20 * MIB));
    assert_eq!((model.reserved, model.mapped_ranges()), (400 * MIB, 3));
    assert_eq!(model.allocate(20 * MIB, 0), None);
    model.free(blocks[0]);
    assert_eq!(model.allocate(20 * MIB, 0), Some(blocks[0]));
    // Pages that a block in use shares stay.
    model.free(blocks[19]);
    let part = model.allocate(15 * MIB, 0).unwrap();
    assert_eq!((part, model.allocate(100 * MIB, 0)), (blocks[19], None));
    assert_eq!(model.reserved, 400 * MIB);
}

/// What a split pins without expandable segments.
#[test]
fn expandable_segments_serve_what_a_split_would_pin() {
    let events = [(1, 1, 530 * MIB), (2, 1, 530 * MIB), (1, 2, 270 * MIB), (1, 3, 530 * MIB)];
    assert_eq!(outcome(&events, CachingOptions::new(800 * MIB)).refused, 1);
    let done = outcome(&events, expandable(800 * MIB));
    assert_eq!((done.refused, done.segments, done.peak_reserved), (0, 1, 800 * MIB));
}

#[test]
fn old_segments_go_before_a_new_one_once_the_threshold_is_passed() {
    let options = CachingOptions { gc_threshold: 0.5, ..CachingOptions::new(100 * MIB) };
    let mut model = CachingAllocator::new(options);
    let blocks = [20, 22, 24].map(|mib| model.allocate(mib * MIB, 0).unwrap());
    model.free(blocks[1]);
    model.free(blocks[0]);
    // The first segment is used once more, so that the second is free for longer.
    let again = model.allocate(20 * MIB, 0).unwrap();
    assert_eq!(again, blocks[0]);
    model.free(again);
    // 66 of 100 MiB are reserved. What is older than the average goes, which is enough.
    model.allocate(30 * MIB, 2).unwrap();
    let left = blocks.map(|block| model.segments.contains_key(&block));
    assert_eq!((left, model.reserved), ([true, false, true], (20 + 24 + 30) * MIB));
    // Below the threshold nothing goes.
    let mut model = CachingAllocator::new(CachingOptions { gc_threshold: 0.9, ..options });
    let block = model.allocate(20 * MIB, 0).unwrap();
    model.free(block);
    model.allocate(30 * MIB, 0).unwrap();
    assert_eq!(model.reserved, 50 * MIB);
}

/// What PyTorch itself did: `tests/traces/README.md`.
#[test]
fn every_block_of_a_recorded_run_gets_the_address_that_pytorch_gave_it() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/traces/lm_inference_addresses.txt");
    let text = std::fs::read_to_string(path).unwrap();
    let mut model = CachingAllocator::new(CachingOptions::new(1 << 40));
    let (mut segment, mut blocks) = (None, Vec::new());
    let mut served = 0;
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let words: Vec<_> = line.split(' ').collect();
        let number = |place: usize| -> u64 { words[place].parse().unwrap() };
        if words[0] == "block" {
            blocks.push((number(1), words[2] == "used"));
            continue;
        }
        if let Some((address, small)) = segment.take() {
            model.add_segment(address, small, 0, &std::mem::take(&mut blocks));
        }
        match words[0] {
            "segment" => segment = Some((number(1), words[2] == "small")),
            "allocate" => {
                assert_eq!(model.allocate(number(2), 0), Some(number(1)), "{line}");
                served += 1;
            }
            _ => model.free(number(1)),
        }
    }
    assert_eq!((served, model.segments.len(), model.reserved), (1280, 98, 1_763_704_832));
}

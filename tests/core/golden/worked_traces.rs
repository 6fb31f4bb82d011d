//! Short traces, one rule each. A pair is the offset and the size of a chunk.

use allotment::Grant;
use allotment::source::{AddressSpace, Call};

use crate::probe::{Probe, bump, options};

#[test]
fn small_requests_are_cut_from_the_front_and_merged_when_freed() {
    let probe = Probe::new(options(1_048_576));
    assert_eq!(probe.alloc(1), Some((0, 256)));
    assert_eq!(probe.granted(), [(0, 1_048_576)]);
    assert_eq!(probe.alloc(300), Some((256, 512)));
    assert_eq!(probe.alloc(512), Some((768, 512)));
    assert_eq!(probe.alloc(1000), Some((1280, 1024)));
    let stats = probe.stats();
    assert_eq!((stats.num_allocs, stats.in_use, stats.peak_in_use), (4, 2304, 2304));
    assert_eq!((stats.largest_requested, stats.reserved), (1000, 1_048_576));
    probe.free(256);
    let tail = (2304, 1_048_576 - 2304);
    assert_eq!(probe.free_chunks(), [(256, 512), tail]);
    // Twice the request: split.
    assert_eq!(probe.alloc(200), Some((256, 256)));
    assert_eq!(probe.free_chunks(), [(512, 256), tail]);
    probe.free(0);
    probe.free(256);
    assert_eq!(probe.free_chunks(), [(0, 768), tail]);
    // Less than twice the request: not split.
    assert_eq!(probe.alloc(513), Some((0, 768)));
    assert_eq!(probe.granted(), []);
}

#[test]
fn a_chunk_of_twice_the_request_is_split_and_a_smaller_one_is_not() {
    let probe = Probe::new(options(1_048_576));
    assert_eq!(probe.alloc(1024), Some((0, 1024)));
    assert_eq!(probe.alloc(256), Some((1024, 256)));
    probe.free(0);
    assert_eq!(probe.alloc(600), Some((0, 1024)));
    probe.free(0);
    assert_eq!(probe.alloc(512), Some((0, 512)));
    assert_eq!(probe.free_chunks()[0], (512, 512));
    probe.free(0);
    assert_eq!(probe.alloc(768), Some((0, 1024)));
    let before = probe.stats();
    assert_eq!((probe.alloc(0), probe.alloc(2_000_000)), (None, None));
    let after = probe.stats();
    assert_eq!((after.num_allocs, after.in_use, after.peak_in_use), (5, 1280, before.peak_in_use));
}

#[test]
fn a_remainder_of_128_mib_is_split_off_however_large_the_request() {
    let probe = Probe::new(options(536_870_912));
    assert_eq!(probe.alloc(402_653_184), Some((0, 402_653_184)));
    assert_eq!(probe.free_chunks(), [(402_653_184, 134_217_728)]);
    probe.free(0);
    assert_eq!(probe.alloc(402_653_440), Some((0, 536_870_912)));
    probe.free(0);
    assert_eq!(probe.alloc(314_572_800), Some((0, 314_572_800)));
}

#[test]
fn in_a_hole_of_256_mib_half_is_split_and_a_granule_more_takes_it_whole() {
    let probe = Probe::new(options(536_870_912));
    assert_eq!(probe.alloc(268_435_456), Some((0, 268_435_456)));
    assert_eq!(probe.alloc(256), Some((268_435_456, 256)));
    probe.free(0);
    // There is no smaller hole: the other free chunk is 256 MiB less a granule, and is taken first.
    assert_eq!(probe.alloc(268_435_200), Some((268_435_712, 268_435_200)));
    assert_eq!(probe.alloc(134_217_728), Some((0, 134_217_728)));
    probe.free(0);
    assert_eq!(probe.alloc(134_217_984), Some((0, 268_435_456)));
}

#[test]
fn regions_double_and_a_request_may_double_the_step_itself() {
    let probe = Probe::new(options(67_108_864).growth(true));
    assert_eq!(probe.alloc(100), Some((0, 256)));
    assert_eq!(probe.granted(), [(0, 2_097_152)]);
    assert_eq!(probe.alloc(2_097_152), Some((2_097_152, 2_097_152)));
    assert_eq!(probe.granted(), [(2_097_152, 4_194_304)]);
    assert_eq!(probe.alloc(3_000_000), Some((6_291_456, 3_000_064)));
    assert_eq!(probe.granted(), [(6_291_456, 8_388_608)]);
    assert_eq!(probe.alloc(20_000_000), Some((14_680_064, 33_554_432)));
    assert_eq!(probe.granted(), [(14_680_064, 33_554_432)]);
    assert_eq!(probe.alloc(40_000_000), None);
    assert_eq!(probe.calls(), []);
    let stats = probe.stats();
    assert_eq!((stats.reserved, stats.in_use), (48_234_496, 38_651_904));
}

#[test]
fn a_joined_region_lets_a_request_span_two_grants() {
    let probe = Probe::new(options(67_108_864).growth(true).joins_regions(true));
    assert_eq!(probe.alloc(100), Some((0, 256)));
    assert_eq!(probe.alloc(2_097_152), Some((256, 2_097_152)));
    assert_eq!(probe.granted(), [(0, 2_097_152), (2_097_152, 4_194_304)]);
    assert_eq!(probe.alloc(3_000_000), Some((2_097_408, 4_194_048)));
    assert_eq!(probe.granted(), []);
    probe.free(0);
    probe.free(256);
    assert_eq!(probe.free_chunks(), [(0, 2_097_408)]);
    probe.free(2_097_408);
    assert_eq!(probe.free_chunks(), [(0, 6_291_456)]);
}

#[test]
fn a_refusing_source_is_asked_for_a_tenth_less_each_time() {
    let probe = Probe::over(options(1_073_741_824), bump(0, 734_003_200));
    assert_eq!(probe.alloc(1000), Some((0, 1024)));
    let asked = [
        (1_073_741_824, false),
        (966_367_744, false),
        (869_731_072, false),
        (782_758_144, false),
        (704_482_304, true),
    ];
    assert_eq!(probe.asked(), asked);
    // The limit leaves 369,259,520 bytes: the source is not called.
    assert_eq!(probe.alloc(800_000_000), None);
    assert_eq!(probe.calls(), []);
}

#[test]
fn the_source_is_never_asked_for_less_than_the_request() {
    let probe = Probe::over(options(1_073_741_824).growth(true), bump(0, 0));
    assert_eq!(probe.alloc(5_000_000), None);
    let asked = [8_388_608, 7_549_952, 6_795_008, 6_115_584, 5_504_256].map(|bytes| (bytes, false));
    assert_eq!(probe.asked(), asked);
    // The step stays at the 8 MiB to which the request doubled it.
    assert_eq!(probe.alloc(8_388_608), None);
    assert_eq!(probe.asked(), [(8_388_608, false)]);
}

#[test]
fn an_odd_limit_is_cut_to_whole_granules() {
    let probe = Probe::new(options(1_000_001));
    assert_eq!(probe.alloc(999_937), None);
    assert_eq!(probe.alloc(999_936), Some((0, 999_936)));
    let stats = probe.stats();
    assert_eq!((stats.reserved, stats.limit), (999_936, 1_000_001));

    let nothing = Probe::new(options(255));
    assert_eq!((nothing.alloc(1), nothing.calls()), (None, vec![]));

    let one = Probe::new(options(300));
    assert_eq!((one.alloc(1), one.alloc(1)), (Some((0, 256)), None));
    assert_eq!(one.granted(), [(0, 256)]);
}

#[test]
fn wholly_free_regions_make_room_for_a_larger_one() {
    let growing = options(8_388_608).growth(true);
    let probe = Probe::new(growing.clone().trim_on_oom(true));
    assert_eq!(probe.alloc(256), Some((0, 256)));
    assert_eq!(probe.alloc(3_000_000), Some((2_097_152, 4_194_304)));
    probe.free(2_097_152);
    let _ = probe.calls();
    assert_eq!(probe.alloc(5_000_000), Some((6_291_456, 6_291_456)));
    let span = |offset, bytes| Grant { address: AddressSpace::START + offset, bytes };
    let second = Call::Release(span(2_097_152, 4_194_304));
    let third = Call::Reserve { bytes: 6_291_456, answer: Some(span(6_291_456, 6_291_456)) };
    assert_eq!(probe.calls(), [second, third]);
    assert_eq!(probe.stats().reserved, 8_388_608);

    let keeping = Probe::new(growing);
    assert_eq!(keeping.alloc(256), Some((0, 256)));
    assert_eq!(keeping.alloc(3_000_000), Some((2_097_152, 4_194_304)));
    keeping.free(2_097_152);
    assert_eq!(keeping.alloc(5_000_000), None);
    assert_eq!(keeping.stats().reserved, 6_291_456);
}

#[test]
fn the_smallest_fit_wins_and_the_lower_address_among_equals() {
    let probe = Probe::new(options(1_048_576));
    let sizes = [1024, 256, 1024, 256, 768, 256];
    let offsets = sizes.map(|bytes| probe.alloc(bytes).unwrap().0);
    assert_eq!(offsets, [0, 1024, 1280, 2304, 2560, 3328]);
    for freed in [1280, 0, 2560] {
        probe.free(freed);
    }
    assert_eq!(probe.alloc(700), Some((2560, 768)));
    assert_eq!(probe.alloc(769), Some((0, 1024)));
    assert_eq!(probe.alloc(1024), Some((1280, 1024)));
}

#[test]
fn a_fraction_sets_the_remainder_that_is_worth_keeping() {
    // 12,032 bytes from a hole of 20,224: a remainder of 8192, against thresholds of 10,485 and 1048.
    let tail = (20_480, 1_048_576 - 20_480);
    for (fraction, chunk, free) in [(0.01, 20_224, vec![tail]), (0.001, 12_032, vec![(12_032, 8192), tail])] {
        let probe = Probe::new(options(1_048_576).fragmentation_fraction(fraction));
        assert_eq!(probe.alloc(20_000), Some((0, 20_224)));
        assert_eq!(probe.alloc(256), Some((20_224, 256)));
        probe.free(0);
        assert_eq!(probe.alloc(12_000), Some((0, chunk)));
        assert_eq!(probe.free_chunks(), free);
    }
}

use proptest::prelude::*;

use super::*;
use crate::test_strategies::{config, limit, size};
use crate::units::MAX_BYTES;

fn asked(wanted: u64, needed: u64) -> Vec<u64> {
    backpedal(wanted, needed).collect()
}

#[test]
fn backpedal_ends_even_when_rounding_eats_the_step() {
    // The reference allocator asks for 2304 bytes for ever here (allocator, section 20, defect 1).
    assert_eq!(asked(2304, 256), [2304, 2048, 1792, 1536, 1280, 1024, 768, 512, 256]);
    assert_eq!(asked(256, 256), [256]);
}

#[test]
fn backpedal_is_single_precision() {
    let head = [2_097_152, 1_887_488, 1_698_816, 1_529_088, 1_376_256, 1_238_784, 1_115_136, 1_003_776];
    assert_eq!(asked(2 << 20, 1_000_000), head);
    assert_eq!(asked(83_112_563_200, 74_000_000_000), [83_112_563_200, 74_801_307_648]);
    assert_eq!(asked(8_388_608, 5_000_192), [8_388_608, 7_549_952, 6_795_008, 6_115_584, 5_504_256]);
}

#[test]
fn the_tail_of_backpedal_is_the_recorded_one() {
    let tail: Vec<_> = asked(2 << 20, 2304).into_iter().filter(|&n| n <= 4352).collect();
    assert_eq!(tail, [4352, 4096, 3840, 3584, 3328, 3072, 2816, 2560, 2304]);
}

#[test]
fn the_step_doubles_after_a_grant_unless_the_request_doubled_it() {
    let mut growth = Growth::new(64 << 20, true);
    let plan = growth.plan(256, 0, 64 << 20).unwrap();
    assert_eq!((plan.largest, plan.room), (2 << 20, 64 << 20));
    growth.granted(&plan);
    let plan = growth.plan(20 << 20, 2 << 20, 64 << 20).unwrap();
    assert_eq!(plan.largest, 32 << 20);
    growth.granted(&plan);
    assert_eq!(growth.plan(256, 34 << 20, 64 << 20).unwrap().largest, 30 << 20);
}

#[test]
fn a_refused_plan_keeps_the_doubled_step() {
    let mut growth = Growth::new(1 << 30, true);
    growth.plan(5_000_192, 0, 1 << 30).unwrap();
    assert_eq!(growth.plan(256, 0, 1 << 30).unwrap().largest, 8 << 20);
}

#[test]
fn odd_limits_are_cut_to_the_granule() {
    let mut growth = Growth::new(1_000_001, false);
    assert_eq!(growth.plan(1_000_192, 0, 1_000_001), None);
    assert_eq!(growth.plan(999_936, 0, 1_000_001).unwrap().largest, 999_936);
    assert_eq!(Growth::new(255, true).plan(256, 0, 255), None);
    assert_eq!(Growth::new(300, true).plan(256, 0, 300).unwrap().largest, 256);
}

#[test]
fn the_step_saturates_instead_of_wrapping_to_zero() {
    // The reference allocator doubles to 0 and then loops (allocator, section 20, defect 2).
    let limit = crate::MAX_BYTES;
    let mut growth = Growth::new(limit, true);
    for _ in 0..100 {
        let plan = growth.plan(256, 0, limit).unwrap();
        growth.granted(&plan);
    }
    assert_eq!(growth.plan(256, 0, limit).unwrap().largest, limit);
}

/// The rule of growth (allocator, section 9) in 128 bits, without overflow and saturation.
struct Slow {
    step: u128,
}

impl Slow {
    fn new(limit: u64, growth: bool) -> Self {
        let start = if growth { limit.min(2_097_152) } else { limit };
        Self { step: u128::from(start).div_ceil(256) * 256 }
    }

    /// Returns the first size to ask for, and whether the request doubled the step.
    fn plan(&mut self, needed: u64, reserved: u64, limit: u64) -> Option<(u128, bool)> {
        let available = u128::from(limit - reserved) / 256 * 256;
        let needed = u128::from(needed);
        if needed > available {
            return None;
        }
        let grown = needed > self.step;
        while needed > self.step {
            self.step *= 2;
        }
        Some((self.step.min(available), grown))
    }
}

/// Returns the next size of step 4 (allocator, section 9) where rounding makes progress: always above 2304 bytes.
fn nine_tenths_rounded(bytes: u64) -> u64 {
    round_up(nine_tenths(bytes))
}

/// Generates one round: the source grants one of the sizes, or none.
fn round() -> impl Strategy<Value = (u64, bool, bool)> {
    (size(), any::<bool>(), any::<bool>())
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn plans_are_those_of_the_specification(
        limit in limit(),
        growth in any::<bool>(),
        rounds in prop::collection::vec(round(), 1..50),
    ) {
        let (mut fast, mut slow) = (Growth::new(limit, growth), Slow::new(limit, growth));
        let mut reserved = 0;
        for (bytes, grants, gives_back) in rounds {
            let needed = round_up((bytes % (limit + 1)).max(1));
            let plan = fast.plan(needed, reserved, limit);
            let expected = slow.plan(needed, reserved, limit);
            prop_assert_eq!(plan.map(|plan| u128::from(plan.largest)), expected.map(|(first, _)| first));
            let (Some(plan), Some((_, grown))) = (plan, expected) else {
                reserved = 0;
                continue;
            };
            prop_assert_eq!(plan.needed, needed);
            prop_assert!(plan.needed <= plan.largest && plan.largest <= plan.room);
            prop_assert!(plan.room <= limit - reserved && plan.room.is_multiple_of(GRANULE));
            prop_assert!(plan.largest.is_multiple_of(GRANULE));
            if grants {
                fast.granted(&plan);
                slow.step *= if grown { 1 } else { 2 };
                reserved = if gives_back { 0 } else { reserved + plan.largest };
            }
        }
    }

    #[test]
    fn sizes_fall_strictly_and_end_at_what_is_needed_or_above(one in size(), other in size()) {
        let (needed, wanted) = (round_up(one.min(other).max(1)), round_up(one.max(other).max(1)));
        // Bounded by the tenths in 63 bits plus the granules below 2304 bytes.
        let sizes: Vec<_> = backpedal(wanted, needed).take(1000).collect();
        prop_assert!(sizes.len() < 450, "{}", sizes.len());
        prop_assert_eq!(sizes[0], wanted);
        for pair in sizes.windows(2) {
            let expected = if pair[0] > 2304 { nine_tenths_rounded(pair[0]) } else { pair[0] - GRANULE };
            prop_assert_eq!(pair[1], expected);
            prop_assert!(pair[1] < pair[0] && pair[1].is_multiple_of(GRANULE));
        }
        let last = *sizes.last().unwrap();
        prop_assert!(last >= needed);
        // The sequence did not end early: the next size would be too small.
        let next = if last > 2304 { nine_tenths_rounded(last) } else { last - GRANULE };
        prop_assert!(next < needed);
    }

    #[test]
    fn small_requests_reach_any_limit_in_so_many_grants_as_it_has_doublings(limit in limit()) {
        let mut growth = Growth::new(limit, true);
        let (mut reserved, mut grants) = (0, 0);
        while let Some(plan) = growth.plan(GRANULE, reserved, limit) {
            growth.granted(&plan);
            reserved += plan.largest;
            grants += 1;
            prop_assert!(grants <= 43, "2 MiB doubled 42 times is above every limit");
        }
        prop_assert_eq!(reserved, round_down(limit));
        prop_assert!(grants <= 1 + (limit / FIRST_STEP + 1).ilog2() + 1);
    }

    #[test]
    fn without_growth_the_first_plan_is_the_whole_limit(limit in limit()) {
        let plan = Growth::new(limit, false).plan(GRANULE, 0, limit);
        let whole = round_down(limit);
        prop_assert_eq!(plan.map(|plan| plan.largest), (whole > 0).then_some(whole));
    }

    #[test]
    fn more_needed_never_means_less_asked_for(limit in limit(), one in size(), other in size()) {
        let first = |needed: u64| {
            let needed = round_up(needed.max(1));
            Growth::new(limit, true).plan(needed, 0, limit).map_or(MAX_BYTES, |plan| plan.largest)
        };
        prop_assert!(first(one.min(other)) <= first(one.max(other)));
    }
}

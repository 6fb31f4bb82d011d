use super::*;

fn asked(wanted: u64, needed: u64) -> Vec<u64> {
    backpedal(wanted, needed).collect()
}

#[test]
fn backpedal_ends_even_when_rounding_eats_the_step() {
    // The reference allocator asks for 2304 bytes for ever here (specification, section 20, defect 1).
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
    // The reference allocator doubles to 0 and then loops (specification, section 20, defect 2).
    let limit = crate::MAX_BYTES;
    let mut growth = Growth::new(limit, true);
    for _ in 0..100 {
        let plan = growth.plan(256, 0, limit).unwrap();
        growth.granted(&plan);
    }
    assert_eq!(growth.plan(256, 0, limit).unwrap().largest, limit);
}

use super::*;
use crate::Options;

fn read(ops: &[i64], ids: &[i64], sizes: &[i64]) -> Result<Program, ProgramError> {
    Program::from_columns(ops, ids, sizes)
}

#[test]
fn slots_are_used_again_and_the_peak_is_that_of_live_bytes() {
    let program = read(&[1, 1, 2, 1, 2, 2], &[7, 9, 7, 7, 9, 7], &[10, 20, 10, 5, 20, 5]).unwrap();
    assert_eq!((program.slots(), program.peak_live(), program.events().len()), (2, 30, 6));
}

#[test]
fn what_makes_no_sense_is_named_with_its_event() {
    use ProgramError as E;
    assert_eq!(read(&[1], &[1, 2], &[1]).unwrap_err(), E::Lengths { ops: 1, ids: 2, sizes: 1 });
    assert_eq!(read(&[1, 3], &[1, 1], &[1, 1]).unwrap_err(), E::Kind { event: 1, op: 3 });
    assert_eq!(read(&[1], &[1], &[-5]).unwrap_err(), E::Size { event: 0, size: -5 });
    assert_eq!(read(&[1], &[1], &[1 << 58]).unwrap_err(), E::Size { event: 0, size: 1 << 58 });
    assert_eq!(read(&[1, 1], &[4, 4], &[1, 1]).unwrap_err(), E::AllocatedTwice { event: 1, id: 4 });
    assert_eq!(read(&[2], &[4], &[1]).unwrap_err(), E::NeverAllocated { event: 0, id: 4 });
    assert_eq!(read(&[1, 2, 2], &[4, 4, 4], &[1, 1, 1]).unwrap_err(), E::FreedTwice { event: 2, id: 4 });
    let differs = E::SizeDiffers { event: 1, id: 4, allocated: 8, freed: 9 };
    assert_eq!(read(&[1, 2], &[4, 4], &[8, 9]).unwrap_err(), differs);
    let many = vec![1_i64; 70];
    let ids: Vec<i64> = (0..70).collect();
    assert_eq!(read(&many, &ids, &vec![MAX_EVENT_BYTES; 70]).unwrap_err(), E::Live { event: 63 });
}

#[test]
fn offsets_are_distances_and_a_refusal_is_minus_one() {
    let program = read(&[1, 1, 1, 2, 2, 1], &[0, 1, 2, 1, 2, 3], &[300, 700, 100, 700, 100, 0]).unwrap();
    let mut offsets = [0; 6];
    let outcome = replay(&program, &Options::new(1024), 0, Some(&mut offsets)).unwrap();
    assert_eq!(offsets, [0, -1, 512, -1, 512, -1]);
    assert_eq!((outcome.refused, outcome.first_refused), (1, Some(1)));
}

fn find(program: &Program, options: &Options, gap: u64, search: Search) -> Result<Limits, ReplayError> {
    find_limits(program, options, gap, &search, |_| true)
}

#[test]
fn the_peak_in_granules_rounds_each_request() {
    let program = read(&[1, 1, 2, 1], &[1, 2, 1, 3], &[1, 257, 1, 0]).unwrap();
    assert_eq!((program.peak_live(), program.peak_in_granules()), (258, 768));
    let limits = find(&program, &Options::new(1), 0, Search { granularity: 256, ..Search::default() });
    assert_eq!(limits.unwrap(), Limits { min_limit: 768, safe_limit: 768, untried: None });
}

#[test]
fn a_program_that_asks_for_nothing_needs_no_limit() {
    for program in [Program::default(), read(&[1, 2], &[1, 1], &[0, 0]).unwrap()] {
        let limits = find(&program, &Options::new(1), 0, Search::default()).unwrap();
        assert_eq!((limits.min_limit, limits.safe_limit, limits.complete()), (0, 0, true));
    }
}

#[test]
fn a_search_ends_where_no_limit_is_enough() {
    let count = |count: usize| {
        let ids: Vec<i64> = (0..).take(count).collect();
        read(&vec![1; count], &ids, &vec![MAX_EVENT_BYTES; count]).unwrap()
    };
    let options = Options::new(1);
    let search = Search { granularity: 1 << 50, ..Search::default() };
    assert_eq!(find(&count(32), &options, 0, search).unwrap().min_limit, 1 << 62);
    for gap in [1 << 62, (1 << 63) - (1 << 20)] {
        assert!(matches!(find(&count(63), &options, gap, search), Err(ReplayError::NoLimit)));
    }
}

#[test]
fn a_granularity_is_a_multiple_of_the_granule() {
    let program = read(&[1], &[1], &[100]).unwrap();
    for granularity in [0, 1, 255, 1000, 1 << 61, u64::MAX] {
        let error =
            find(&program, &Options::new(1), 0, Search { granularity, ..Search::default() }).unwrap_err();
        assert!(error.to_string().ends_with(&format!("not {granularity}")), "{error}");
    }
    let limits = find(&program, &Options::new(1), 0, Search { granularity: 1 << 60, ..Search::default() });
    assert_eq!(limits.unwrap(), Limits { min_limit: 1 << 60, safe_limit: 1 << 60, untried: None });
}

#[test]
fn options_out_of_range_and_a_caller_who_stops_end_a_search() {
    let program = read(&[1], &[1], &[100]).unwrap();
    let options = Options::new(1).fragmentation_fraction(2.0);
    assert!(matches!(find(&program, &options, 0, Search::default()), Err(ReplayError::Options(_))));
    let stopped = find_limits(&program, &Options::new(1), 0, &Search::default(), |_| false);
    assert!(matches!(stopped, Err(ReplayError::Interrupted)));
}

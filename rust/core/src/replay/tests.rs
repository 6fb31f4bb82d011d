use super::*;

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

#[test]
fn min_limit_finds_the_boundary_wherever_it_is() {
    for boundary in [1, 2, 16, 17, 127, 128, 129, 5000] {
        let found: Result<_, ()> = min_limit(17 * LIMIT_STEP, |limit| Ok(limit >= boundary * LIMIT_STEP));
        assert_eq!(found.unwrap(), Some(boundary.max(17) * LIMIT_STEP));
    }
}

#[test]
fn min_limit_ends_where_no_limit_is_enough() {
    for peak_live in [0, 1, 1 << 40, 1 << 62, crate::MAX_BYTES] {
        let found: Result<_, ()> = min_limit(peak_live, |_| Ok(false));
        assert_eq!(found.unwrap(), None);
    }
    let ops = [1; 32];
    let ids: Vec<i64> = (0..32).collect();
    let program = read(&ops, &ids, &[MAX_EVENT_BYTES; 32]).unwrap();
    let options = Options::new(1);
    assert!(matches!(min_limit_of(&program, &options, 0, || false), Err(ReplayError::Interrupted)));
    assert!(min_limit_of(&program, &options, 0, || true).unwrap() >= 1 << 62);
    let many = read(&[1; 63], &(0..63).collect::<Vec<i64>>(), &[MAX_EVENT_BYTES; 63]).unwrap();
    assert!(matches!(min_limit_of(&many, &options, 1 << 62, || true), Err(ReplayError::NoLimit)));
}

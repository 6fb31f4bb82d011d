use alloc::vec;
use alloc::vec::Vec;

use super::*;

fn span(first: u64, end: u64) -> PageSpan {
    PageSpan { first, end }
}

#[test]
fn pages_lie_wholly_between_the_addresses() {
    assert_eq!(PageSpan::within(4096, 12288, 12), span(1, 3));
    assert_eq!(PageSpan::within(4097, 12287, 12).len(), 0);
    assert_eq!(PageSpan::within(1, 4095, 12).len(), 0);
}

#[test]
fn the_form_is_the_shortest() {
    let whole = span(10, 20);
    assert_eq!(Committed::of(whole, [span(10, 15), span(15, 20)]), Committed::All);
    assert_eq!(Committed::of(whole, [span(12, 12)]), Committed::None);
    assert_eq!(Committed::of(span(3, 3), []), Committed::All);
    assert_eq!(Committed::of(whole, [span(10, 12), span(12, 13)]), Committed::One(span(10, 13)));
}

#[test]
fn missing_pages_are_those_without_memory() {
    let some = Committed::Many(vec![span(12, 14), span(16, 18)].into());
    assert_eq!(some.missing(span(10, 17)), [span(10, 12), span(14, 16)]);
    assert_eq!(some.count_missing(span(10, 17)), 4);
    assert_eq!(Committed::None.missing(span(1, 3)), [span(1, 3)]);
    assert_eq!(Committed::All.missing(span(1, 3)), Vec::new());
}

#[test]
fn pages_are_taken_from_the_end_and_come_back() {
    let whole = span(10, 20);
    let mut some = Committed::Many(vec![span(12, 14), span(16, 18)].into());
    assert_eq!(some.take(whole, 3), [span(16, 18), span(13, 14)]);
    assert_eq!(some, Committed::One(span(12, 13)));
    some.add(whole, &[span(13, 14)]);
    some.add(whole, &[span(10, 12)]);
    assert_eq!(some, Committed::One(span(10, 14)));
    assert_eq!(some.take(whole, 100), [span(10, 14)]);
    assert_eq!(some, Committed::None);
}

#[test]
fn the_difference_of_spans_is_what_no_other_has() {
    let spans = [span(1, 5), span(8, 12)];
    assert_eq!(difference(&spans, &[span(9, 20), span(0, 2)]), [span(2, 5), span(8, 9)]);
    assert_eq!(difference(&spans, &[]), spans);
    assert_eq!(difference(&spans, &[span(0, 30)]), []);
}

#[test]
fn a_part_of_a_hole_has_its_part_of_the_memory() {
    let some = Committed::One(span(12, 14));
    assert_eq!(some.clip(span(12, 14)), Committed::All);
    assert_eq!(some.clip(span(14, 20)), Committed::None);
    assert_eq!(some.clip(span(13, 15)), Committed::One(span(13, 14)));
}

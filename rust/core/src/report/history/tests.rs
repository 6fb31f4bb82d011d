use super::*;

fn events(history: &History) -> Option<Vec<Event>> {
    history.events_before(512).map(Iterator::collect)
}

#[test]
fn events_come_back_in_order() {
    let mut history = History::default();
    history.allocated(1, 512);
    history.allocated(2, 1 << 30);
    history.freed(NonZeroU64::new(1));
    let expected = [Event::Allocated(512), Event::Allocated(1 << 30), Event::Freed(1)];
    assert_eq!(events(&history).as_deref(), Some(&expected[..]));
}

#[test]
fn it_ends_with_too_many_allocations_and_with_a_size_that_it_cannot_hold() {
    let mut history = History::default();
    for id in 1..=MAX_ALLOCATIONS {
        history.allocated(id, 256);
    }
    assert_eq!(events(&history).map(|events| events.len()), Some(512));
    history.allocated(MAX_ALLOCATIONS + 1, 256);
    assert_eq!(events(&history), None);
    assert_eq!(history.events.capacity(), 0, "an ended history takes no memory");

    let mut history = History::default();
    history.allocated(1, 1 << 39);
    assert_eq!(events(&history), None);
}

#[test]
fn a_refusal_ends_it_only_when_something_else_follows() {
    let mut history = History::default();
    history.allocated(1, 256);
    history.refused(512);
    history.refused(512);
    assert!(events(&history).is_some(), "the same request once more");
    assert!(history.events_before(768).is_none(), "another request after a refusal");
    history.refused(768);
    assert_eq!(events(&history), None);

    for event in [History::allocated, |history: &mut History, id, _| history.freed(NonZeroU64::new(id))] {
        let mut history = History::default();
        history.refused(512);
        event(&mut history, 1, 256);
        assert_eq!(events(&history), None);
        history.allocated(2, 256);
        assert_eq!(events(&history), None);
    }
}

use super::{EventKind, EventLog, Keep};
use crate::pool::{Options, Pool};
use crate::source::AddressSpace;

fn pool(options: Options) -> Pool {
    Pool::new(AddressSpace::new(0), options).unwrap()
}

fn events(log: &EventLog) -> Vec<(EventKind, u64, u64)> {
    log.events().iter().map(|event| (event.kind, event.id, event.bytes)).collect()
}

#[test]
fn every_path_of_a_call_is_recorded_in_order() {
    use EventKind::{Allocated, Freed, Refused};
    let pool = pool(Options::new(4096).growth(false));
    let before = pool.allocate(300).unwrap();
    let log = EventLog::new(100, Keep::First);
    pool.start_recording(&log).unwrap();
    assert!(!pool.is_fast_path_open());
    let plain = pool.allocate(100).unwrap();
    let tried = pool.try_allocate(200).unwrap().unwrap();
    pool.allocate(0).unwrap();
    pool.allocate(5000).unwrap_err();
    pool.resize(plain.address, 50).unwrap();
    pool.free(before.address).unwrap();
    pool.free_allocation(&tried).unwrap();
    pool.free_deferred(&plain);
    pool.free(before.address).unwrap_err();
    assert!(pool.stop_recording(&log).unwrap());
    assert!(!pool.stop_recording(&log).unwrap());
    assert!(pool.is_fast_path_open());
    pool.allocate(700).unwrap();
    assert_eq!(
        events(&log),
        [
            (Allocated, 1, 300),
            (Allocated, 2, 100),
            (Allocated, 3, 200),
            (Refused, 0, 5000),
            (Freed, 2, 100),
            (Allocated, 2, 50),
            (Freed, 1, 300),
            (Freed, 3, 200),
            (Freed, 2, 50),
        ]
    );
    assert_eq!((log.lost(), log.refused()), (0, 1));
    assert!(log.events().is_sorted_by_key(|event| event.nanoseconds));
}

#[test]
fn a_full_log_keeps_the_last_or_the_first_events_and_counts_the_others() {
    for (keep, kept) in [(Keep::Last, [9, 10]), (Keep::First, [1, 2])] {
        let pool = pool(Options::new(1 << 20));
        let log = EventLog::new(2, keep);
        pool.start_recording(&log).unwrap();
        for bytes in 1..=10 {
            pool.allocate(bytes).unwrap();
        }
        assert_eq!(log.events().iter().map(|event| event.bytes).collect::<Vec<_>>(), kept);
        assert_eq!(log.lost(), 8);
        assert_eq!(log.take().len(), 2);
        assert!(log.events().is_empty());
    }
}

#[test]
fn pools_and_threads_share_a_log_and_are_told_apart() {
    let pools = [pool(Options::new(1 << 20)), pool(Options::new(1 << 20))];
    let log = EventLog::new(100, Keep::Last);
    for pool in &pools {
        pool.start_recording(&log).unwrap();
    }
    pools[0].allocate(1).unwrap();
    std::thread::scope(|threads| {
        threads.spawn(|| {
            crate::set_tag(Some("other".into()));
            pools[1].allocate(2).unwrap();
        });
    });
    let [first, second] = log.events().try_into().unwrap();
    assert_eq!((first.pool, second.pool), (pools[0].number(), pools[1].number()));
    assert_eq!((first.thread, second.thread), (0, 1));
    assert_eq!((first.tag, second.tag.as_deref()), (None, Some("other")));
}

#[test]
fn a_log_of_many_batches_has_the_events_that_a_list_would_have() {
    for (keep, capacity) in [(Keep::Last, 3000), (Keep::First, 3000), (Keep::Last, 1), (Keep::First, 100_000)]
    {
        let pools = [pool(Options::new(1 << 20)), pool(Options::new(1 << 20))];
        let log = EventLog::new(capacity, keep);
        let mut all = Vec::new();
        for pool in &pools {
            pool.start_recording(&log).unwrap();
        }
        for round in 0..5000_usize {
            // Now the one pool is busy, now the other.
            let pool = &pools[usize::from(round / 700 % 3 == 0)];
            let allocation = pool.allocate(round as u64 % 97 + 1).unwrap();
            pool.free(allocation.address).unwrap();
            let bytes = allocation.requested;
            all.push((pool.number(), EventKind::Allocated, allocation.id, bytes));
            all.push((pool.number(), EventKind::Freed, allocation.id, bytes));
        }
        let lost = all.len().saturating_sub(capacity);
        assert_eq!(log.lost(), lost as u64);
        let copied = log.events();
        assert_eq!(copied.len(), all.len() - lost);
        for pool in &pools {
            let of_pool = |pools: &u64| *pools == pool.number();
            let expected: Vec<_> = all.iter().filter(|event| of_pool(&event.0)).copied().collect();
            let seen = copied.iter().filter(|event| of_pool(&event.pool));
            let seen: Vec<_> = seen.map(|event| (event.pool, event.kind, event.id, event.bytes)).collect();
            match keep {
                Keep::Last => assert!(expected.ends_with(&seen), "{capacity}"),
                Keep::First => assert!(expected.starts_with(&seen), "{capacity}"),
            }
        }
        assert!(copied.is_sorted_by_key(|event| event.nanoseconds));
        assert_eq!(log.take(), copied);
        assert_eq!((log.events().len(), log.lost()), (0, lost as u64));
    }
}

#[test]
fn nothing_is_lost_while_another_thread_takes_events() {
    const EVENTS: u64 = 200_000;
    let (pool, log) = (pool(Options::new(1 << 20)), EventLog::new(1 << 20, Keep::First));
    pool.start_recording(&log).unwrap();
    let mut taken = Vec::new();
    std::thread::scope(|threads| {
        let program = threads.spawn(|| {
            for _ in 0..EVENTS / 2 {
                pool.free(pool.allocate(1).unwrap().address).unwrap();
            }
        });
        while !program.is_finished() {
            taken.extend(log.take());
        }
    });
    taken.extend(log.take());
    assert_eq!((taken.len() as u64, log.lost()), (EVENTS, 0));
    assert!(taken.chunks(2).zip(1..).all(|(pair, id)| pair.iter().all(|event| event.id == id)));
}

#[test]
fn events_of_a_pool_that_is_gone_stay() {
    let log = EventLog::new(100, Keep::Last);
    {
        let pool = pool(Options::new(1 << 20));
        pool.start_recording(&log).unwrap();
        pool.allocate(1).unwrap();
    }
    assert_eq!(events(&log), [(EventKind::Allocated, 1, 1)]);
}

#[test]
fn a_refusal_is_told_before_the_error_comes_back_and_without_the_lock() {
    let pool = std::sync::Arc::new(pool(Options::new(4096).growth(false)));
    let (log, other) = (EventLog::new(100, Keep::Last), EventLog::new(100, Keep::Last));
    let (seen, told) = std::sync::mpsc::channel();
    let (same_log, same_pool) = (log.clone(), std::sync::Arc::downgrade(&pool));
    assert!(log.on_refusal(move || {
        // The event is in the log, and the pool can be used.
        same_pool.upgrade().unwrap().allocate(1).unwrap();
        seen.send(events(&same_log)).unwrap();
    }));
    assert!(!log.on_refusal(|| ()));
    pool.start_recording(&log).unwrap();
    pool.start_recording(&other).unwrap();
    pool.allocate(5000).unwrap_err();
    let expected = [(EventKind::Refused, 0, 5000), (EventKind::Allocated, 1, 1)];
    assert_eq!(told.try_recv().unwrap(), expected);
    pool.stop_recording(&log).unwrap();
    pool.allocate(6000).unwrap_err();
    assert!(told.try_recv().is_err());
    assert_eq!(events(&other).last(), Some(&(EventKind::Refused, 0, 6000)));
}

#[test]
fn a_log_of_the_last_events_knows_what_was_live_before_them() {
    // Against a map of what is live after each event. Batches have 1,024 events: some are dropped whole.
    for capacity in [1, 20, 3000] {
        let pools = [pool(Options::new(1 << 30)), pool(Options::new(1 << 30))];
        let log = EventLog::new(capacity, Keep::Last);
        let whole = EventLog::new(1 << 20, Keep::First);
        for pool in &pools {
            pool.start_recording(&log).unwrap();
            pool.start_recording(&whole).unwrap();
        }
        for round in 0..3000_u64 {
            let pool = &pools[usize::try_from(round % 2).unwrap()];
            let kept = pool.allocate(round + 1).unwrap();
            if round % 100 != 7 {
                pool.free(kept.address).unwrap();
            }
        }
        let found = log.recent();
        let all = whole.events();
        assert_eq!(found.events.len(), capacity);
        assert_eq!(log.lost(), (all.len() - capacity) as u64);
        let mut live = std::collections::BTreeMap::new();
        for event in &all[..all.len() - capacity] {
            match event.kind {
                EventKind::Allocated => live.insert((event.pool, event.id), event.bytes),
                _ => live.remove(&(event.pool, event.id)),
            };
        }
        let said = found.live_before.iter().map(|event| ((event.pool, event.id), event.bytes));
        assert_eq!(said.collect::<std::collections::BTreeMap<_, _>>(), live);
        assert!(found.live_before.is_sorted_by_key(|event| event.nanoseconds));
        // What was taken is before the next events, too.
        assert_eq!(log.take().len(), capacity);
        let taken = log.recent();
        assert_eq!((taken.live_before.len(), taken.events.len()), (30, 0));
    }
}

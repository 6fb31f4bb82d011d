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

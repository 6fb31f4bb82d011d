//! Tries every interleaving of two or three threads: `RUSTFLAGS="--cfg loom" cargo test --release --test loom`.
#![cfg(loom)]

use std::sync::Arc as StdArc;
use std::time::Duration;

use allotment_sync::{
    DeferredQueue, Entry, EntryTable, EventCount, Found, Mutex, SourceLock, ThreadSlots, WouldDeadlock,
    starve_at_once,
};
use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, Ordering};
use loom::thread;

/// Runs `test` under all interleavings with at most `changes` preemptions.
fn model(changes: usize, test: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(changes);
    builder.max_branches = 10_000;
    builder.check(test);
}

/// Increments the counter `times` times; loom reports overlapping critical sections and missing ordering.
fn count(mutex: &Mutex<u32>, times: u32) {
    for _ in 0..times {
        *mutex.lock().expect("no thread panics") += 1;
    }
}

/// Does the same on the owner's fast path where possible.
fn count_as_owner(mutex: &Mutex<u32>, times: u32) {
    for _ in 0..times {
        let counted = mutex.try_with_as_owner(|number| {
            *number += 1;
            Some(())
        });
        if counted.is_none() {
            count(mutex, 1);
        }
    }
}

#[test]
fn the_owner_fast_path_keeps_mutual_exclusion() {
    model(3, || {
        let mutex = Arc::new(Mutex::new(0));
        count(&mutex, 1);
        let other = thread::spawn({
            let mutex = Arc::clone(&mutex);
            move || count_as_owner(&mutex, 2)
        });
        count_as_owner(&mutex, 2);
        other.join().unwrap();
        assert_eq!(*mutex.lock().unwrap(), 5);
    });
}

#[test]
fn two_threads_never_hold_the_lock_at_once() {
    model(3, || {
        let mutex = Arc::new(Mutex::new(0));
        count(&mutex, 1);
        let other = thread::spawn({
            let mutex = Arc::clone(&mutex);
            move || count(&mutex, 2)
        });
        count(&mutex, 2);
        other.join().unwrap();
        assert_eq!(*mutex.lock().unwrap(), 5);
    });
}

#[test]
fn a_lock_that_changes_its_owner_stays_a_lock() {
    model(1, || threads_count(2, 1));
    model(2, || threads_count(1, 3));
}

/// Each thread that waits is handed the lock at the next release, where it would barge otherwise.
#[test]
fn a_starving_thread_is_handed_the_lock() {
    starve_at_once(true);
    model(2, || threads_count(1, 2));
    model(1, || threads_count(2, 1));
}

/// This thread and `others` more increment a counter `times` times each.
fn threads_count(others: u32, times: u32) {
    let mutex = Arc::new(Mutex::new(0));
    let threads: Vec<_> = (0..others)
        .map(|_| {
            let mutex = Arc::clone(&mutex);
            thread::spawn(move || count(&mutex, times))
        })
        .collect();
    count(&mutex, times);
    for thread in threads {
        thread.join().expect("no thread panics");
    }
    assert_eq!(*mutex.lock().expect("no thread panics"), (others + 1) * times);
}

#[test]
fn try_lock_is_exclusive() {
    model(3, || {
        let mutex = Arc::new(Mutex::new(0));
        count(&mutex, 1);
        let other = thread::spawn({
            let mutex = Arc::clone(&mutex);
            move || {
                (0..2).filter(|_| mutex.try_lock().unwrap().map(|mut number| *number += 1).is_some()).count()
            }
        });
        let guard = mutex.lock().unwrap();
        assert!(mutex.try_lock().unwrap().is_none(), "this thread is inside");
        drop(guard);
        count(&mutex, 1);
        let tries = u32::try_from(other.join().unwrap()).unwrap();
        assert_eq!(*mutex.lock().unwrap(), 2 + tries);
    });
}

#[test]
fn of_two_attempts_at_once_one_succeeds() {
    model(3, || {
        let mutex = Arc::new(Mutex::new(0));
        count(&mutex, 1);
        let other = thread::spawn({
            let mutex = Arc::clone(&mutex);
            move || mutex.try_lock().unwrap().map(|mut number| *number += 1).is_some()
        });
        let mine = mutex.try_lock().unwrap().map(|mut number| *number += 1).is_some();
        assert!(other.join().unwrap() || mine);
    });
}

/// Models a pool's deferred free: each thread checks the queue after it has released the lock.
#[test]
fn no_item_stays_deferred_after_every_thread_has_unlocked() {
    model(3, || {
        let shared = Arc::new((Mutex::new(0), DeferredQueue::new()));
        let settle = |(mutex, queue): &(Mutex<u32>, DeferredQueue<u32>)| {
            while !queue.is_empty() {
                let Some(mut sum) = mutex.try_lock().unwrap() else { return };
                queue.run_all(|item| *sum += item);
            }
        };
        count(&shared.0, 1);
        let other = thread::spawn({
            let shared = Arc::clone(&shared);
            move || {
                // The first attempt revokes the ownership; the second finds an unbiased lock.
                for _ in 0..2 {
                    let tried = shared.0.try_lock().unwrap().map(|mut sum| *sum += 1);
                    if tried.is_none() {
                        shared.1.push(1);
                    }
                    settle(&shared);
                }
            }
        });
        for _ in 0..2 {
            count(&shared.0, 1);
            settle(&shared);
        }
        other.join().unwrap();
        assert!(shared.1.is_empty());
        assert_eq!(*shared.0.lock().unwrap(), 5);
    });
}

/// Loom's clock does not advance: it reports a waiter that is never woken.
#[test]
fn a_waiter_misses_no_notification() {
    model(2, || {
        let shared = Arc::new((Mutex::new(0), EventCount::new()));
        let sleeper = thread::spawn({
            let shared = Arc::clone(&shared);
            move || {
                loop {
                    let number = shared.0.lock().unwrap();
                    let ticket = shared.1.ticket();
                    if *number == 2 {
                        return;
                    }
                    drop(number);
                    shared.1.wait_timeout(ticket, Duration::from_secs(1));
                }
            }
        });
        for _ in 0..2 {
            let mut number = shared.0.lock().unwrap();
            *number += 1;
            shared.1.notify_all();
        }
        sleeper.join().unwrap();
    });
}

#[test]
fn a_source_lock_is_exclusive_and_detects_reentry() {
    model(3, || {
        let lock = Arc::new(SourceLock::new(0));
        let other = thread::spawn({
            let lock = Arc::clone(&lock);
            move || {
                *lock.lock().unwrap() += 1;
                usize::from(lock.try_lock().is_some_and(|mut number| {
                    *number += 1;
                    true
                }))
            }
        });
        let mut held = lock.lock().unwrap();
        assert_eq!(lock.lock().err(), Some(WouldDeadlock));
        assert!(lock.try_lock().is_none());
        *held += 1;
        drop(held);
        let tries = other.join().unwrap();
        assert_eq!(*lock.lock().unwrap(), 2 + tries);
    });
}

#[test]
fn of_two_threads_one_removes_an_entry() {
    model(3, || {
        let table = Arc::new(EntryTable::new());
        let place = table.reserve(1).unwrap();
        table.put(place, Entry { number: 1, value: 10 });
        let other = thread::spawn({
            let table = Arc::clone(&table);
            // Then another entry in its place: a thread that found the first does not remove that.
            move || {
                let mine = table.find(1).filter(|found| table.remove(found));
                if let Some(Found { place, .. }) = mine {
                    table.put(place, Entry { number: 2, value: 20 });
                }
                mine.is_some()
            }
        });
        let removed = table.find(1).filter(|found| table.remove(found));
        let replaced = other.join().unwrap();
        if let Some(Found { entry: Entry { number, value }, .. }) = removed {
            assert_eq!((u64::from(value), number), (number * 10, if replaced { 2 } else { 1 }));
        }
        let mut rest = 0;
        table.drain(|_, _| rest += 1);
        assert_eq!(rest + usize::from(removed.is_some()), 1);
    });
}

#[test]
fn an_entry_is_found_with_all_that_was_put() {
    model(3, || {
        let table = Arc::new(EntryTable::new());
        let place = table.reserve(1).unwrap();
        let other = thread::spawn({
            let table = Arc::clone(&table);
            move || table.put(place, Entry { number: 1, value: 10 })
        });
        if let Some(found) = table.find(1) {
            assert_eq!(found.entry, Entry { number: 1, value: 10 });
            assert!(table.remove(&found));
        }
        other.join().unwrap();
    });
}

/// Loom has room for two threads.
#[test]
fn each_thread_has_a_slot_of_its_own_and_a_later_one_inherits() {
    model(2, || {
        // The standard one, which has weak references.
        let slots = StdArc::new(ThreadSlots::<u32>::new());
        let is_used = Arc::new(AtomicBool::new(false));
        *slots.claim().expect("an empty table").lock().unwrap() += 1;
        let claim = || {
            let (slots, is_used) = (StdArc::clone(&slots), Arc::clone(&is_used));
            move || {
                // None, if the other thread has not ended altogether.
                let Some(mine) = slots.claim() else { return 0 };
                assert!(!is_used.swap(true, Ordering::AcqRel), "two threads have it at once");
                *mine.lock().unwrap() += 1;
                is_used.store(false, Ordering::Release);
                1
            }
        };
        let others = [thread::spawn(claim()), thread::spawn(claim())];
        let claimed: u32 = others.into_iter().map(|other| other.join().unwrap()).sum();
        let counts: Vec<u32> = slots.all().map(|(value, _)| *value.lock().unwrap()).collect();
        assert_eq!(counts, [1, claimed]);
        assert!(claimed > 0);
    });
}

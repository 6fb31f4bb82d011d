//! Every order of what two or three threads do, in loom: `RUSTFLAGS="--cfg loom" cargo test --release --test loom`.
#![cfg(loom)]

use std::time::Duration;

use allotment_sync::{Bell, Inside, Mailbox, Mutex, Turn};
use loom::sync::Arc;
use loom::thread;

/// All orders with at most so many unforced changes of thread.
fn model(changes: usize, test: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(changes);
    builder.max_branches = 10_000;
    builder.check(test);
}

/// Counts up `times` times; loom sees two inside at once, and one who looks before the other has let go.
fn count(mutex: &Mutex<u32>, times: u32) {
    for _ in 0..times {
        *mutex.lock().expect("nobody panics") += 1;
    }
}

/// The same through the owner's door where it is open.
fn count_as_owner(mutex: &Mutex<u32>, times: u32) {
    for _ in 0..times {
        let counted = mutex.work_as_owner(|number| {
            *number += 1;
            Some(())
        });
        if counted.is_none() {
            count(mutex, 1);
        }
    }
}

#[test]
fn the_owners_door_is_no_second_way_in() {
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
fn two_threads_are_never_inside_at_once() {
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
    model(2, || {
        let mutex = Arc::new(Mutex::new(0));
        let others = [3, 3].map(|times| {
            let mutex = Arc::clone(&mutex);
            thread::spawn(move || count(&mutex, times))
        });
        count(&mutex, 3);
        for other in others {
            other.join().unwrap();
        }
        assert_eq!(*mutex.lock().unwrap(), 9);
    });
}

#[test]
fn a_try_gets_in_alone_or_not_at_all() {
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

/// What a pool does with a free that cannot wait: whoever has the lock looks at the box after leaving.
#[test]
fn nothing_stays_in_the_box_when_everybody_has_left() {
    model(3, || {
        let shared = Arc::new((Mutex::new(0), Mailbox::new()));
        let settle = |(mutex, mailbox): &(Mutex<u32>, Mailbox<u32>)| {
            while !mailbox.is_empty() {
                let Some(mut sum) = mutex.try_lock().unwrap() else { return };
                *sum += mailbox.take().iter().sum::<u32>();
            }
        };
        count(&shared.0, 1);
        let other = thread::spawn({
            let shared = Arc::clone(&shared);
            move || {
                // The first try ends the ownership: the second finds the lock a plain one.
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

/// Loom's clock stands still: a sleeper that is not woken sleeps for ever, which it reports.
#[test]
fn nobody_sleeps_through_the_bell() {
    model(3, || {
        let shared = Arc::new((Mutex::new(0), Bell::new()));
        let sleeper = thread::spawn({
            let shared = Arc::clone(&shared);
            move || {
                loop {
                    let number = shared.0.lock().unwrap();
                    let heard = shared.1.rings();
                    if *number == 2 {
                        return;
                    }
                    drop(number);
                    shared.1.sleep(heard, Duration::from_secs(1));
                }
            }
        });
        for _ in 0..2 {
            let mut number = shared.0.lock().unwrap();
            *number += 1;
            shared.1.ring();
        }
        sleeper.join().unwrap();
    });
}

#[test]
fn a_turn_is_one_threads_and_that_thread_knows() {
    model(3, || {
        let turn = Arc::new(Turn::new(0));
        let other = thread::spawn({
            let turn = Arc::clone(&turn);
            move || {
                *turn.take().unwrap() += 1;
                usize::from(turn.try_take().is_some_and(|mut number| {
                    *number += 1;
                    true
                }))
            }
        });
        let mut held = turn.take().unwrap();
        assert_eq!(turn.take().err(), Some(Inside));
        assert!(turn.try_take().is_none());
        *held += 1;
        drop(held);
        let tries = other.join().unwrap();
        assert_eq!(*turn.take().unwrap(), 2 + tries);
    });
}

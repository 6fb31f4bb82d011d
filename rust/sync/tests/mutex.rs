//! Tests the biased mutex on real threads.
#![cfg(not(loom))]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use allotment_sync::{LockError, Mutex};

#[test]
fn no_update_is_lost_among_threads_that_start_and_end() {
    let mutex = Mutex::new([0_u64; 2]);
    for threads in [1_u64, 2, 4, 8, 32] {
        thread::scope(|scope| {
            for number in 0..threads {
                let mutex = &mutex;
                scope.spawn(move || {
                    for step in 0..20_000 {
                        // At times one thread runs alone, long enough to become the owner.
                        if (step / 1_000 + number) % 3 == 0 {
                            thread::yield_now();
                        }
                        let mut pair = mutex.lock().unwrap();
                        pair[0] += 1;
                        pair[1] += 1;
                        assert_eq!(pair[0], pair[1]);
                    }
                });
            }
        });
        assert_eq!(*mutex.lock().unwrap(), [20_000 * threads; 2]);
        *mutex.lock().unwrap() = [0; 2];
    }
}

#[test]
fn owners_take_over_one_after_another() {
    let mutex = Mutex::new(0);
    let rounds = 40;
    for _ in 0..rounds {
        thread::scope(|scope| {
            scope.spawn(|| (0..3_000).for_each(|_| *mutex.lock().unwrap() += 1));
        });
        *mutex.lock().unwrap() += 1;
    }
    assert_eq!(*mutex.lock().unwrap(), rounds * 3_001);
}

#[test]
fn try_lock_fails_while_a_thread_holds_the_lock() {
    let mutex = Mutex::new(0);
    let guard = mutex.lock().unwrap();
    assert!(mutex.try_lock().unwrap().is_none());
    thread::scope(|scope| {
        scope.spawn(|| assert!(mutex.try_lock().unwrap().is_none()));
    });
    drop(guard);
    thread::scope(|scope| {
        scope.spawn(|| assert!(mutex.try_lock().unwrap().is_some()));
    });
    assert!(mutex.try_lock().unwrap().is_some());
}

#[test]
fn a_waiting_thread_gets_the_lock_after_the_owner_unlocks() {
    let mutex = Mutex::new(0);
    let mut guard = mutex.lock().unwrap();
    let started = AtomicBool::new(false);
    thread::scope(|scope| {
        let other = scope.spawn(|| {
            started.store(true, Ordering::Relaxed);
            *mutex.lock().unwrap()
        });
        while !started.load(Ordering::Relaxed) {
            thread::yield_now();
        }
        // Long enough for the other thread to stop spinning and sleep.
        thread::sleep(std::time::Duration::from_millis(20));
        *guard = 7;
        drop(guard);
        assert_eq!(other.join().unwrap(), 7);
    });
}

#[test]
fn a_panic_under_the_lock_poisons_it_and_a_panic_elsewhere_does_not() {
    let mutex = Mutex::new(0);
    let outside = catch_unwind(AssertUnwindSafe(|| {
        struct InDrop<'a>(&'a Mutex<i32>);
        impl Drop for InDrop<'_> {
            fn drop(&mut self) {
                *self.0.lock().unwrap() += 1;
            }
        }
        let _in_drop = InDrop(&mutex);
        panic!("elsewhere");
    }));
    assert!(outside.is_err());
    assert_eq!(*mutex.lock().unwrap(), 1);
    let inside = catch_unwind(AssertUnwindSafe(|| {
        let _guard = mutex.lock().unwrap();
        panic!("inside");
    }));
    assert!(inside.is_err());
    is_poisoned_for_all(&mutex);
}

#[test]
fn a_panic_of_the_owner_poisons_the_lock_for_the_owner() {
    let mutex = Mutex::new(0);
    *mutex.lock().unwrap() += 1;
    assert_eq!(mutex.try_with_as_owner(|number| Some(*number)), Some(1), "who comes first owns it at once");
    let inside =
        catch_unwind(AssertUnwindSafe(|| mutex.try_with_as_owner(|_| -> Option<()> { panic!("inside") })));
    assert!(inside.is_err());
    is_poisoned_for_all(&mutex);
}

fn is_poisoned_for_all(mutex: &Mutex<i32>) {
    assert!(mutex.is_poisoned());
    assert_eq!(mutex.lock().err(), Some(LockError::Poisoned));
    assert_eq!(mutex.try_lock().err(), Some(LockError::Poisoned));
    assert_eq!(mutex.try_with_as_owner(|number| Some(*number)), None);
}

#[test]
fn the_owner_fast_path_fails_while_the_owner_holds_the_lock() {
    let mutex = Mutex::new(0);
    let guard = mutex.lock().unwrap();
    assert_eq!(mutex.try_with_as_owner(|number| Some(*number)), None);
    drop(guard);
    let nested = mutex.try_with_as_owner(|_| Some(mutex.try_with_as_owner(|number| Some(*number))));
    assert_eq!(nested, Some(None));
}

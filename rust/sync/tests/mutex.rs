//! The biased mutex on real threads.
#![cfg(not(loom))]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use allotment_sync::{Broken, Mutex};

#[test]
fn no_step_is_lost_among_threads_that_come_and_go() {
    let mutex = Mutex::new([0_u64; 2]);
    for threads in [1_u64, 2, 4, 8, 32] {
        thread::scope(|scope| {
            for number in 0..threads {
                let mutex = &mutex;
                scope.spawn(move || {
                    for step in 0..20_000 {
                        // Some of the time one has it to itself, often enough to become the owner.
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
        // Each a new thread: more of them than can ever own the lock.
        thread::scope(|scope| {
            scope.spawn(|| (0..3_000).for_each(|_| *mutex.lock().unwrap() += 1));
        });
        *mutex.lock().unwrap() += 1;
    }
    assert_eq!(*mutex.lock().unwrap(), rounds * 3_001);
}

#[test]
fn a_try_fails_while_anybody_is_inside() {
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
fn whoever_waits_gets_in_when_the_owner_leaves() {
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
        // Long enough for the other to have gone from spinning to sleeping.
        thread::sleep(std::time::Duration::from_millis(20));
        *guard = 7;
        drop(guard);
        assert_eq!(other.join().unwrap(), 7);
    });
}

#[test]
fn a_panic_inside_breaks_it_and_one_outside_does_not() {
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
    is_shut(&mutex);
}

#[test]
fn a_panic_of_its_owner_breaks_it_for_the_owner_too() {
    let mutex = Mutex::new(0);
    *mutex.lock().unwrap() += 1;
    assert_eq!(mutex.work_as_owner(|number| Some(*number)), Some(1), "who comes first owns it at once");
    let inside =
        catch_unwind(AssertUnwindSafe(|| mutex.work_as_owner(|_| -> Option<()> { panic!("inside") })));
    assert!(inside.is_err());
    is_shut(&mutex);
}

fn is_shut(mutex: &Mutex<i32>) {
    assert!(mutex.is_broken());
    assert_eq!(mutex.lock().err(), Some(Broken));
    assert_eq!(mutex.try_lock().err(), Some(Broken));
    assert_eq!(mutex.work_as_owner(|number| Some(*number)), None);
}

#[test]
fn the_owners_door_is_shut_while_the_owner_is_inside() {
    let mutex = Mutex::new(0);
    let guard = mutex.lock().unwrap();
    assert_eq!(mutex.work_as_owner(|number| Some(*number)), None);
    drop(guard);
    let nested = mutex.work_as_owner(|_| Some(mutex.work_as_owner(|number| Some(*number))));
    assert_eq!(nested, Some(None));
}

//! Threads whose `membarrier` fails, as a filter of system calls forbids it. What one of them notices holds for the
//! process, so this is one test in a program of its own.
#![cfg(all(target_os = "linux", not(loom)))]

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use allotment_sync::{LockError, Mutex};
use membarrier::forbid_membarrier;

mod membarrier;

#[test]
fn an_idle_owner_keeps_its_lock_and_a_lock_made_afterwards_has_none() {
    let [mutex, idle, mut moved] = [0; 3].map(Mutex::new);
    for mutex in [&mutex, &idle, &moved] {
        *mutex.lock().unwrap() += 1;
    }
    let stop = AtomicBool::new(false);
    // An owner at work gives the lock away.
    thread::scope(|scope| {
        let until_locked = scope.spawn(|| {
            forbid_membarrier();
            let locked = (0..1_000_000).find_map(|_| mutex.lock().ok().map(|guard| *guard));
            stop.store(true, Ordering::Relaxed);
            locked
        });
        while !stop.load(Ordering::Relaxed) {
            drop(mutex.lock().unwrap());
        }
        assert_eq!(until_locked.join().unwrap(), Some(1));
    });
    let tried = |mutex: &Mutex<i32>, forbidden: bool| {
        if forbidden {
            forbid_membarrier();
        }
        (mutex.lock().map(|guard| *guard), mutex.try_lock().map(|guard| guard.is_some()))
    };
    thread::scope(|scope| {
        let forbidden = scope.spawn(|| tried(&idle, true)).join().unwrap();
        assert_eq!(forbidden, (Err(LockError::BarrierForbidden), Ok(false)));
        *idle.lock().unwrap() += 1;
        let allowed = scope.spawn(|| tried(&idle, false)).join().unwrap();
        assert_eq!(allowed, (Ok(2), Ok(true)));
        let moved = scope.spawn(move || {
            forbid_membarrier();
            moved.forget_owner();
            tried(&moved, false)
        });
        assert_eq!(
            moved.join().unwrap(),
            (Ok(1), Ok(true)),
            "a thread that has the mutex alone needs no barrier"
        );
    });
    let new = Mutex::new(0);
    thread::scope(|scope| {
        (0..2_000).for_each(|_| *new.lock().unwrap() += 1);
        assert_eq!(new.try_with_as_owner(|number| Some(*number)), None);
        assert_eq!(scope.spawn(|| tried(&new, true)).join().unwrap(), (Ok(2_000), Ok(true)));
    });
}

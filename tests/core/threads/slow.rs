//! A source that takes its time: whoever does not need it does not notice.

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use allotment::{AllocError, Options, Pool, Verdict};

use super::{FOREVER, Gate, KIB, MIB, ends, gated, observe};

/// A pool with one region of 2 MiB.
fn pool_with_a_region() -> (Arc<Pool>, Gate) {
    let (source, gate) = gated();
    let pool = Arc::new(Pool::new(source, Options::new(64 * MIB)).expect("options in range"));
    gate.grant();
    let allocation = pool.allocate(1).expect("granted");
    gate.wait();
    pool.free_allocation(&allocation).expect("live");
    (pool, gate)
}

#[test]
fn what_fits_is_allocated_and_freed_while_the_source_is_asked() {
    let (pool, gate) = pool_with_a_region();
    let (result, results) = channel();
    let slow = thread::spawn({
        let pool = Arc::clone(&pool);
        move || result.send(pool.allocate(8 * MIB)).expect("somebody listens")
    });
    gate.wait();
    let others = {
        let pool = Arc::clone(&pool);
        move || {
            for _ in 0..1000 {
                let allocations = [1, 300, 64 * KIB, 256 * KIB].map(|bytes| pool.allocate(bytes).expect("fits"));
                allocations.iter().for_each(|allocation| pool.free(allocation.address).expect("live"));
                observe(&pool);
            }
            pool.snapshot().expect("this process");
            pool.reset_peaks().expect("this process");
            pool.check().expect("every invariant holds");
            assert!(pool.can_allocate(32 * MIB).expect("an open pool"));
        }
    };
    ends(others);
    assert!(results.try_recv().is_err(), "the source has not answered yet");
    gate.grant();
    assert!(results.recv_timeout(FOREVER).expect("served").is_ok());
    slow.join().expect("served");
}

#[test]
fn who_needs_the_source_waits_for_the_turn_and_then_finds_what_the_other_left() {
    let (pool, gate) = pool_with_a_region();
    let request = |bytes| {
        let pool = Arc::clone(&pool);
        thread::spawn(move || pool.allocate(bytes))
    };
    // The step is 4 MiB by now and holds both.
    let first = request(2 * MIB + 1);
    gate.wait();
    let second = request(2 * MIB - 256);
    let third = request(MIB);
    third.join().expect("no panic").expect("fits what is there");
    thread::sleep(Duration::from_millis(20));
    assert!(gate.is_asked.try_recv().is_err(), "one thread asks at a time");
    gate.grant();
    first.join().expect("no panic").expect("granted");
    gate.answer.send(true).expect("the source is there");
    second.join().expect("no panic").expect("granted");
    let stats = observe(&pool);
    assert_eq!((stats.num_live, stats.num_refused), (3, 0));
    assert!(stats.num_grants <= 3);
}

#[test]
fn a_free_during_the_refusal_serves_the_request() {
    let (pool, gate) = pool_with_a_region();
    let all = pool.allocate(2 * MIB).expect("the whole region");
    let slow = thread::spawn({
        let pool = Arc::clone(&pool);
        move || pool.allocate(2 * MIB)
    });
    gate.wait();
    pool.free(all.address).expect("live");
    drop_after_declining(&gate, slow.thread(), || slow.is_finished());
    let served = slow.join().expect("no panic").expect("served from what was freed");
    assert_eq!(served.address, all.address);
    assert_eq!(observe(&pool).num_refused, 0);
}

/// Declines whatever is asked until the thread is done.
fn drop_after_declining(gate: &Gate, _thread: &thread::Thread, is_done: impl Fn() -> bool) {
    while !is_done() {
        let _ = gate.answer.send(false);
        let _ = gate.is_asked.recv_timeout(Duration::from_millis(1));
    }
}

#[test]
fn a_request_that_is_refused_in_the_end_was_refused_by_the_source() {
    let (pool, gate) = pool_with_a_region();
    let slow = thread::spawn({
        let pool = Arc::clone(&pool);
        move || pool.allocate(60 * MIB)
    });
    drop_after_declining(&gate, slow.thread(), || slow.is_finished());
    let Err(AllocError::OutOfMemory(refused)) = slow.join().expect("no panic") else { panic!("not refused") };
    assert_eq!(refused.verdict, Verdict::Source);
}

#[test]
fn a_free_does_not_wait_for_a_trim() {
    let (pool, gate) = pool_with_a_region();
    gate.grant();
    let held = pool.allocate(4 * MIB).expect("granted");
    gate.wait();
    let trim = thread::spawn({
        let pool = Arc::clone(&pool);
        move || pool.trim()
    });
    gate.wait();
    ends({
        let pool = Arc::clone(&pool);
        move || {
            pool.free(held.address).expect("live");
            let again = pool.allocate(MIB).expect("fits");
            pool.free_allocation(&again).expect("live");
            assert_eq!(observe(&pool).reserved, 4 * MIB);
        }
    });
    gate.decline();
    assert_eq!(trim.join().expect("no panic"), Ok(2 * MIB));
}

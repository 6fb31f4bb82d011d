//! A slow source: threads that do not need it are not delayed.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use allotment::{AllocError, Allocation, Options, Pool, Verdict};

use super::{FOREVER, Gate, KIB, MIB, ends, gated, observe};

/// Creates a pool with one region of 2 MiB.
fn pool_with_a_region() -> (Arc<Pool>, Gate) {
    let (source, gate) = gated();
    let pool = Arc::new(Pool::new(source, Options::new(64 * MIB)).expect("options in range"));
    gate.grant();
    let allocation = pool.allocate(1).expect("granted");
    gate.wait();
    pool.free_allocation(&allocation).expect("live");
    (pool, gate)
}

type Asking = thread::JoinHandle<Result<Allocation, AllocError>>;

/// Starts a thread that requests memory.
fn asking_for(pool: &Arc<Pool>, bytes: u64) -> Asking {
    let pool = Arc::clone(pool);
    thread::spawn(move || pool.allocate(bytes))
}

/// Waits for the other thread, with a deadline.
fn join(thread: Asking) -> Result<Allocation, AllocError> {
    ends(move || thread.join().expect("no panic"))
}

/// Declines every request until the thread is done.
fn decline_all(gate: &Gate, thread: &Asking) {
    let start = Instant::now();
    while !thread.is_finished() {
        let _ = gate.answer.send(false);
        let _ = gate.is_asked.recv_timeout(Duration::from_millis(1));
        assert!(start.elapsed() < FOREVER, "it does not end");
    }
}

#[test]
fn what_fits_is_allocated_and_freed_while_the_source_is_asked() {
    let (pool, gate) = pool_with_a_region();
    let slow = asking_for(&pool, 8 * MIB);
    gate.wait();
    let others = {
        let pool = Arc::clone(&pool);
        move || {
            for _ in 0..1000 {
                let allocations =
                    [1, 300, 64 * KIB, 256 * KIB].map(|bytes| pool.allocate(bytes).expect("fits"));
                for allocation in allocations {
                    pool.free(allocation.address).expect("live");
                }
                observe(&pool);
            }
            pool.snapshot().expect("this process");
            pool.reset_peaks().expect("this process");
            pool.check().expect("every invariant holds");
            assert!(pool.can_allocate(32 * MIB).expect("an open pool"));
        }
    };
    ends(others);
    assert!(!slow.is_finished(), "the source has not answered yet");
    gate.grant();
    join(slow).expect("granted");
}

#[test]
fn a_thread_that_needs_the_source_waits_for_its_lock_and_uses_memory_freed_meanwhile() {
    let (pool, gate) = pool_with_a_region();
    pool.allocate(2 * MIB).expect("the whole region");
    // The step is 4 MiB by now and holds both.
    let first = asking_for(&pool, MIB);
    gate.wait();
    let second = asking_for(&pool, MIB);
    thread::sleep(Duration::from_millis(20));
    assert!(gate.is_asked.try_recv().is_err(), "one thread asks at a time");
    gate.grant();
    join(first).expect("granted");
    join(second).expect("fits what is left");
    assert!(gate.is_asked.try_recv().is_err(), "the second did not ask any more");
    assert_eq!(observe(&pool).num_grants, 2);
}

#[test]
fn a_free_during_the_refusal_serves_the_request() {
    let (pool, gate) = pool_with_a_region();
    let all = pool.allocate(2 * MIB).expect("the whole region");
    let slow = asking_for(&pool, 2 * MIB);
    gate.wait();
    pool.free(all.address).expect("live");
    decline_all(&gate, &slow);
    let served = join(slow).expect("served from what was freed");
    assert_eq!(served.address, all.address);
    assert_eq!(observe(&pool).num_refused, 0);
}

#[test]
fn a_request_that_is_refused_in_the_end_was_refused_by_the_source() {
    let (pool, gate) = pool_with_a_region();
    let slow = asking_for(&pool, 60 * MIB);
    decline_all(&gate, &slow);
    let Err(AllocError::OutOfMemory(refused)) = join(slow) else { panic!("not refused") };
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
    assert_eq!(ends(move || trim.join().expect("no panic")), Ok(2 * MIB));
}

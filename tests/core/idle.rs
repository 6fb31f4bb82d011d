//! Pools trimmed when idle share one thread, which keeps none of them alive and ends after the last one. The tests
//! count the threads of the process, so they have a test program of their own and run one after another.

use std::fs;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use allotment::source::{AddressSpace, Grant, RegionSource, ReserveError};
use allotment::{Options, Pool};

const MIB: u64 = 1 << 20;
const DAY: Duration = Duration::from_secs(86400);
const SOON: Duration = Duration::from_millis(5);

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    let alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    assert!(becomes_true(|| idle_threads() == 0), "the last test left a thread");
    alone
}

fn becomes_true(mut what: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + Duration::from_secs(20);
    while !what() {
        if Instant::now() > end {
            return false;
        }
        thread::sleep(Duration::from_millis(2));
    }
    true
}

/// Counts the threads of this process that trim idle pools.
fn idle_threads() -> usize {
    let tasks = fs::read_dir("/proc/self/task").expect("Linux");
    // A thread may end during the scan.
    let names = tasks.filter_map(|task| fs::read_to_string(task.ok()?.path().join("comm")).ok());
    names.filter(|name| name.trim() == "allotment-idle").count()
}

fn pool_over(source: impl RegionSource + 'static) -> Arc<Pool> {
    Arc::new(Pool::new(source, Options::new(64 * MIB)).expect("options in range"))
}

/// Creates a pool with a free region that is trimmed when idle.
fn watched(after: Duration) -> Arc<Pool> {
    let pool = pool_over(AddressSpace::new(0));
    pool.trim_when_idle(after, || {}).expect("a thread");
    use_once(&pool);
    pool
}

fn use_once(pool: &Pool) {
    let held = pool.allocate(MIB).expect("fits");
    pool.free_allocation(&held).expect("live");
}

fn reserved(pool: &Pool) -> u64 {
    pool.stats().expect("this process").reserved
}

#[test]
fn pools_share_a_thread_that_ends_with_the_last() {
    let _alone = alone();
    let pools: Vec<_> = (0..5000).map(|_| watched(DAY)).collect();
    assert!(becomes_true(|| idle_threads() == 1));
    let soon = watched(SOON);
    assert!(becomes_true(|| reserved(&soon) == 0), "due before all others, and made last");
    assert!(pools.iter().all(|pool| reserved(pool) > 0));
    drop(soon);
    assert!(becomes_true(|| idle_threads() == 1));
    drop(pools);
    assert!(becomes_true(|| idle_threads() == 0));
    let again = watched(SOON);
    assert!(becomes_true(|| reserved(&again) == 0));
}

#[test]
fn a_pool_that_is_dropped_leaves_nothing() {
    let _alone = alone();
    let stays = watched(DAY);
    let kept = Arc::new(());
    for _ in 0..1000 {
        let pool = pool_over(AddressSpace::new(0));
        let of_pool = Arc::clone(&kept);
        pool.trim_when_idle(DAY, move || drop(Arc::clone(&of_pool))).expect("a thread");
        assert_eq!(Arc::strong_count(&pool), 1, "nothing else keeps it alive");
    }
    assert_eq!(Arc::strong_count(&kept), 1);
    assert!(becomes_true(|| idle_threads() == 1));
    drop(stays);
}

#[test]
fn pools_that_are_dropped_while_they_are_looked_at_leave_nothing() {
    let _alone = alone();
    let stays = watched(DAY);
    let kept = Arc::new(());
    for round in 0..500 {
        let pool = pool_over(AddressSpace::new(0));
        let of_pool = Arc::clone(&kept);
        pool.trim_when_idle(Duration::ZERO, move || drop(Arc::clone(&of_pool))).expect("a thread");
        thread::sleep(Duration::from_micros(round * 10));
    }
    assert!(becomes_true(|| Arc::strong_count(&kept) == 1));
    drop(stays);
}

#[test]
fn the_last_call_counts() {
    let _alone = alone();
    let pool = watched(DAY);
    pool.trim_when_idle(SOON, || {}).expect("a thread");
    assert!(becomes_true(|| reserved(&pool) == 0));
    pool.trim_when_idle(Duration::MAX, || {}).expect("a thread");
    use_once(&pool);
    thread::sleep(10 * SOON);
    assert!(reserved(&pool) > 0, "due in ages");
    assert!(becomes_true(|| idle_threads() == 0), "nothing is ever due");
}

/// Reports each request, and answers when the test has dropped the other end.
struct Slow {
    asked: Sender<()>,
    answer: Receiver<()>,
}

impl RegionSource for Slow {
    fn reserve(&mut self, _: u64, _: u64) -> Result<Grant, ReserveError> {
        self.asked.send(()).expect("the test listens");
        assert!(self.answer.recv().is_err());
        Err(ReserveError::Declined)
    }

    fn release(&mut self, _: Grant) {}
}

#[test]
fn a_pool_whose_source_takes_its_time_holds_up_no_other() {
    let _alone = alone();
    let (asked, is_asked) = channel();
    let (answers, answer) = channel();
    let slow = pool_over(Slow { asked, answer });
    slow.trim_when_idle(SOON, || {}).expect("a thread");
    let asking = thread::spawn(move || slow.allocate(MIB).is_err());
    is_asked.recv().expect("asked");
    thread::sleep(10 * SOON);
    let other = watched(SOON);
    assert!(becomes_true(|| reserved(&other) == 0));
    drop(answers);
    assert!(asking.join().expect("no panic"));
}

struct Panicking;

impl RegionSource for Panicking {
    fn reserve(&mut self, bytes: u64, _: u64) -> Result<Grant, ReserveError> {
        Ok(Grant { address: 1 << 20, bytes })
    }

    fn release(&mut self, _: Grant) {
        panic!("a source that panics");
    }
}

#[test]
fn a_source_that_panics_ends_its_own_pool_s_trims_alone() {
    let _alone = alone();
    let panicking = pool_over(Panicking);
    let looks = Arc::new(());
    let of_pool = Arc::clone(&looks);
    panicking.trim_when_idle(SOON, move || drop(Arc::clone(&of_pool))).expect("a thread");
    use_once(&panicking);
    assert!(becomes_true(|| Arc::strong_count(&looks) == 1), "it is not looked at again");
    let other = watched(SOON);
    assert!(becomes_true(|| reserved(&other) == 0));
}

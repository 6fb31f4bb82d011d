//! Histories of several threads: an order of decisions under one lock must explain each.
//!
//! Threads make random calls on one pool, and record for each call the time before it, the time after it, and its
//! result. The pool records the order of its decisions (feature `decisions`). A history is right if
//!
//! - each decision is one of a call, and each result comes from a decision or from the state at one moment,
//! - the shadow, which makes the decisions one by one in this order, finds the same addresses, sizes, numbers, figures,
//!   refusals and calls of the source,
//! - no call was decided before a call that had ended before it began. In particular each thread's calls are in order.
//!
//! A request that grows the pool is more than one decision: others may decide while the source is at work.
//!
//! **Deferred frees.** A call that cannot take the lock leaves its operation in a queue (`free_deferred`,
//! `close_scope_deferred`). The promise is: it takes effect after its call has begun, and before any decision of a call
//! that begins after its call has returned. It takes effect without such a call as well: while no thread is in a call
//! of the pool, the queue is empty. The free of a held or freed allocation has no effect.
//!
//! **Calls that do not wait** (`try_…`) may do nothing only while another thread is in a call, or within a microsecond
//! of its end: a processor may take that long to show the release of a lock.
//!
//! **Thread caches.** Half of the pools have them. A cache decides under its own lock; `merge.rs` finds one order of the
//! decisions of the pool and of all caches. Then each chunk that is lent, taken back, served from a cache or freed into
//! one is the one that a model of the caches expects (`lending.rs`), and a call without a decision of its own must fit
//! the state at one of the moments at which it held the lock.
//!
//! `ALLOTMENT_HISTORY_EVENTS` sets the number of calls, `ALLOTMENT_SEED` the seed. The seed repeats the programs, not
//! the order in which the threads run.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, RwLock};
use std::thread;
use std::time::{Duration, Instant};

#[path = "histories/changes.rs"]
mod changes;
#[path = "histories/decide.rs"]
mod decide;
#[path = "histories/event.rs"]
mod event;
#[cfg(unix)]
#[path = "histories/forks.rs"]
mod forks;
#[path = "histories/judge.rs"]
mod judge;
#[path = "histories/lending.rs"]
mod lending;
#[path = "histories/merge.rs"]
mod merge;
#[path = "../support/numbers.rs"]
mod numbers;
#[path = "histories/order.rs"]
mod order;
#[path = "histories/owners.rs"]
mod owners;
#[path = "histories/round.rs"]
mod round;
#[path = "../support/seeds.rs"]
mod seeds;
#[path = "histories/setup.rs"]
mod setup;
#[path = "../support/shadow.rs"]
#[allow(dead_code, reason = "other tests check whole calls")]
mod shadow;
#[path = "histories/shared.rs"]
mod shared;
#[path = "histories/silent.rs"]
mod silent;
#[path = "../support/sources.rs"]
#[allow(dead_code, reason = "the model test goes through every kind of source")]
mod sources;
#[path = "histories/tally.rs"]
mod tally;
#[path = "histories/worker.rs"]
mod worker;

use numbers::Numbers;
use seeds::{from_environment, say, seed_of_now};
use setup::Setup;
use tally::Tally;

/// The default number of calls.
const EVENTS: u64 = 2_000_000;
/// The calls of one history: long enough that threads meet often, short enough for the cache.
const CALLS: u64 = 30_000;
/// Histories at the same time.
const AT_ONCE: u64 = 2;
/// Longer than any history takes on a core of its own.
const FOREVER: Duration = Duration::from_secs(120);
/// How often that may pass while a thread waits for a core: on a busy machine a process that runs with low priority gets
/// a small part of one.
const BUSY: u32 = 20;

#[test]
fn an_order_under_one_lock_explains_every_history() {
    let enough = from_environment("ALLOTMENT_HISTORY_EVENTS").unwrap_or(EVENTS);
    let seed = from_environment("ALLOTMENT_SEED").unwrap_or_else(seed_of_now);
    say(&format!("histories of ALLOTMENT_SEED={seed}"));
    let start = Instant::now();
    let run = Arc::new(Run {
        seed,
        enough,
        next: AtomicU64::new(0),
        total: Mutex::default(),
        cores: RwLock::default(),
    });
    let (done, is_done) = channel();
    for _ in 0..AT_ONCE {
        let (run, done) = (Arc::clone(&run), done.clone());
        thread::spawn(move || {
            while run.one() {
                let _ = done.send(());
            }
        });
    }
    drop(done);
    let mut left = BUSY;
    loop {
        match is_done.recv_timeout(FOREVER) {
            Ok(()) => left = BUSY,
            Err(RecvTimeoutError::Timeout) if left > 0 && another_thread_is_runnable() => left -= 1,
            Err(RecvTimeoutError::Timeout) => panic!("a history has stopped: a deadlock"),
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    let total = *run.total.lock().expect("see above");
    assert!(total.events as u64 >= enough, "see above");
    say(&format!("an order for each of {total}; {:.1} s", start.elapsed().as_secs_f64()));
}

/// Returns whether a thread of this process besides the calling one could run now, as far as the system tells.
fn another_thread_is_runnable() -> bool {
    let Ok(threads) = std::fs::read_dir("/proc/self/task") else { return false };
    let states =
        threads.flatten().filter_map(|thread| std::fs::read_to_string(thread.path().join("stat")).ok());
    // The state follows the name, which is in parentheses. The calling thread is one of those that run.
    states.filter(|stat| stat.rsplit(") ").next().is_some_and(|state| state.starts_with('R'))).count() > 1
}

/// The histories of one run.
struct Run {
    seed: u64,
    enough: u64,
    /// The number of the next history.
    next: AtomicU64,
    total: Mutex<Tally>,
    /// Threads meet only if each has a core: one history runs at a time, and none is checked meanwhile.
    cores: RwLock<()>,
}

impl Run {
    /// Plays the next history; returns whether there is another one.
    ///
    /// # Panics
    /// If no order explains it. The other threads end then as well.
    fn one(&self) -> bool {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let setup = Setup::new(Numbers::one_of(self.seed, number).next(), CALLS);
        let played = catch_unwind(AssertUnwindSafe(|| {
            let alone = self.cores.write().expect("no history fails");
            let played = round::play(&setup, |_| ());
            drop(alone);
            let _others_check = self.cores.read().expect("no history fails");
            played.check()
        }));
        let Ok(mut total) = self.total.lock() else { return false };
        let Ok(tally) = played else {
            panic!("history {number} of ALLOTMENT_SEED={} has no order: see above", self.seed)
        };
        *total += tally;
        (total.events as u64) < self.enough
    }
}

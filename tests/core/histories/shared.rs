//! What all threads of a history share: the pool, the clock, and what they give each other.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use allotment::{Allocation, Decided, Pool, Scope};

use crate::event::Key;
use crate::setup::Setup;

/// The clock of a history.
pub(crate) enum Clock {
    /// A counter that all threads share: every time differs, and a call is ordered after all that it reads.
    Counter(AtomicU64),
    /// Nanoseconds: reading it orders nothing between threads. Equal times are in no order.
    Time(Instant),
}

impl Clock {
    pub(crate) fn now(&self) -> u64 {
        match self {
            Self::Counter(counter) => counter.fetch_add(1, Ordering::SeqCst),
            Self::Time(start) => u64::try_from(start.elapsed().as_nanos()).expect("less than centuries"),
        }
    }
}

/// An allocation of a thread.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mine {
    pub(crate) allocation: Allocation,
    pub(crate) held: bool,
    /// Whether another thread may free it as well: only its number is safe to use then.
    pub(crate) shared: bool,
}

/// What all threads of a history share.
pub(crate) struct Shared<'a> {
    pub(crate) pool: &'a Pool,
    pub(crate) clock: Clock,
    pub(crate) setup: &'a Setup,
    /// Allocations that any thread may free.
    pub(crate) handed_over: Mutex<Vec<Mine>>,
    /// Scopes that any thread may close.
    pub(crate) scopes: Mutex<Vec<(Key, Scope)>>,
    pub(crate) next_scope: AtomicU64,
    pub(crate) rests: Mutex<Rests>,
}

/// The decisions so far, and the moments at which no thread was in a call.
#[derive(Default)]
pub(crate) struct Rests {
    pub(crate) decisions: Vec<Decided>,
    pub(crate) moments: Vec<Rest>,
}

/// A moment at which no thread was in a call: its time, and the number of decisions before it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rest {
    pub(crate) time: u64,
    pub(crate) decisions: usize,
}

impl Shared<'_> {
    /// Notes that no thread is in a call. This is not a call, so what is left in the queue of the pool stays there.
    pub(crate) fn rest(&self) {
        let mut rests = self.rests.lock().expect("no thread fails");
        // Where each cache decides, too, the order of all is found at the end.
        let decided = if self.setup.has_caches() { Vec::new() } else { self.pool.take_decisions() };
        rests.decisions.extend(decided);
        let rest = Rest { time: self.clock.now(), decisions: rests.decisions.len() };
        rests.moments.push(rest);
    }
}

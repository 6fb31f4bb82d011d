//! One history: its threads run, then the judge looks for an order.

use std::collections::VecDeque;
use std::sync::atomic::AtomicU64;
use std::sync::{Barrier, Mutex};
use std::thread;
use std::time::Instant;

use allotment::Pool;
use allotment::source::{Log, Recording, RegionSource};

use crate::judge::judge;
use crate::numbers::Numbers;
use crate::order::Order;
use crate::setup::{Setup, Threads};
use crate::shared::{Clock, Rests, Shared};
use crate::tally::Tally;
use crate::worker::{Record, Worker};

/// The most calls of a thread that serves one request.
const CALLS_OF_A_REQUEST: u64 = 200;

/// A history that has run, to be checked.
pub(crate) struct Played<'a> {
    setup: &'a Setup,
    pool: Pool,
    /// Whether the source joins regions.
    joins: bool,
    log: Log,
    rests: Rests,
    records: Vec<Record>,
}

/// Runs the threads of a history, and something else meanwhile.
pub(crate) fn play(setup: &Setup, meanwhile: impl FnOnce(&Pool) + Send) -> Played<'_> {
    let log = Log::default();
    let source = setup.source();
    let joins = source.joins_regions();
    let pool =
        Pool::new(Recording::new(source, log.clone()), setup.options.clone()).expect("options in range");
    let clock = if setup.counts { Clock::Counter(AtomicU64::new(1)) } else { Clock::Time(Instant::now()) };
    let shared = Shared {
        pool: &pool,
        clock,
        setup,
        handed_over: Mutex::default(),
        scopes: Mutex::default(),
        next_scope: AtomicU64::new(0),
        rests: Mutex::default(),
    };
    let mut records = thread::scope(|scope| {
        scope.spawn(|| meanwhile(&pool));
        match setup.threads {
            Threads::Together(count) => together(&shared, count),
            Threads::Late(count) => late(&shared, count),
            Threads::ForEachRequest { at_once } => for_each_request(&shared, at_once),
        }
    });
    shared.rest();
    let random = Numbers::one_of(setup.seed, u64::MAX);
    records.push(Worker::new(&shared, random).clean_up());
    shared.rest();
    let mut rests = shared.rests.into_inner().expect("no thread fails");
    if setup.has_caches() {
        rests.decisions = pool.take_decisions();
    }
    Played { setup, pool, joins, log, rests, records }
}

impl Played<'_> {
    /// Checks the history.
    ///
    /// # Panics
    /// If no order explains it.
    pub(crate) fn check(self) -> Tally {
        let Self { setup, pool, joins, log, rests, records } = self;
        // A counter that all threads add to makes each thread's earlier stores visible.
        let release_delay = if setup.counts { 0 } else { 1_000 };
        let caches = setup.has_caches().then(|| pool.cache_decisions());
        let order = Order::new(rests, records, caches, release_delay);
        let shadow = judge(&order, log.take(), setup, joins);
        assert_eq!(pool.stats().expect("this process"), shadow.stats(), "the counters at the end");
        assert_eq!(
            pool.snapshot().expect("this process").regions,
            shadow.regions(),
            "the regions at the end"
        );
        pool.check().expect("every invariant holds");
        assert!(!shadow.has_live(), "all is freed");
        assert!(!shadow.is_closed() || shadow.reserved() == 0, "a closed pool has regions");
        Tally::of(&order)
    }
}

fn together(shared: &Shared<'_>, count: u64) -> Vec<Record> {
    let start = Barrier::new(usize::try_from(count).expect("a few"));
    let start = &start;
    thread::scope(|scope| {
        let threads = (0..count).map(|number| {
            let random = Numbers::one_of(shared.setup.seed, number);
            scope.spawn(move || {
                start.wait();
                Worker::new(shared, random).work(shared.setup.calls / count, Some(start))
            })
        });
        join(threads.collect())
    })
}

/// The first thread makes the most calls, alone at first; each later one makes fewer.
fn late(shared: &Shared<'_>, count: u64) -> Vec<Record> {
    let parts = count * (count + 1) / 2;
    thread::scope(|scope| {
        let threads = (0..count).map(|number| {
            let random = Numbers::one_of(shared.setup.seed, number);
            let calls = shared.setup.calls / parts * (count - number);
            let thread = scope.spawn(move || Worker::new(shared, random).work(calls, None));
            thread::sleep(std::time::Duration::from_micros(shared.setup.calls / 100));
            thread
        });
        join(threads.collect())
    })
}

fn for_each_request(shared: &Shared<'_>, at_once: u64) -> Vec<Record> {
    let mut records = Vec::new();
    let mut left = shared.setup.calls;
    let mut random = Numbers::one_of(shared.setup.seed, 0);
    thread::scope(|scope| {
        let mut running = VecDeque::new();
        while left > 0 {
            if running.len() as u64 == at_once {
                records.extend(join(running.pop_front().into_iter().collect()));
            }
            let calls = (1 + random.below(CALLS_OF_A_REQUEST)).min(left);
            left -= calls;
            let own = Numbers::one_of(shared.setup.seed, left + 1);
            running.push_back(scope.spawn(move || Worker::new(shared, own).work(calls, None)));
        }
        records.extend(join(running.into()));
    });
    records
}

fn join(threads: Vec<thread::ScopedJoinHandle<'_, Record>>) -> Vec<Record> {
    let ended = threads.into_iter().map(thread::ScopedJoinHandle::join);
    ended.map(|record| record.unwrap_or_else(|cause| std::panic::resume_unwind(cause))).collect()
}

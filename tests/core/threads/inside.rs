//! A source that calls its own pool: requests that fit and frees are served, the others are errors and no deadlocks.

use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

use allotment::source::{AddressSpace, Grant, RegionSource, ReserveError};
use allotment::{AllocError, Allocation, Options, Pool, Unusable};

use super::{MIB, ends};

/// The source call that is in progress.
#[derive(Clone, Copy, PartialEq, Eq)]
enum In {
    Reserve,
    Release,
}

/// Runs a callback on its pool in every call, and grants if that returns true.
struct Inward<F> {
    upstream: AddressSpace,
    pool: Arc<OnceLock<Weak<Pool>>>,
    act: F,
}

impl<F: FnMut(&Pool, In) -> bool + Send> Inward<F> {
    fn act(&mut self, call: In) -> bool {
        // `None` while the pool is dropped.
        let pool = self.pool.get().and_then(Weak::upgrade);
        pool.is_none_or(|pool| (self.act)(&pool, call))
    }
}

impl<F: FnMut(&Pool, In) -> bool + Send> RegionSource for Inward<F> {
    fn reserve(&mut self, bytes: u64, alignment: u64) -> Result<Grant, ReserveError> {
        if self.act(In::Reserve) {
            self.upstream.reserve(bytes, alignment)
        } else {
            Err(ReserveError::Declined)
        }
    }

    fn release(&mut self, region: Grant) {
        self.act(In::Release);
        self.upstream.release(region);
    }
}

/// Creates a pool with a region of 2 MiB, half of it in use; from then on its source runs the callback.
fn inward(options: Options, act: impl FnMut(&Pool, In) -> bool + Send + 'static) -> (Arc<Pool>, Allocation) {
    let known = Arc::new(OnceLock::new());
    let source = Inward { upstream: AddressSpace::new(256), pool: Arc::clone(&known), act };
    let pool = Arc::new(Pool::new(source, options).expect("options in range"));
    let held = pool.allocate(MIB).expect("granted");
    known.set(Arc::downgrade(&pool)).expect("set once");
    (pool, held)
}

/// As [`inward`], with a channel for the first result of `act`.
fn reporting<T: Send + 'static>(
    options: Options,
    act: impl Fn(&Pool) -> T + Send + 'static,
) -> (Arc<Pool>, Allocation, Receiver<T>) {
    let (report, reports) = channel();
    let (pool, held) = inward(options, move |pool, _| {
        let _ = report.send(act(pool));
        true
    });
    (pool, held, reports)
}

#[test]
fn a_request_that_fits_is_served_from_within_reserve() {
    let (pool, _, reports) = reporting(Options::new(64 * MIB), |pool| pool.allocate(MIB / 2).is_ok());
    ends(move || pool.allocate(8 * MIB)).expect("granted");
    assert!(reports.recv().expect("it was asked"));
}

#[test]
fn a_request_that_needs_the_source_is_an_error_from_within_reserve() {
    // Also a request that would wait for memory: nothing can serve it before its caller returns.
    let options = Options::new(64 * MIB).wait(Duration::from_secs(3600));
    let (pool, _, reports) = reporting(options, |pool| pool.allocate(4 * MIB).err());
    ends(move || pool.allocate(8 * MIB)).expect("granted");
    let error = reports.recv().expect("it was asked");
    assert!(matches!(error, Some(AllocError::Unusable(Unusable::InsideSource))), "{error:?}");
}

#[test]
fn trim_and_close_are_errors_from_within_a_source() {
    let act = |pool: &Pool| (pool.trim(), pool.close());
    let (pool, _, reports) = reporting(Options::new(64 * MIB), act);
    ends({
        let pool = Arc::clone(&pool);
        move || pool.allocate(8 * MIB)
    })
    .expect("granted: the pool was not closed");
    let inside = || Err(Unusable::InsideSource);
    assert_eq!(reports.recv().expect("it was asked"), (inside().map(|()| 0).map_err(Into::into), inside()));
}

#[test]
fn queries_work_from_within_a_source() {
    let act = |pool: &Pool| {
        pool.stats()?;
        pool.snapshot()?;
        pool.reset_peaks()?;
        pool.check().expect("every invariant holds");
        pool.can_allocate(4 * MIB)
    };
    let (pool, held, reports) = reporting(Options::new(64 * MIB), act);
    ends({
        let pool = Arc::clone(&pool);
        move || {
            pool.allocate(8 * MIB).expect("granted");
            pool.free_allocation(&held).expect("live");
            pool.trim().expect("not inside a source");
        }
    });
    assert_eq!(reports.recv(), Ok(Ok(true)), "in reserve");
    assert_eq!(reports.recv(), Ok(Ok(true)), "in release");
}

#[test]
fn memory_that_a_source_frees_while_it_declines_serves_the_request() {
    let (give, given) = channel::<Allocation>();
    let (pool, held) = inward(Options::new(64 * MIB), move |pool, call| {
        if let (In::Reserve, Ok(allocation)) = (call, given.try_recv()) {
            pool.free_allocation(&allocation).expect("live");
        }
        false
    });
    give.send(held).expect("the source is there");
    let served = ends(move || pool.allocate(2 * MIB)).expect("served from what the source freed");
    assert_eq!(served.address, held.address);
}

#[test]
fn frees_and_fits_are_served_from_within_release() {
    let (report, reports) = channel();
    let (pool, held) = inward(Options::new(64 * MIB), move |pool, call| {
        if call == In::Release {
            let fits = pool.allocate(MIB / 2).expect("fits");
            let needs = pool.allocate(16 * MIB).expect_err("needs the source");
            assert!(matches!(needs, AllocError::Unusable(Unusable::InsideSource)), "{needs}");
            report.send(pool.free_allocation(&fits)).expect("the receiver is alive");
        }
        true
    });
    ends(move || {
        let other = pool.allocate(4 * MIB).expect("granted");
        pool.free_allocation(&other).expect("live");
        assert_eq!(pool.trim(), Ok(4 * MIB));
        pool.free_allocation(&held).expect("live");
    });
    assert_eq!(reports.recv(), Ok(Ok(())));
}

#[test]
fn a_request_of_another_thread_waits_for_the_source_lock() {
    let act = |pool: &Pool| {
        let start = Instant::now();
        std::thread::sleep(Duration::from_millis(50));
        pool.stats().expect("this process");
        start.elapsed()
    };
    let (pool, _, reports) = reporting(Options::new(64 * MIB), act);
    ends(move || {
        std::thread::scope(|scope| {
            let both = [8, 16].map(|mib| {
                scope.spawn({
                    let p = &pool;
                    move || p.allocate(mib * MIB)
                })
            });
            for thread in both {
                thread.join().expect("no panic").expect("granted");
            }
        });
    });
    assert_eq!(reports.iter().count(), 2);
}

//! Sources that panic: the panic reaches the caller, and the pool stays usable.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use allotment::source::{AddressSpace, Call, Cap, Capped, Log, Recording, RegionSource, ReserveError};
use allotment::{Grant, Options, Pool};

use super::MIB;

/// Panics once for each switch that is set.
struct Panicking {
    upstream: AddressSpace,
    in_reserve: Arc<AtomicBool>,
    in_release: Arc<AtomicBool>,
}

impl RegionSource for Panicking {
    fn reserve(&mut self, bytes: u64, alignment: u64) -> Result<Grant, ReserveError> {
        assert!(!self.in_reserve.swap(false, Ordering::Relaxed), "on purpose");
        self.upstream.reserve(bytes, alignment)
    }

    fn release(&mut self, region: Grant) {
        assert!(!self.in_release.swap(false, Ordering::Relaxed), "on purpose");
        self.upstream.release(region);
    }
}

struct Switches {
    in_reserve: Arc<AtomicBool>,
    in_release: Arc<AtomicBool>,
}

fn panicking() -> (Panicking, Switches) {
    let (in_reserve, in_release) = (Arc::default(), Arc::default());
    let switches = Switches { in_reserve: Arc::clone(&in_reserve), in_release: Arc::clone(&in_release) };
    (Panicking { upstream: AddressSpace::new(256), in_reserve, in_release }, switches)
}

fn panics<T>(call: impl FnOnce() -> T) -> bool {
    catch_unwind(AssertUnwindSafe(call)).is_err()
}

#[test]
fn a_panic_while_reserving_leaves_the_pool_as_it_was_and_usable() {
    let (source, switches) = panicking();
    let pool = Pool::new(source, Options::new(64 * MIB)).unwrap();
    let first = pool.allocate(MIB).unwrap();
    let before = pool.snapshot().unwrap();
    switches.in_reserve.store(true, Ordering::Relaxed);
    assert!(panics(|| pool.allocate(8 * MIB)));

    assert_eq!(pool.snapshot().unwrap(), before);
    pool.check().unwrap();
    let second = pool.allocate(8 * MIB).unwrap();
    pool.free(first.address).unwrap();
    pool.free(second.address).unwrap();
    assert_eq!(pool.trim().unwrap(), before.stats.reserved + 8 * MIB);
    assert_eq!(pool.stats().unwrap().reserved, 0);
}

#[test]
fn a_panic_while_reserving_releases_the_source_lock() {
    let (source, switches) = panicking();
    let pool = Pool::new(source, Options::new(64 * MIB)).unwrap();
    switches.in_reserve.store(true, Ordering::Relaxed);
    std::thread::scope(|scope| {
        let tries: Vec<_> = (0..4).map(|_| scope.spawn(|| panics(|| pool.allocate(8 * MIB)))).collect();
        let panicked: Vec<_> = tries.into_iter().map(|thread| thread.join().unwrap()).collect();
        assert_eq!(panicked.into_iter().filter(|&panicked| panicked).count(), 1);
    });
    assert_eq!(pool.stats().unwrap().num_live, 3);
}

#[test]
fn a_panic_while_handing_back_leaves_the_pool_usable() {
    let (source, switches) = panicking();
    let pool = Pool::new(source, Options::new(64 * MIB)).unwrap();
    let first = pool.allocate(MIB).unwrap();
    pool.free(first.address).unwrap();
    switches.in_release.store(true, Ordering::Relaxed);
    assert!(panics(|| pool.trim()));
    pool.check().unwrap();
    assert_eq!(pool.stats().unwrap().reserved, 0);
    assert_eq!(pool.trim().unwrap(), 0);
    pool.allocate(64 * MIB).unwrap();
}

#[test]
fn a_panic_while_handing_back_one_region_keeps_no_other_from_going_back() {
    let (source, switches) = panicking();
    let log = Log::default();
    let pool = Pool::new(Recording::new(source, log.clone()), Options::new(64 * MIB)).unwrap();
    let live = [2, 4, 8].map(|mib| pool.allocate(mib * MIB).unwrap());
    for allocation in live {
        pool.free(allocation.address).unwrap();
    }
    let _ = log.take();
    switches.in_release.store(true, Ordering::Relaxed);
    assert!(panics(|| pool.trim()));
    pool.trim().unwrap();
    let back: Vec<_> = log.take().into_iter().filter(|call| matches!(call, Call::Release(_))).collect();
    assert_eq!(back.len(), 2, "all but the one whose release panicked: {back:?}");
}

#[test]
fn a_panic_of_the_upstream_source_returns_the_bytes_of_the_cap() {
    let (source, switches) = panicking();
    let cap = Cap::new(32 * MIB);
    let pool = Pool::new(Capped::new(source, Arc::clone(&cap)), Options::new(64 * MIB)).unwrap();
    switches.in_reserve.store(true, Ordering::Relaxed);
    assert!(panics(|| pool.allocate(MIB)));
    assert_eq!(cap.used(), 0);
}

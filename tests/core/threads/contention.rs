//! Contention: all threads allocate and free at once.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Barrier, Mutex};
use std::thread;
use std::time::Duration;

use allotment::source::{AddressSpace, Cap, Capped};
use allotment::{AllocError, Allocation, Options, Pool, RegionSource};
use allotment_host::HostMemory;

use super::numbers::Numbers;
use super::{KIB, MIB, ends, observe};

const THREADS: u64 = 8;
const STEPS: usize = 30_000;

/// The live ranges: start to end and the thread's tag.
#[derive(Default)]
pub(super) struct Ranges(Mutex<BTreeMap<u64, (u64, u64)>>);

impl Ranges {
    pub(super) fn take(&self, allocation: &Allocation, tag: u64) {
        let (start, end) = (allocation.address, allocation.address + allocation.size);
        let mut ranges = self.0.lock().expect("no thread failed");
        let before = ranges.range(..end).next_back();
        assert!(before.is_none_or(|(_, &(last, _))| last <= start), "{allocation:?} overlaps {before:?}");
        ranges.insert(start, (end, tag));
    }

    pub(super) fn give_back(&self, allocation: &Allocation, tag: u64) {
        let range = self.0.lock().expect("no thread failed").remove(&allocation.address);
        assert_eq!(range, Some((allocation.address + allocation.size, tag)));
    }
}

/// Allocates and frees at random; ends with nothing live.
fn work(pool: &Pool, ranges: &Ranges, tag: u64) {
    let mut random = Numbers::new(tag);
    let mut live: Vec<Allocation> = Vec::new();
    for step in 0..STEPS {
        if live.is_empty() || (random.chance(55) && live.len() < 200) {
            let bytes = 1 + random.below(1 << random.clone().below(23));
            match pool.allocate(bytes) {
                Ok(allocation) => {
                    assert!(allocation.size >= bytes);
                    ranges.take(&allocation, tag);
                    live.push(allocation);
                }
                Err(AllocError::OutOfMemory(_)) => live.drain(..live.len() / 2).for_each(|allocation| {
                    ranges.give_back(&allocation, tag);
                    pool.free_allocation(&allocation).expect("live");
                }),
                Err(other) => panic!("thread {tag}, step {step}: {other}"),
            }
        } else {
            let allocation = live.swap_remove(random.place(live.len()));
            ranges.give_back(&allocation, tag);
            match step % 3 {
                0 => pool.free(allocation.address).expect("live"),
                1 => pool.free_allocation(&allocation).expect("live"),
                _ => pool.free_deferred(&allocation),
            }
        }
    }
    for allocation in live {
        ranges.give_back(&allocation, tag);
        pool.free_allocation(&allocation).expect("live");
    }
}

/// Queries, trims and resets while the others work, and at least once.
fn disturb(pool: &Pool, over: &AtomicBool) {
    while {
        observe(pool);
        pool.trim().expect("not inside a source");
        observe(pool);
        pool.reset_peaks().expect("this process");
        pool.check().expect("every invariant holds");
        let snapshot = pool.snapshot().expect("this process");
        let chunks = snapshot.regions.iter().flat_map(|region| &region.chunks);
        let in_use: u64 = chunks.filter(|chunk| chunk.in_use).map(|chunk| chunk.size).sum();
        assert_eq!(in_use, snapshot.stats.in_use);
        thread::yield_now();
        !over.load(Ordering::Relaxed)
    } {}
}

fn all_threads_at_once(source: impl RegionSource + 'static, options: Options) {
    let pool = Pool::new(source, options).expect("options in range");
    ends(move || {
        let (ranges, over, start) = (Ranges::default(), AtomicBool::new(false), Barrier::new(9));
        let (pool, ranges, over, start) = (&pool, &ranges, &over, &start);
        thread::scope(|scope| {
            scope.spawn(move || {
                start.wait();
                disturb(pool, over);
            });
            let worker = |tag| {
                scope.spawn(move || {
                    start.wait();
                    work(pool, ranges, tag);
                })
            };
            let workers: Vec<_> = (1..=THREADS).map(worker).collect();
            let ended: Vec<_> = workers.into_iter().map(thread::ScopedJoinHandle::join).collect();
            over.store(true, Ordering::Relaxed);
            assert!(ended.into_iter().all(|result| result.is_ok()), "a thread failed");
        });
        let stats = observe(pool);
        assert_eq!((stats.num_live, stats.in_use, stats.requested), (0, 0, 0));
        pool.check().expect("every invariant holds");
        pool.trim().expect("no other thread holds the source lock");
        assert_eq!(observe(pool).reserved, 0);
    });
}

#[test]
fn nothing_is_handed_out_twice_in_one_region() {
    all_threads_at_once(AddressSpace::new(0), Options::new(64 * MIB).growth(false));
}

#[test]
fn nothing_is_handed_out_twice_in_a_growing_pool() {
    all_threads_at_once(AddressSpace::new(256), Options::new(100_000_000));
}

#[test]
fn nothing_is_handed_out_twice_when_regions_are_joined() {
    all_threads_at_once(AddressSpace::new(0), Options::new(48 * MIB));
}

#[test]
fn nothing_is_handed_out_twice_under_a_cap() {
    let source = Capped::new(HostMemory::new(), Cap::new(40 * MIB));
    all_threads_at_once(source, Options::new(64 * MIB));
}

#[test]
fn nothing_is_handed_out_twice_when_refused_threads_wait() {
    let options = Options::new(24 * MIB + 77 * KIB).wait(Duration::from_millis(2));
    all_threads_at_once(AddressSpace::new(256), options);
}

#[test]
fn nothing_is_handed_out_twice_from_thread_caches() {
    let options = Options::new(64 * MIB).growth(false).thread_caches(true);
    all_threads_at_once(AddressSpace::new(0), options.clone());
    all_threads_at_once(AddressSpace::new(256), options.wait(Duration::from_millis(2)));
}

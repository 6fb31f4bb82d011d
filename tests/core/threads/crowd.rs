//! Thirty-two threads, and observer threads.
//!
//! `ALLOTMENT_STRESS_SECONDS` sets the duration of each test.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Barrier, Mutex};
use std::thread;
use std::time::Duration;

use allotment::source::{AddressSpace, Cap, Capped};
use allotment::{AllocError, Allocation, Options, Pool, RegionSource, Request, Stats};
use allotment_host::HostMemory;

use super::contention::Ranges;
use super::numbers::Numbers;
use super::{FOREVER, MIB, ends_within, observe};

const THREADS: u64 = 32;

fn duration() -> Duration {
    let seconds = std::env::var("ALLOTMENT_STRESS_SECONDS");
    Duration::from_secs(seconds.map_or(1, |text| text.parse().expect("a number of seconds")))
}

/// State shared by all threads.
struct Crowd {
    pool: Pool,
    ranges: Ranges,
    /// Allocations that any thread may free.
    handed_over: Mutex<Vec<Allocation>>,
    over: AtomicBool,
}

impl Crowd {
    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// Allocates with one of the calls; `None` if it does not wait or there is no memory.
    fn allocate(&self, random: &mut Numbers) -> Option<Allocation> {
        let bytes = 1 + random.below(1 << random.clone().below(22));
        let alignment = 1 << random.below(13);
        let served = match random.below(3) {
            0 => self.pool.allocate(bytes).map(Some),
            1 => self.pool.allocate_with_retry(Request::new(bytes).align(alignment), |_| false).map(Some),
            _ => self.pool.try_allocate(Request::new(bytes).align(alignment)),
        };
        let allocation = match served {
            Ok(allocation) => allocation?,
            Err(AllocError::OutOfMemory(refused)) => {
                assert!(refused.largest_free < refused.needed, "{refused:?}");
                return None;
            }
            Err(other) => panic!("{other}"),
        };
        assert!(allocation.size >= bytes && allocation.requested == bytes);
        self.ranges.take(&allocation, allocation.id);
        Some(allocation)
    }

    /// Frees with one of the calls.
    fn free(&self, allocation: &Allocation, random: &mut Numbers) {
        self.ranges.give_back(allocation, allocation.id);
        match random.below(5) {
            0 => self.pool.free(allocation.address).expect("live"),
            1 => self.pool.free_allocation(allocation).expect("live"),
            2 => while self.pool.try_free(allocation.address).expect("live").is_none() {},
            3 => while self.pool.try_free_allocation(allocation).expect("live").is_none() {},
            _ => self.pool.free_deferred(allocation),
        }
    }

    /// Allocates and frees at random, its own allocations and those of others.
    fn work(&self, seed: u64) {
        let mut random = Numbers::new(seed);
        let mut live = Vec::new();
        while !self.is_over() {
            match random.below(8) {
                0..4 => match self.allocate(&mut random) {
                    Some(allocation) => live.push(allocation),
                    None => live.drain(..live.len() / 2).for_each(|each| self.free(&each, &mut random)),
                },
                4..6 => {
                    live.pop().inspect(|allocation| self.free(allocation, &mut random));
                }
                6 => self.handed_over.lock().expect("no thread failed").extend(live.pop()),
                _ => {
                    let other = self.handed_over.lock().expect("no thread failed").pop();
                    other.inspect(|allocation| self.free(allocation, &mut random));
                }
            }
            if let Some(allocation) = live.last_mut().filter(|_| random.chance(10)) {
                let bytes = 1 + random.below(allocation.size);
                self.ranges.give_back(allocation, allocation.id);
                *allocation = self.pool.resize(allocation.address, bytes).expect("no more than it has");
                self.ranges.take(allocation, allocation.id);
            }
        }
        for allocation in &live {
            self.free(allocation, &mut random);
        }
    }

    /// Checks the counters continuously: totals never decrease, and no amount exceeds its bound.
    fn watch(&self) {
        let mut before = observe(&self.pool);
        while !self.is_over() {
            let now = observe(&self.pool);
            let counts = |stats: &Stats| {
                [stats.num_allocs, stats.num_grants, stats.num_refused, stats.largest_requested]
            };
            assert!(
                counts(&before).iter().zip(counts(&now)).all(|(&old, new)| old <= new),
                "{before:?} {now:?}"
            );
            assert_eq!(now.free, now.reserved - now.in_use);
            assert!(now.peak_requested <= now.peak_in_use && now.peak_in_use <= now.peak_reserved, "{now:?}");
            before = now;
        }
    }

    /// Walks the tables continuously; each snapshot agrees with its counters.
    fn picture(&self) {
        while !self.is_over() {
            self.pool.check().expect("every invariant holds");
            let snapshot = self.pool.snapshot().expect("this process");
            let chunks = snapshot.regions.iter().flat_map(|region| &region.chunks);
            let (live, in_use) = chunks
                .filter(|chunk| chunk.in_use)
                .fold((0, 0), |(live, in_use), chunk| (live + 1, in_use + chunk.size));
            assert_eq!((live, in_use), (snapshot.stats.num_live, snapshot.stats.in_use));
            thread::yield_now();
        }
    }

    /// Releases regions continuously.
    fn trim(&self) {
        while !self.is_over() {
            self.pool.trim().expect("not inside a source");
            thread::sleep(Duration::from_micros(200));
        }
    }
}

/// Sets the flag when dropped, also if its thread fails, so that the others end.
struct EndsWith<'a>(&'a AtomicBool);

impl Drop for EndsWith<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn a_crowd_over(source: impl RegionSource + 'static, options: Options) {
    let pool = Pool::new(source, options).expect("options in range");
    ends_within(duration() + FOREVER, move || {
        let (ranges, handed_over, over) = (Ranges::default(), Mutex::default(), AtomicBool::new(false));
        let crowd = Crowd { pool, ranges, handed_over, over };
        let start = Barrier::new(usize::try_from(THREADS).expect("a few") + 4);
        let (crowd, start) = (&crowd, &start);
        thread::scope(|scope| {
            for onlooker in [Crowd::watch, Crowd::picture, Crowd::trim] {
                scope.spawn(move || {
                    start.wait();
                    let _end = EndsWith(&crowd.over);
                    onlooker(crowd);
                });
            }
            for seed in 1..=THREADS {
                scope.spawn(move || {
                    start.wait();
                    let _end = EndsWith(&crowd.over);
                    crowd.work(seed);
                });
            }
            start.wait();
            let _end = EndsWith(&crowd.over);
            thread::sleep(duration());
        });
        let mut random = Numbers::new(0);
        let left = std::mem::take(&mut *crowd.handed_over.lock().expect("no thread failed"));
        for allocation in &left {
            crowd.free(allocation, &mut random);
        }
        let stats = observe(&crowd.pool);
        assert_eq!((stats.num_live, stats.in_use, stats.requested), (0, 0, 0));
        assert!(stats.num_allocs > 1000, "it shows little: {stats:?}");
        crowd.pool.check().expect("every invariant holds");
        crowd.pool.trim().expect("no other thread holds the source lock");
        assert_eq!(observe(&crowd.pool).reserved, 0);
    });
}

#[test]
fn a_crowd_in_a_growing_pool_keeps_every_counter_in_its_bounds() {
    a_crowd_over(AddressSpace::new(256), Options::new(64 * MIB + 77));
}

#[test]
fn a_crowd_that_waits_for_memory_keeps_every_counter_in_its_bounds() {
    let options = Options::new(24 * MIB).wait(Duration::from_millis(3)).growth(false);
    a_crowd_over(AddressSpace::new(0), options);
}

#[test]
fn a_crowd_over_host_memory_under_a_cap_keeps_every_counter_in_its_bounds() {
    a_crowd_over(Capped::new(HostMemory::new(), Cap::new(40 * MIB)), Options::new(64 * MIB));
}

#[test]
fn a_crowd_with_thread_caches_keeps_every_counter_in_its_bounds() {
    a_crowd_over(AddressSpace::new(256), Options::new(64 * MIB + 77).thread_caches(true));
}

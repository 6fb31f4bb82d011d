//! Thread caches as their callers see them: what is kept is free, and every rule of a free holds.
//!
//! Longer than 300 lines: one rule after the other of one concept, with the same few helpers.

use std::sync::Arc;
use std::thread;

use super::super::{EventKind, EventLog, Keep, Options, Pool};
use super::SizeClass;
use super::size_class::{LARGEST, MOST_BYTES};
use crate::error::{AllocError, FreeError, ResizeError};
use crate::source::AddressSpace;
use crate::stats::Stats;
use crate::units::{GRANULE, round_up};

const MIB: u64 = 1 << 20;

fn pool(limit: u64) -> Arc<Pool> {
    let options = Options::new(limit).thread_caches(true);
    Arc::new(Pool::new(AddressSpace::new(0), options).unwrap())
}

/// A pool whose next small requests are served from the cache of this thread.
fn reserved_pool(limit: u64) -> Arc<Pool> {
    let pool = pool(limit);
    let first = pool.allocate(limit / 2).unwrap();
    pool.free(first.address).unwrap();
    pool
}

fn stats(pool: &Pool) -> Stats {
    let stats = pool.stats().unwrap();
    assert_eq!(stats.free, stats.reserved - stats.in_use);
    assert!(stats.thread_cached <= stats.free && stats.largest_free <= stats.free - stats.thread_cached);
    assert!(stats.requested <= stats.peak_requested && stats.in_use <= stats.peak_in_use, "{stats:?}");
    stats
}

/// Runs `work` in a thread that ends.
fn elsewhere<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| scope.spawn(work).join().unwrap())
}

#[test]
fn small_requests_are_served_from_a_batch() {
    let pool = reserved_pool(4 * MIB);
    let first = pool.allocate(1000).unwrap();
    assert_eq!((first.size, first.requested, first.id), (1024, 1000, first.id));
    let batch = SizeClass::of(1000).unwrap().batch() as u64;
    let now = stats(&pool);
    assert_eq!((now.requested, now.in_use, now.num_live), (1000, 1024, 1));
    assert_eq!((now.thread_cached, now.num_from_thread_caches, now.num_allocs), ((batch - 1) * 1024, 1, 2));
    let second = pool.allocate(1024).unwrap();
    assert!(second.id > first.id && second.address != first.address);
    pool.free(second.address).unwrap();
    assert_eq!(
        pool.allocate(900).unwrap().address,
        second.address,
        "the last one freed is the next one served"
    );
    assert_eq!(stats(&pool).num_from_thread_caches, 3);
}

#[test]
fn every_size_gets_a_chunk_of_its_class_and_counts_exactly() {
    let pool = reserved_pool(64 * MIB);
    let mut requested = 0;
    let mut in_use = 0;
    for bytes in (1..=LARGEST + 4096).step_by(97) {
        let allocation = pool.allocate(bytes).unwrap();
        assert!(allocation.size >= bytes && allocation.size < round_up(bytes) * 2);
        requested += bytes;
        in_use += allocation.size;
        let now = stats(&pool);
        assert_eq!((now.requested, now.in_use, now.largest_requested), (requested, in_use, 32 * MIB));
    }
    assert_eq!(stats(&pool).num_from_thread_caches, LARGEST / 97 + 1);
    pool.check().unwrap();
    let settled = stats(&pool);
    assert_eq!((settled.requested, settled.in_use, settled.thread_cached), (requested, in_use, 0));
}

#[test]
fn a_cache_keeps_a_bounded_number_of_chunks() {
    let pool = reserved_pool(64 * MIB);
    for class in SizeClass::all() {
        let live: Vec<_> = (0..200).map(|_| pool.allocate(class.bytes()).unwrap()).collect();
        for allocation in &live {
            pool.free_allocation(allocation).unwrap();
        }
    }
    let now = stats(&pool);
    assert_eq!((now.in_use, now.num_live), (0, 0));
    // Almost full, and never more.
    assert!((MOST_BYTES / 2..=MOST_BYTES).contains(&now.thread_cached), "{}", now.thread_cached);
    assert_eq!(pool.trim().unwrap(), now.reserved);
    assert_eq!(stats(&pool).thread_cached, 0);
}

#[test]
fn a_free_that_does_not_wait_is_done_when_the_cache_is_full() {
    let pool = reserved_pool(4 * MIB);
    let live: Vec<_> = (0..200).map(|_| pool.allocate(300).unwrap()).collect();
    for allocation in &live {
        assert_eq!(pool.try_free(allocation.address), Ok(Some(())));
    }
    assert_eq!(stats(&pool).num_live, 0);
}

#[test]
fn a_deferred_free_of_what_a_cache_served_runs_when_the_lock_is_free() {
    let pool = reserved_pool(4 * MIB);
    let one = pool.allocate(300).unwrap();
    let locked = pool.state.lock().unwrap();
    elsewhere(|| pool.free_deferred(&one));
    drop(locked);
    assert_eq!(stats(&pool).num_live, 0);
    assert_eq!(pool.free_allocation(&one), Err(FreeError::NotAllocated { address: one.address }));
}

#[test]
fn a_wrong_free_is_reported_and_changes_nothing() {
    let pool = reserved_pool(4 * MIB);
    let [one, other] = [(); 2].map(|()| pool.allocate(300).unwrap());
    let not_allocated = |address| Err(FreeError::NotAllocated { address });
    pool.free(one.address).unwrap();
    for address in [one.address, one.address + 256, other.address + 1, 77] {
        assert_eq!(pool.free(address), not_allocated(address));
        assert_eq!(pool.try_free(address), not_allocated(address).map(Some));
        assert_eq!(pool.free_held(address), not_allocated(address));
        assert_eq!(elsewhere(|| pool.free(address)), not_allocated(address));
    }
    assert_eq!(pool.free_allocation(&one), not_allocated(one.address));
    assert_eq!(pool.pin(&one), not_allocated(one.address));
    assert_eq!(pool.resize(one.address, 8), Err(ResizeError::NotAllocated { address: one.address }));
    // Its address has a new allocation, which a stale free does not hit.
    let again = pool.allocate(300).unwrap();
    assert_eq!(again.address, one.address);
    assert_eq!(pool.free_allocation(&one), not_allocated(one.address));
    pool.free_deferred(&one);
    assert_eq!(stats(&pool).num_live, 2);
    pool.check().unwrap();
    assert_eq!(pool.free_allocation(&one), not_allocated(one.address));
    assert_eq!((pool.free_allocation(&again), pool.free(other.address)), (Ok(()), Ok(())));
    assert_eq!(stats(&pool).num_live, 0);
}

#[test]
fn held_and_pinned_allocations_are_freed_by_their_own_calls_alone() {
    let pool = reserved_pool(4 * MIB);
    let held = pool.allocate_held(300, |_| false).unwrap();
    let plain = pool.allocate(300).unwrap();
    assert_eq!(stats(&pool).num_from_thread_caches, 2);
    let pinned = |address| Err(FreeError::Pinned { address });
    assert_eq!(pool.free(held.address), pinned(held.address));
    assert_eq!(pool.free_held(plain.address), Err(FreeError::NotAllocated { address: plain.address }));
    assert_eq!((pool.is_held(held.address), pool.is_held(plain.address)), (Ok(true), Ok(false)));
    pool.pin(&plain).unwrap();
    assert_eq!(pool.free_allocation(&plain), pinned(plain.address));
    pool.unpin(&plain);
    assert_eq!((pool.free_allocation(&plain), pool.free_held(held.address)), (Ok(()), Ok(())));
    let held = pool.allocate_held(300, |_| false).unwrap();
    pool.free_held(held.address).unwrap();
    assert_eq!(pool.free_held(held.address), Err(FreeError::NotAllocated { address: held.address }));
    assert_eq!(stats(&pool).num_live, 0);
}

#[test]
fn another_thread_frees_into_its_own_cache_and_its_end_gives_that_back() {
    let pool = reserved_pool(4 * MIB);
    let live: Vec<_> = (0..8).map(|_| pool.allocate(4096).unwrap()).collect();
    let kept_here = stats(&pool).thread_cached;
    elsewhere(|| {
        for allocation in &live {
            pool.free(allocation.address).unwrap();
        }
        assert_eq!(stats(&pool).thread_cached, kept_here + 8 * 4096);
    });
    let now = stats(&pool);
    assert_eq!((now.thread_cached, now.in_use, now.num_live), (kept_here, 0, 0));
}

#[test]
fn what_other_threads_keep_is_given_back_before_a_refusal() {
    // A query gives everything back, too: without one the request itself must.
    for (trim_on_oom, asks) in [(false, false), (true, false), (false, true)] {
        let options = Options::new(MIB).thread_caches(true).trim_on_oom(trim_on_oom).growth(false);
        let pool = Pool::new(AddressSpace::new(0), options).unwrap();
        let fill = || {
            let live: Vec<_> = (0..64).map(|_| pool.allocate(8192).unwrap()).collect();
            for allocation in &live {
                pool.free(allocation.address).unwrap();
            }
            assert!(stats(&pool).thread_cached > 0);
        };
        fill();
        thread::scope(|scope| {
            let (keeps, is_kept) = std::sync::mpsc::channel();
            let (goes, may_go) = std::sync::mpsc::channel::<()>();
            scope.spawn(move || {
                fill();
                keeps.send(()).unwrap();
                let _ = may_go.recv();
            });
            is_kept.recv().unwrap();
            if asks {
                assert_eq!(pool.can_allocate(MIB), Ok(true));
            }
            let whole = pool.allocate(MIB).unwrap();
            assert!(matches!(pool.allocate(1), Err(AllocError::OutOfMemory(refused)) if refused.free == 0));
            pool.free(whole.address).unwrap();
            drop(goes);
        });
        fill();
        let whole = pool.try_allocate(MIB).unwrap().unwrap();
        pool.free(whole.address).unwrap();
    }
}

#[test]
fn a_refusal_counts_what_caches_kept_as_free() {
    let pool = reserved_pool(MIB);
    let small = pool.allocate(GRANULE).unwrap();
    assert!(stats(&pool).thread_cached > 0);
    let Err(AllocError::OutOfMemory(refused)) = pool.allocate(MIB) else { panic!("one granule is in use") };
    assert_eq!((refused.in_use, refused.free), (GRANULE, refused.reserved - GRANULE));
    assert_eq!(
        pool.snapshot()
            .unwrap()
            .regions
            .iter()
            .flat_map(|region| &region.chunks)
            .filter(|c| c.in_use)
            .count(),
        1
    );
    pool.free(small.address).unwrap();
}

#[test]
fn settling_makes_allocations_from_caches_those_of_the_allocator() {
    let pool = reserved_pool(4 * MIB);
    let [one, other] = [(); 2].map(|()| pool.allocate(300).unwrap());
    let snapshot = pool.snapshot().unwrap();
    let chunks = snapshot.regions.iter().flat_map(|region| &region.chunks);
    let in_use: Vec<_> =
        chunks.filter(|chunk| chunk.in_use).map(|c| (c.address, c.requested, c.id)).collect();
    let mut expected = [one, other].map(|allocation| (allocation.address, 300, allocation.id));
    expected.sort_unstable();
    assert_eq!(in_use, expected);
    pool.free_allocation(&one).unwrap();
    pool.free(other.address).unwrap();
    assert_eq!(stats(&pool).num_live, 0);
}

#[test]
fn a_scope_or_a_waiting_thread_leaves_the_caches_empty() {
    let pool = reserved_pool(MIB);
    let before = pool.allocate(300).unwrap();
    let scope = pool.open_scope("step", Some(512), false).unwrap();
    assert_eq!(stats(&pool).thread_cached, 0);
    let inside = pool.allocate(300).unwrap();
    assert_eq!(pool.scope_stats(scope).unwrap().unwrap().live, 512);
    pool.free(before.address).unwrap();
    pool.free(inside.address).unwrap();
    let now = stats(&pool);
    assert_eq!((now.thread_cached, now.num_from_thread_caches, now.num_live), (0, 1, 0));
    assert_eq!(pool.close_scope(scope).unwrap().unwrap().freed, 512);
    pool.allocate(300).unwrap();
    assert_eq!(stats(&pool).num_from_thread_caches, 2);
}

#[test]
fn guard_mode_and_owner_tags_leave_the_caches_unused() {
    let pool = reserved_pool(MIB);
    assert!(pool.caches.is_some());
    let tagged = Options::new(MIB).thread_caches(true).owner_tags(true);
    assert!(Pool::new(AddressSpace::new(0), tagged).unwrap().caches.is_none());
}

#[test]
fn a_closed_pool_keeps_nothing() {
    let pool = reserved_pool(MIB);
    let last = pool.allocate(300).unwrap();
    pool.close().unwrap();
    assert_eq!(stats(&pool).thread_cached, 0);
    elsewhere(|| pool.free(last.address).unwrap());
    assert_eq!(stats(&pool).reserved, 0);
}

#[test]
fn threads_beyond_the_table_use_the_lock() {
    let pool = reserved_pool(16 * MIB);
    let start = std::sync::Barrier::new(400);
    thread::scope(|scope| {
        let work = || {
            start.wait();
            let allocation = pool.allocate(300).unwrap();
            start.wait();
            pool.free_allocation(&allocation).unwrap();
            start.wait();
        };
        // Joined, as only then a thread has ended altogether.
        let threads: Vec<_> = (0..400).map(|_| scope.spawn(work)).collect();
        for thread in threads {
            thread.join().unwrap();
        }
    });
    let now = stats(&pool);
    assert_eq!((now.thread_cached, now.num_live, now.num_allocs), (0, 0, 401));
    assert!((100..400).contains(&now.num_from_thread_caches), "{now:?}");
}

#[test]
fn activity_counts_what_caches_serve() {
    let pool = reserved_pool(MIB);
    let mut before = pool.activity().unwrap();
    for _ in 0..100 {
        let allocation = pool.allocate(300).unwrap();
        pool.free(allocation.address).unwrap();
        let now = pool.activity().unwrap();
        assert_eq!(now, before + 2);
        before = now;
    }
}

#[test]
fn more_allocations_than_the_table_holds_are_served_as_well() {
    let pool = reserved_pool(128 * MIB);
    let live: Vec<_> = (0..150_000).map(|_| pool.allocate(300).unwrap()).collect();
    let now = stats(&pool);
    assert_eq!((now.num_live, now.in_use), (150_000, 150_000 * 512));
    assert!((80_000..98_305).contains(&now.num_from_thread_caches), "{now:?}");
    for allocation in &live {
        pool.free_allocation(allocation).unwrap();
    }
    assert_eq!(stats(&pool).in_use, 0);
    pool.check().unwrap();
}

#[test]
fn a_recording_begins_with_what_caches_served_and_misses_nothing() {
    let pool = reserved_pool(4 * MIB);
    let before = [300, 700].map(|bytes| pool.allocate(bytes).unwrap());
    let log = EventLog::new(100, Keep::First);
    pool.start_recording(&log).unwrap();
    let during = pool.allocate(400).unwrap();
    pool.free(before[0].address).unwrap();
    pool.stop_recording(&log).unwrap();
    let events: Vec<_> = log.events().into_iter().map(|event| (event.kind, event.id, event.bytes)).collect();
    let mut expected = before.map(|allocation| (EventKind::Allocated, allocation.id, allocation.requested));
    expected.sort_by_key(|&(_, id, _)| before.iter().find(|one| one.id == id).unwrap().address);
    let rest = [(EventKind::Allocated, during.id, 400), (EventKind::Freed, before[0].id, 300)];
    assert_eq!(events, [&expected[..], &rest].concat());
}

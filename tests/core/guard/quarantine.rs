//! Quarantine: poison is checked before reuse, and quarantined memory never prevents a request.

use std::collections::BTreeSet;

use allotment::DamagedPlace::Freed;
use allotment::bindings::PoolForBindings as _;
use allotment::{AllocError, FreeError, ResizeError};

use super::{KIB, damage, damaged, guarded, over_paper, pool, sound};

#[test]
fn a_write_after_the_free_is_found_when_the_memory_is_to_be_used_again() {
    let (pool, memory) = pool(64 * KIB, 4 * KIB);
    let a = pool.allocate(1000).unwrap();
    pool.free(a.address).unwrap();
    memory.poke(a.address, 17);
    assert_eq!(pool.take_damage(), Ok(None), "nothing was checked yet");
    // Each takes a chunk of 1,536 bytes: the third pushes the first out.
    let others: Vec<_> = (0..2).map(|_| pool.allocate(1000).unwrap()).collect();
    pool.free(others[0].address).unwrap();
    assert_eq!(damaged(pool.free(others[1].address)), damage(Freed, &a, 17));
    assert_eq!(sound(&pool).num_live, 0, "the reporting call has freed");
}

#[test]
fn a_write_after_the_free_is_found_in_the_red_zones_too() {
    for offset in [-256, -1, 100, 511] {
        let (pool, memory) = pool(64 * KIB, 4 * KIB);
        let a = pool.allocate(100).unwrap();
        pool.free(a.address).unwrap();
        memory.poke(a.address, offset);
        pool.trim().unwrap();
        assert_eq!(pool.take_damage(), Ok(Some(damage(Freed, &a, offset))));
    }
}

#[test]
fn freed_memory_is_poison_and_not_handed_out() {
    let (pool, memory) = pool(64 * KIB, 8 * KIB);
    let a = pool.allocate(1000).unwrap();
    memory.write(a.address, 1);
    pool.free(a.address).unwrap();
    let poison = memory.read(a.address, 1000);
    assert!(poison.iter().all(|&byte| byte == poison[0] && byte != 0));
    let b = pool.allocate(1000).unwrap();
    assert!(b.address >= a.address + 1000);
    assert_ne!(memory.read(b.address - 256, 1)[0], poison[0], "red zones look different");
}

#[test]
fn a_second_free_of_what_is_in_quarantine_is_a_double_free() {
    let (pool, _) = pool(64 * KIB, 8 * KIB);
    let a = pool.allocate(1000).unwrap();
    pool.free(a.address).unwrap();
    let before = pool.snapshot();
    let refused = Err(FreeError::NotAllocated { address: a.address });
    assert_eq!(pool.free(a.address), refused);
    assert_eq!(pool.free_allocation(&a), refused);
    assert_eq!(pool.try_free(a.address), Err(FreeError::NotAllocated { address: a.address }));
    pool.free_deferred(&a);
    assert_eq!(pool.resize(a.address, 1), Err(ResizeError::NotAllocated { address: a.address }));
    assert_eq!(pool.pin(&a), Err(FreeError::NotAllocated { address: a.address }));
    assert_eq!(pool.snapshot(), before);
}

#[test]
fn neither_the_chunk_nor_a_red_zone_can_be_freed() {
    let (pool, _) = pool(64 * KIB, 8 * KIB);
    let a = pool.allocate(1000).unwrap();
    for address in [a.address - 256, a.address + 256, a.address + 1024, a.address - 1] {
        assert_eq!(pool.free(address), Err(FreeError::NotAllocated { address }));
    }
    pool.free(a.address).unwrap();
}

#[test]
fn the_quarantine_holds_as_much_as_it_may_and_no_more() {
    let (pool, _) = pool(64 * KIB, 10 * KIB);
    let mut addresses = BTreeSet::new();
    for _ in 0..100 {
        let a = pool.allocate(1).unwrap();
        pool.free(a.address).unwrap();
        addresses.insert(a.address);
        let stats = sound(&pool);
        assert_eq!((stats.in_use, stats.num_live, stats.requested), (0, 0, 0));
    }
    // 13 chunks of 768 bytes are in the quarantine, one is outside.
    assert_eq!(addresses.len(), 14);
}

#[test]
fn what_is_larger_than_the_quarantine_is_free_at_once_and_pushes_nothing_out() {
    let (pool, _) = pool(64 * KIB, 4 * KIB);
    let small = pool.allocate(100).unwrap();
    let large = pool.allocate(20 * KIB).unwrap();
    pool.free(small.address).unwrap();
    pool.free(large.address).unwrap();
    assert_eq!(pool.allocate(20 * KIB).unwrap().address, large.address);
    assert_ne!(pool.allocate(100).unwrap().address, small.address);
}

#[test]
fn a_request_that_would_be_refused_empties_the_quarantine_first() {
    for trim_on_oom in [true, false] {
        let options = guarded(64 * KIB).growth(false).trim_on_oom(trim_on_oom).quarantine(64 * KIB);
        let (pool, memory) = over_paper(options);
        let blocks: Vec<_> = (0..4).map(|_| pool.allocate(15 * KIB).unwrap()).collect();
        for block in &blocks {
            pool.free(block.address).unwrap();
        }
        assert!(sound(&pool).largest_free < 8 * KIB);
        memory.poke(blocks[2].address, 0);
        assert!(pool.can_allocate(64 * KIB - 512).unwrap());
        let whole = pool.allocate(64 * KIB - 512);
        let whole = match whole {
            // `can_allocate` emptied it, so the request reports the damage.
            Err(AllocError::Damaged(reported)) => {
                assert_eq!(reported, damage(Freed, &blocks[2], 0));
                pool.allocate(64 * KIB - 512).unwrap()
            }
            other => panic!("{other:?}"),
        };
        assert_eq!(sound(&pool).in_use, 64 * KIB);
        pool.free(whole.address).unwrap();
        let again = pool.allocate(64 * KIB - 512).unwrap();
        assert_eq!(sound(&pool).num_refused, 0);
        pool.free(again.address).unwrap();
    }
}

#[test]
fn a_refusal_comes_with_the_quarantine_empty_whether_or_not_regions_go_back() {
    for trim_on_oom in [true, false] {
        let options = guarded(64 * KIB).growth(false).trim_on_oom(trim_on_oom).quarantine(64 * KIB);
        let (pool, _) = over_paper(options);
        let [kept, freed] = [(); 2].map(|()| pool.allocate(15 * KIB).unwrap());
        pool.free(freed.address).unwrap();
        let AllocError::OutOfMemory(refused) = pool.allocate(60 * KIB).unwrap_err() else { panic!() };
        assert_eq!(refused.largest_free, refused.free);
        // Only the quarantine prevents this request.
        pool.allocate(40 * KIB).unwrap();
        pool.free(kept.address).unwrap();
    }
}

#[test]
fn trim_gives_back_what_only_the_quarantine_holds() {
    let options = guarded(64 * KIB).quarantine(64 * KIB);
    let (pool, _) = over_paper(options);
    let a = pool.allocate(1000).unwrap();
    pool.free(a.address).unwrap();
    let reserved = sound(&pool).reserved;
    assert!(reserved > 0);
    assert_eq!(pool.trim(), Ok(reserved));
    assert_eq!(sound(&pool).reserved, 0);
}

#[test]
fn a_closed_pool_holds_nothing_back() {
    let (pool, memory) = pool(64 * KIB, 64 * KIB);
    let (a, b, c) = (pool.allocate(1).unwrap(), pool.allocate(1).unwrap(), pool.allocate(1).unwrap());
    pool.free(a.address).unwrap();
    memory.poke(a.address, 0);
    pool.close().unwrap();
    assert_eq!(pool.take_damage(), Ok(Some(damage(Freed, &a, 0))));
    pool.free(b.address).unwrap();
    assert!(sound(&pool).reserved > 0);
    memory.poke(c.address, 1);
    damaged(pool.free(c.address));
    assert_eq!(sound(&pool).reserved, 0);
}

#[test]
fn a_dropped_pool_gives_its_regions_back_with_things_in_quarantine() {
    let (pool, _) = pool(64 * KIB, 64 * KIB);
    let a = pool.allocate(1).unwrap();
    pool.free(a.address).unwrap();
    drop(pool);
}

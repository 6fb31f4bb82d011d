//! Reports of damage: by the call that found it, or by the next call that can report; each damage once.

use allotment::DamagedPlace::{Before, Behind, Freed};
use allotment::bindings::PoolForBindings as _;
use allotment::{AllocError, FreeError};

use super::{KIB, damage, damaged, pool, sound};

#[test]
fn the_next_allocation_reports_damage_that_a_finaliser_found_once() {
    for quick in [true, false] {
        let (pool, memory) = pool(64 * KIB, 8 * KIB);
        let a = pool.allocate(100).unwrap();
        memory.poke(a.address, 100);
        pool.free_deferred(&a);
        assert_eq!(sound(&pool).num_live, 0);
        let refused = if quick { pool.try_allocate(1).unwrap_err() } else { pool.allocate(1).unwrap_err() };
        match refused {
            AllocError::Damaged(reported) => assert_eq!(reported, damage(Behind, &a, 100)),
            other => panic!("{other:?}"),
        }
        assert_eq!(sound(&pool).num_live, 0);
        pool.allocate(1).unwrap();
    }
}

#[test]
fn the_next_free_reports_damage_that_a_finaliser_found_and_frees() {
    let (pool, memory) = pool(64 * KIB, 8 * KIB);
    let (a, b, c) = (pool.allocate(100).unwrap(), pool.allocate(1).unwrap(), pool.allocate(1).unwrap());
    memory.poke(a.address, 100);
    pool.free_deferred(&a);
    // Neither an invalid free nor a free of 0 reports other damage.
    assert_eq!(pool.free(1), Err(FreeError::NotAllocated { address: 1 }));
    assert_eq!(pool.free(0), Ok(()));
    assert_eq!(damaged(pool.free(b.address)), damage(Behind, &a, 100));
    assert_eq!(pool.free(c.address), Ok(()));
}

#[test]
fn a_free_reports_its_own_damage_first() {
    let (pool, memory) = pool(64 * KIB, 8 * KIB);
    let (a, b) = (pool.allocate(100).unwrap(), pool.allocate(100).unwrap());
    for block in [&a, &b] {
        memory.poke(block.address, 100);
    }
    pool.free_deferred(&a);
    assert_eq!(damaged(pool.free(b.address)), damage(Behind, &b, 100));
    assert_eq!(pool.take_damage(), Ok(Some(damage(Behind, &a, 100))));
}

#[test]
fn deferred_damage_is_reported_by_the_next_call() {
    let (pool, memory) = pool(64 * KIB, 8 * KIB);
    let a = pool.allocate(100).unwrap();
    memory.poke(a.address, 100);
    let reported = damaged(pool.free(a.address));
    pool.defer_damage(reported);
    assert_eq!(pool.take_damage(), Ok(Some(reported)));
}

#[test]
fn an_inspection_finds_everything_and_live_damage_again() {
    let (pool, memory) = pool(64 * KIB, 8 * KIB);
    let [deferred, live, freed, well] = [(); 4].map(|()| pool.allocate(100).unwrap());
    memory.poke(deferred.address, 100);
    pool.free_deferred(&deferred);
    memory.poke(live.address, 101);
    assert_eq!(damaged(pool.free(freed.address)), damage(Behind, &deferred, 100));
    memory.poke(freed.address, 5);
    assert_eq!(pool.inspect().unwrap(), [damage(Freed, &freed, 5), damage(Behind, &live, 101)]);
    assert_eq!(pool.inspect().unwrap(), [damage(Behind, &live, 101)]);
    damaged(pool.free(live.address));
    pool.free(well.address).unwrap();
    assert_eq!(pool.inspect().unwrap(), []);
}

#[test]
fn leaks_are_the_live_allocations() {
    let (pool, _) = pool(64 * KIB, 8 * KIB);
    assert_eq!(pool.take_leaks(), Ok(None));
    let (a, b) = (pool.allocate(100).unwrap(), pool.allocate(3000).unwrap());
    let leaks = pool.take_leaks().unwrap().unwrap();
    assert_eq!((leaks.allocations.as_slice(), leaks.bytes()), ([b, a].as_slice(), 3100));
    assert_eq!(pool.take_leaks(), Ok(None), "leaks are reported once");
}

#[test]
fn a_dropped_pool_reports_unreported_damage_and_leaks() {
    let (pool, memory) = pool(64 * KIB, 8 * KIB);
    let [freed, leaked, reported] = [(); 3].map(|()| pool.allocate(100).unwrap());
    memory.poke(reported.address, 100);
    damaged(pool.free(reported.address));
    pool.free(freed.address).unwrap();
    memory.poke(freed.address, 3);
    memory.poke(leaked.address, -3);
    drop(pool);
    let words = memory.words();
    assert_eq!(words.len(), 3, "{words:?}");
    assert_eq!(words[0], format!("pool: {}", damage(Freed, &freed, 3)));
    assert_eq!(words[1], format!("pool: {}", damage(Before, &leaked, -3)));
    assert!(
        words[2].starts_with("pool: 1 allocation was never freed, 100 bytes\n  allocation 2: "),
        "{words:?}"
    );
}

#[test]
fn a_sound_pool_reports_nothing_when_dropped() {
    let (pool, memory) = pool(64 * KIB, 8 * KIB);
    let (a, b) = (pool.allocate(100).unwrap(), pool.allocate(100).unwrap());
    pool.free(a.address).unwrap();
    let leaks = pool.take_leaks().unwrap().unwrap();
    assert_eq!(leaks.allocations, [b]);
    drop(pool);
    assert!(memory.words().is_empty(), "the leak was reported before");
}

#[test]
fn a_pool_without_guard_mode_reports_nothing() {
    let pool =
        allotment::Pool::new(super::Paper::new(super::Memory::default()), allotment::Options::new(64 * KIB))
            .unwrap();
    let a = pool.allocate(100).unwrap();
    assert_eq!(a.size, 256);
    assert_eq!((pool.take_leaks(), pool.take_damage(), pool.inspect()), (Ok(None), Ok(None), Ok(Vec::new())));
    assert_eq!(pool.resize(a.address, 200).unwrap().size, 256);
}

#[test]
fn a_pin_keeps_an_allocation_out_of_quarantine() {
    let (pool, _) = pool(64 * KIB, 8 * KIB);
    let a = pool.allocate(100).unwrap();
    pool.pin(&a).unwrap();
    assert_eq!(pool.free(a.address), Err(FreeError::Pinned { address: a.address }));
    pool.free_deferred(&a);
    assert_eq!(sound(&pool).num_live, 1);
    pool.unpin(&a);
    pool.free(a.address).unwrap();
}

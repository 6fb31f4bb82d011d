use super::*;
use crate::GRANULE;
use crate::Options;
use crate::error::{FreeError, Unusable};
use crate::source::AddressSpace;

fn pool(options: Options) -> Pool {
    Pool::new(AddressSpace::new(0), options.growth(false)).unwrap()
}

fn held(pool: &Pool) -> Allocation {
    pool.allocate_held(1, |_| false).unwrap()
}

#[test]
fn only_free_held_frees_a_held_allocation() {
    for tags in [false, true] {
        // Tags close the fast path, so every call takes the slow path.
        let pool = pool(Options::new(1 << 20).owner_tags(tags));
        let held = held(&pool);
        let refused = FreeError::Pinned { address: held.address };
        assert_eq!(pool.is_held(held.address), Ok(true));
        assert_eq!(pool.free(held.address), Err(refused));
        assert_eq!(pool.try_free(held.address), Err(refused));
        assert_eq!(pool.free_allocation(&held), Err(refused));
        assert_eq!(pool.try_free_allocation(&held), Err(refused));
        pool.free_deferred(&held);
        assert_eq!(pool.stats().unwrap().num_live, 1);
        assert_eq!(pool.free_held(held.address), Ok(()));
        assert_eq!(pool.free_held(held.address), Err(FreeError::NotAllocated { address: held.address }));
        assert_eq!(pool.stats().unwrap().num_live, 0);
        pool.check().unwrap();
    }
}

#[test]
fn free_held_frees_only_held_allocations() {
    let pool = pool(Options::new(1 << 20));
    let other = pool.allocate(1).unwrap();
    let refused = FreeError::NotAllocated { address: other.address };
    assert_eq!(pool.is_held(other.address), Ok(false));
    assert_eq!(pool.free_held(other.address), Err(refused));
    assert_eq!(pool.free_held(0), Ok(()), "nothing");
    assert_eq!(pool.free(other.address), Ok(()));
    assert_eq!(pool.is_held(other.address), Ok(false));
}

#[test]
fn an_old_number_does_not_match_the_new_allocation_at_its_address() {
    let pool = pool(Options::new(GRANULE));
    let former = pool.allocate(1).unwrap();
    pool.free_allocation(&former).unwrap();
    let held = held(&pool);
    assert_eq!(held.address, former.address);
    let refused = FreeError::NotAllocated { address: former.address };
    assert_eq!(pool.free_allocation(&former), Err(refused));
    assert_eq!(pool.pin(&former), Err(refused));
    pool.free_deferred(&former);
    assert_eq!(pool.stats().unwrap().num_live, 1);
    pool.free_held(held.address).unwrap();
}

#[test]
fn a_number_is_the_same_whether_the_allocation_is_held_or_not() {
    let pool = pool(Options::new(1 << 20));
    let one = pool.allocate(300).unwrap();
    let held = held(&pool);
    pool.pin(&one).unwrap();
    let ids = |pool: &Pool| -> Vec<u64> {
        let snapshot = pool.snapshot().unwrap();
        snapshot.regions[0].chunks.iter().map(|chunk| chunk.id).collect()
    };
    assert_eq!(ids(&pool), [one.id, held.id, 0]);
    assert_eq!(pool.kept_regions().unwrap()[0].largest, one.id);
    pool.unpin(&one);
    assert_eq!(ids(&pool), [one.id, held.id, 0]);
    pool.free(one.address).unwrap();
    pool.free_held(held.address).unwrap();
}

#[test]
fn the_fast_path_stays_open_while_something_is_held() {
    let pool = pool(Options::new(1 << 20));
    let _held = held(&pool);
    assert!(pool.on_fast_path(|_| Some(())).is_some());
}

#[test]
fn held_requests_of_zero_bytes_and_refused_ones_act_like_others() {
    let pool = pool(Options::new(GRANULE));
    assert_eq!(pool.allocate_held(0, |_| false).unwrap(), Allocation::nothing(0));
    let _held = held(&pool);
    let mut asked = 0;
    let refused = pool.allocate_held(1, |_| {
        asked += 1;
        asked < 3
    });
    assert!(matches!(refused, Err(AllocError::OutOfMemory(_))));
    assert_eq!(asked, 3);
    assert!(matches!(pool.allocate_held(u64::MAX, |_| true), Err(AllocError::TooLarge { bytes: u64::MAX })));
    pool.close().unwrap();
    assert!(matches!(pool.allocate_held(1, |_| false), Err(AllocError::Unusable(Unusable::Closed))));
}

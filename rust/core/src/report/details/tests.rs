use super::*;
use crate::source::AddressSpace;
use crate::{MAX_BYTES, Options, Pool, Verdict};

const MIB: u64 = 1 << 20;

fn details_of(pool: &Pool) -> Details {
    let refused = pool.explain(MAX_BYTES).unwrap().expect("above every limit");
    *refused.details.unwrap()
}

fn pool(limit: u64) -> Pool {
    Pool::new(AddressSpace::new(0), Options::new(limit).growth(false)).unwrap()
}

#[test]
fn the_allocation_between_the_largest_holes_is_named() {
    let pool = pool(64 * MIB);
    let parts = [24, 16, 24].map(|mib| pool.allocate(mib * MIB).unwrap());
    pool.free(parts[0].address).unwrap();
    pool.free(parts[2].address).unwrap();
    let refused = pool.explain(32 * MIB).unwrap().unwrap();
    assert_eq!(refused.verdict, Verdict::Fragmented);
    let splitter = refused.details.unwrap().splitter.unwrap();
    assert_eq!((splitter.address, splitter.id), (parts[1].address, parts[1].id));
    assert_eq!((splitter.before, splitter.size, splitter.after), (24 * MIB, 16 * MIB, 24 * MIB));
    assert_eq!(pool.explain(24 * MIB).unwrap(), None, "that would fit");
}

#[test]
fn sizes_are_told_apart_and_the_largest_groups_come_first() {
    let pool = pool(64 * MIB);
    for size in [256, 512, 768, 1024, 1280, 1536] {
        for _ in 0..4 {
            pool.allocate(size).unwrap();
        }
    }
    let Details { by_size, other_sizes, by_owner, .. } = details_of(&pool);
    let sizes: Vec<_> =
        by_size.iter().map(|group| (group.smallest, group.largest, group.count, group.bytes)).collect();
    assert_eq!(sizes[0], (1536, 1536, 4, 6144));
    assert_eq!(sizes[3], (768, 768, 4, 3072));
    assert_eq!((sizes.len(), other_sizes), (4, 2));
    assert!(by_owner.is_empty());
}

#[test]
fn very_many_sizes_are_counted_by_doublings() {
    let pool = pool(1 << 40);
    for granules in 1..=4096_u64 {
        pool.allocate(granules * 256).unwrap();
    }
    let Details { by_size, .. } = details_of(&pool);
    let top = by_size[0];
    assert_eq!((top.smallest, top.largest, top.count), (2048 * 256, 4095 * 256, 2048));
    assert_eq!(top.bytes, (2048..4096_u64).map(|granules| granules * 256).sum::<u64>());
}

#[test]
fn owners_are_named_with_their_scopes() {
    let pool = pool(64 * MIB);
    let scope = pool.open_scope("epoch", None, false).unwrap();
    pool.allocate(MIB).unwrap();
    pool.close_scope(scope).unwrap().unwrap();
    pool.allocate(2 * MIB).unwrap();
    let Details { by_owner, .. } = details_of(&pool);
    assert_eq!(by_owner, [OwnerGroup { bytes: MIB, count: 1, owner: "epoch".to_owned() }]);
}

//! Quarantine and other figures of a pool: scopes, live limits, explanations, kept regions.

use allotment::{DamagedPlace, ResizeError, Verdict};

use super::{KIB, damage, damaged, guarded, over_paper, pool, sound};

#[test]
fn a_scope_holds_nothing_that_is_in_quarantine() {
    let (pool, _) = pool(64 * KIB, 32 * KIB);
    let scope = pool.open_scope("step", Some(4 * KIB), false).unwrap();
    // Repeatedly under a limit that allows one of them.
    for _ in 0..10 {
        let a = pool.allocate(3 * KIB).unwrap();
        pool.free(a.address).unwrap();
        sound(&pool);
    }
    let live = pool.allocate(100).unwrap();
    let figures = pool.close_scope(scope).unwrap().unwrap();
    assert_eq!((figures.live, figures.num_live, figures.peak), (256, 1, 3 * KIB));
    assert_eq!(figures.allocated - figures.freed, 256);
    pool.free(live.address).unwrap();
    sound(&pool);
}

#[test]
fn a_scope_limit_keeps_a_resize_in_place_from_moving_the_red_zone() {
    // Alone in its region, so the chunk is larger than needed.
    let (pool, memory) = pool(2 * KIB, 0);
    let a = pool.allocate(1000).unwrap();
    assert_eq!(pool.resize(a.address, 1536).unwrap().size, 1536);
    pool.free(a.address).unwrap();
    let scope = pool.open_scope("step", Some(1024), false).unwrap();
    let b = pool.allocate(1000).unwrap();
    assert!(matches!(pool.resize(b.address, 1536), Err(ResizeError::ScopeLimit { size: 1000, .. })));
    memory.poke(b.address, 1000);
    assert_eq!(damaged(pool.free(b.address)), damage(DamagedPlace::Behind, &b, 1000));
    pool.close_scope(scope).unwrap();
}

#[test]
fn a_limit_may_be_lowered_below_what_only_the_quarantine_holds() {
    let options = guarded(64 * KIB).quarantine(64 * KIB);
    let (pool, _) = over_paper(options);
    let a = pool.allocate(30 * KIB).unwrap();
    pool.free(a.address).unwrap();
    assert!(sound(&pool).reserved > 8 * KIB);
    pool.set_limit(8 * KIB, true, "test").unwrap();
    assert_eq!((sound(&pool).reserved, sound(&pool).limit), (0, 8 * KIB));
    pool.allocate(8 * KIB - 512).unwrap();
}

#[test]
fn an_explanation_is_of_what_is_live() {
    let (pool, _) = pool(64 * KIB, 64 * KIB);
    let blocks: Vec<_> = (0..4).map(|_| pool.allocate(15 * KIB).unwrap()).collect();
    for block in &blocks[..3] {
        pool.free(block.address).unwrap();
    }
    assert!(pool.explain(45 * KIB).unwrap().is_none(), "it fits once the quarantine is empty");
    let refused = pool.explain(60 * KIB).unwrap().unwrap();
    assert_eq!((refused.verdict, refused.num_live), (Verdict::Full, 1));
    let details = refused.details.unwrap();
    assert_eq!(details.by_size.iter().map(|group| group.count).sum::<u64>(), 1);
}

#[test]
fn no_region_is_kept_by_what_is_in_quarantine() {
    let (pool, _) = pool(64 * KIB, 64 * KIB);
    let (a, b) = (pool.allocate(1).unwrap(), pool.allocate(1).unwrap());
    pool.free(a.address).unwrap();
    let kept = pool.kept_regions().unwrap();
    assert_eq!((kept.len(), kept[0].num_live, kept[0].largest), (1, 1, b.id));
    pool.free(b.address).unwrap();
    assert_eq!(pool.kept_regions().unwrap(), []);
}

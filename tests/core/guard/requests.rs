//! Requests in guard mode: the memory they take, and refusals.

use allotment::{Action, AllocError, MAX_BYTES, Request, Verdict};

use super::{KIB, guarded, over_paper, pool, sound};

#[test]
fn a_request_takes_a_granule_in_front_and_at_least_one_behind() {
    for (bytes, chunk) in [(1, 768), (256, 768), (257, 1024), (512, 1024)] {
        let (pool, _) = pool(64 * KIB, 0);
        let a = pool.allocate(bytes).unwrap();
        let stats = sound(&pool);
        assert_eq!((stats.requested, stats.in_use, stats.largest_requested), (bytes, chunk, bytes));
        let first = pool.snapshot().unwrap().regions[0].chunks[0].clone();
        assert_eq!((a.address, first.requested, first.id), (first.address + 256, bytes, a.id));
    }
}

#[test]
fn the_limit_is_exact_with_the_red_zones_in_it() {
    for growth in [true, false] {
        for limit in [768, 1024, 64 * KIB, 1_000_000] {
            let (pool, _) = over_paper(guarded(limit).growth(growth));
            let whole = limit / 256 * 256 - 512;
            let needed = |bytes: u64| bytes.next_multiple_of(256) + 512;
            assert!(!pool.can_allocate(whole + 1).unwrap());
            match pool.allocate(whole + 1).unwrap_err() {
                AllocError::OutOfMemory(refused) => {
                    assert_eq!(refused.verdict, Verdict::Limit);
                    let help: Vec<_> =
                        refused.advice.iter().map(|piece| (piece.action, piece.bytes)).collect();
                    assert_eq!(help, [(Action::RaiseLimit, needed(whole + 1)), (Action::AskFor, whole)]);
                }
                other => panic!("{other:?}"),
            }
            for _ in 0..3 {
                assert!(pool.can_allocate(whole).unwrap());
                let a = pool.allocate(whole).unwrap();
                assert!(!pool.can_allocate(1).unwrap());
                pool.free(a.address).unwrap();
            }
            assert!(sound(&pool).peak_reserved <= limit);
        }
    }
}

#[test]
fn zero_bytes_are_nothing() {
    let (pool, _) = pool(64 * KIB, 8 * KIB);
    let nothing = pool.allocate(0).unwrap();
    assert_eq!((nothing.address, nothing.size, nothing.id), (0, 0, 0));
    pool.free(0).unwrap();
    pool.free_allocation(&nothing).unwrap();
    assert_eq!(sound(&pool).reserved, 0);
    assert!(pool.can_allocate(0).unwrap());
}

#[test]
fn what_is_too_large_is_named_as_it_was_asked_for() {
    let (pool, _) = pool(64 * KIB, 8 * KIB);
    for bytes in [MAX_BYTES, MAX_BYTES - 256, u64::MAX, u64::MAX - 511] {
        assert!(!pool.can_allocate(bytes).unwrap());
        match pool.allocate(bytes).unwrap_err() {
            AllocError::TooLarge { bytes: named } => assert_eq!(named, bytes),
            AllocError::OutOfMemory(refused) => assert_eq!(refused.requested, bytes),
            other => panic!("{other:?}"),
        }
    }
    assert!(matches!(
        pool.allocate_with_retry(Request::new(1).align(3), |_| false),
        Err(AllocError::BadAlignment { alignment: 3 })
    ));
}

//! Red zones: before and behind, for every size and alignment.

use allotment::DamagedPlace::{Before, Behind};
use allotment::Request;
use allotment::ResizeError;

use super::{KIB, damage, damaged, pool, sound};

#[test]
fn a_byte_behind_the_last_is_found_at_the_free_whatever_the_size() {
    let (pool, memory) = pool(256 * KIB, 64 * KIB);
    for bytes in [1, 2, 255, 256, 257, 511, 512, 1000, 4096, 10_001] {
        let a = pool.allocate(bytes).unwrap();
        memory.poke(a.address, bytes.cast_signed());
        assert_eq!(damaged(pool.free(a.address)), damage(Behind, &a, bytes.cast_signed()));
        sound(&pool);
    }
    assert_eq!(sound(&pool).num_live, 0, "what was damaged is freed nevertheless");
}

#[test]
fn a_byte_before_the_first_is_found_at_the_free() {
    let (pool, memory) = pool(256 * KIB, 64 * KIB);
    for offset in [-1, -2, -255, -256] {
        let a = pool.allocate(1000).unwrap();
        memory.poke(a.address, offset);
        assert_eq!(damaged(pool.free_allocation(&a)), damage(Before, &a, offset));
        sound(&pool);
    }
}

#[test]
fn every_byte_of_a_chunk_that_was_not_asked_for_is_watched() {
    let (pool, memory) = pool(2 * KIB, 0);
    // Alone in its region, so its chunk is the whole region and not split.
    let whole = pool.snapshot().map(|_| 2 * KIB).unwrap();
    for offset in -256..(whole - 256).cast_signed() {
        let a = pool.allocate(1000).unwrap();
        memory.poke(a.address, offset);
        let freed = pool.free(a.address);
        if (0..1000).contains(&offset) {
            assert_eq!(freed, Ok(()));
        } else {
            let place = if offset < 0 { Before } else { Behind };
            assert_eq!(damaged(freed), damage(place, &a, offset));
        }
    }
}

#[test]
fn the_first_damaged_byte_is_the_one_named() {
    let (pool, memory) = pool(256 * KIB, 0);
    let a = pool.allocate(100).unwrap();
    for offset in [130, 105, 200] {
        memory.poke(a.address, offset);
    }
    assert_eq!(damaged(pool.free(a.address)), damage(Behind, &a, 105));
}

#[test]
fn damage_on_both_sides_is_reported_twice_the_front_first() {
    let (pool, memory) = pool(256 * KIB, 0);
    let a = pool.allocate(100).unwrap();
    memory.poke(a.address, 100);
    memory.poke(a.address, -1);
    assert_eq!(damaged(pool.free(a.address)), damage(Before, &a, -1));
    assert_eq!(pool.take_damage(), Ok(Some(damage(Behind, &a, 100))));
    assert_eq!(pool.take_damage(), Ok(None));
}

#[test]
fn what_was_asked_for_may_be_written() {
    let (pool, memory) = pool(256 * KIB, 64 * KIB);
    for bytes in 1..600 {
        let a = pool.allocate(bytes).unwrap();
        assert_eq!(a.size, bytes, "the red zone is not for use");
        for address in a.address..a.address + bytes {
            memory.write(address, 0);
        }
        assert_eq!(pool.free(a.address), Ok(()));
    }
}

#[test]
fn alignment_is_kept_and_both_sides_are_watched() {
    let (pool, memory) = pool(256 * KIB, 0);
    let mut shift = Vec::new();
    for alignment in [1, 64, 256, 512, 1024, 2048, 4096] {
        for bytes in [1_i64, 255, 256, 1000, 5000] {
            for offset in [-1, bytes] {
                let again = |_: &allotment::AllocationAttempt| false;
                let a = pool
                    .allocate_with_retry(Request::new(bytes.cast_unsigned()).align(alignment), again)
                    .unwrap();
                assert!(a.address.is_multiple_of(alignment.max(256)));
                assert!(a.address.is_multiple_of(alignment));
                assert_eq!(a.size, bytes.cast_unsigned());
                memory.poke(a.address, offset);
                let place = if offset < 0 { Before } else { Behind };
                assert_eq!(damaged(pool.free_allocation(&a)), damage(place, &a, offset));
            }
            // Shifts later allocations off the larger multiples.
            shift.push(pool.allocate(1).unwrap());
        }
    }
    for a in shift {
        pool.free(a.address).unwrap();
    }
    assert_eq!(sound(&pool).in_use, 0);
}

#[test]
fn a_resize_in_place_moves_the_red_zone_along() {
    let (pool, memory) = pool(256 * KIB, 0);
    let a = pool.allocate(100).unwrap();
    let next = pool.allocate(1).unwrap();
    // One granule of the chunk always stays a red zone.
    let refused = ResizeError::NoRoom { address: a.address, bytes: 10_000, size: 100, possible: 256 };
    assert_eq!(pool.resize(a.address, 10_000), Err(refused));
    assert_eq!(pool.resize(a.address, 256).unwrap().size, 256);
    memory.poke(a.address, 255);
    assert_eq!(pool.resize(a.address, 200).unwrap().size, 200);
    pool.free(next.address).unwrap();
    assert_eq!(sound(&pool).requested, 200);
    memory.poke(a.address, 199);
    memory.poke(a.address, 200);
    let shrunk = allotment::Allocation { requested: 200, ..a };
    assert_eq!(damaged(pool.free(a.address)), damage(Behind, &shrunk, 200));
}

#[test]
fn damage_found_while_resizing_is_kept_for_the_free() {
    let (pool, memory) = pool(256 * KIB, 0);
    let a = pool.allocate(100).unwrap();
    memory.poke(a.address, 150);
    assert_eq!(pool.resize(a.address, 200).unwrap().size, 200);
    assert_eq!(damaged(pool.free(a.address)), damage(Behind, &a, 150));
}

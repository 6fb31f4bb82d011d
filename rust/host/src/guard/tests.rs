use allotment::source::RegionSource;
use allotment::{DamagedPlace, FreeError, Options, Pool};

use super::*;
use crate::HostMemory;

/// Creates a source, a grant of it and its guard.
fn granted(bytes: u64) -> (HostMemory, Grant, Arc<dyn MemoryGuard>) {
    let mut host = HostMemory::new();
    let grant = host.reserve(bytes, 256).unwrap();
    let guard = host.guard().unwrap();
    (host, grant, guard)
}

fn write(address: u64, byte: u8) {
    let at: *mut u8 = ptr::with_exposed_provenance_mut(usize::try_from(address).unwrap());
    // SAFETY: the tests pass addresses within mapped regions, and no other code writes there.
    unsafe { at.write_volatile(byte) };
}

#[test]
fn any_one_byte_is_found_at_any_start_and_length() {
    let (_host, grant, guard) = granted(4096);
    guard.fill(grant.address, 4096, 0xFA);
    for start in grant.address + 256..grant.address + 266 {
        for length in (0..80).chain([255, 256, 257, 1000]) {
            assert_eq!(guard.first_other(start, length, 0xFA), None);
            for offset in 0..length {
                write(start + offset, 0);
                assert_eq!(guard.first_other(start, length, 0xFA), Some(offset), "{start} {length}");
                write(start + offset, 0xFA);
            }
            // Bytes just outside do not matter.
            write(start - 1, 0);
            write(start + length, 0);
            assert_eq!(guard.first_other(start, length, 0xFA), None);
            write(start - 1, 0xFA);
            write(start + length, 0xFA);
        }
    }
}

#[test]
fn the_first_of_several_is_named() {
    let (_host, grant, guard) = granted(1 << 20);
    guard.fill(grant.address, 1 << 20, 0xFD);
    write(grant.address + 700_000, 1);
    write(grant.address + 300_003, 1);
    assert_eq!(guard.first_other(grant.address, 1 << 20, 0xFD), Some(300_003));
}

#[test]
fn a_fill_ends_where_it_should() {
    let (_host, grant, guard) = granted(4096);
    guard.fill(grant.address + 3, 500, 0xFA);
    assert_eq!(guard.first_other(grant.address, 3, 0), None);
    assert_eq!(guard.first_other(grant.address + 3, 500, 0xFA), None);
    assert_eq!(guard.first_other(grant.address + 503, 1000, 0), None);
    guard.fill(grant.address, 0, 1);
    assert_eq!(guard.first_other(grant.address, 0, 1), None);
}

#[test]
#[should_panic(expected = "is not granted")]
fn memory_that_was_not_granted_is_not_touched() {
    let (_host, grant, guard) = granted(4096);
    guard.fill(grant.address + 4000, 100, 0);
}

#[test]
#[should_panic(expected = "is not granted")]
fn released_memory_is_not_touched() {
    let (mut host, grant, guard) = granted(4096);
    host.release(grant);
    guard.first_other(grant.address, 1, 0);
}

#[test]
fn a_pool_over_host_memory_finds_what_is_written_beside_an_allocation_and_after_its_free() {
    let options = Options::new(64 << 20).guard(true);
    let pool = Pool::new(HostMemory::new(), options).unwrap();
    for requested in [1_u64, 255, 256, 257, 1000, 4096, (1 << 20) + 3] {
        for (place, offset) in [
            (DamagedPlace::Before, -1),
            (DamagedPlace::Before, -256),
            (DamagedPlace::Behind, requested.cast_signed()),
            (DamagedPlace::Behind, requested.cast_signed() + 255),
            (DamagedPlace::Freed, 0),
            (DamagedPlace::Freed, requested.cast_signed() - 1),
        ] {
            let a = pool.allocate(requested).unwrap();
            let at = a.address.checked_add_signed(offset).unwrap();
            let reported = if place == DamagedPlace::Freed {
                pool.free(a.address).unwrap();
                write(at, 1);
                pool.trim().unwrap();
                pool.take_damage().unwrap()
            } else {
                write(at, 1);
                match pool.free(a.address) {
                    Err(FreeError::Damaged(damage)) => Some(damage),
                    other => panic!("{other:?}"),
                }
            };
            let damage = reported.expect("damage is found");
            assert_eq!((damage.place, damage.offset), (place, offset));
            assert_eq!((damage.address, damage.requested, damage.id), (a.address, requested, a.id));
        }
    }
    assert_eq!(pool.take_damage().unwrap(), None);
}

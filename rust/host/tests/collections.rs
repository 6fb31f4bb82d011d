//! Collections of other crates in a pool of host memory, against collections without one.

use std::collections::HashMap;

use allocator_api2::boxed::Box;
use allocator_api2::vec::Vec;
use allotment::Options;
use allotment::source::{Call, Cap, Capped, Log, Recording};
use allotment_host::{HostMemory, PoolAllocator};

fn memory(limit: u64) -> PoolAllocator {
    PoolAllocator::new(Options::new(limit)).expect("in range")
}

#[test]
fn a_map_has_the_same_content_as_one_without_a_pool() {
    let memory = memory(64 << 20);
    let mut ours = hashbrown::HashMap::new_in(memory.clone());
    let mut theirs = HashMap::new();
    for number in 0_u64..50_000 {
        let key = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) % 10_000;
        if number % 3 == 0 {
            assert_eq!(ours.remove(&key), theirs.remove(&key));
        } else {
            assert_eq!(ours.insert(key, number), theirs.insert(key, number));
        }
    }
    ours.shrink_to_fit();
    assert_eq!(ours.len(), theirs.len());
    assert!(theirs.iter().all(|(key, value)| ours.get(key) == Some(value)));
    drop(ours);
    assert_eq!(memory.stats().expect("this process").num_live, 0);
}

#[test]
fn a_list_grows_in_place_while_it_is_the_last_in_its_region() {
    let memory = memory(2 << 20);
    let mut list: Vec<u64, _> = Vec::with_capacity_in(100, memory.clone());
    let start = list.as_ptr();
    list.extend(0..100_000_u64);
    assert_eq!(list.as_ptr(), start);
    assert!(list.iter().copied().eq(0..100_000));
    list.truncate(10);
    list.shrink_to_fit();
    assert_eq!(memory.stats().expect("this process").in_use, 256);
    assert_eq!(list.as_slice(), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    assert!(list.try_reserve(1 << 20).is_err());
}

#[test]
fn alignments_above_the_granule_and_zero_bytes_are_kept() {
    #[repr(align(4096))]
    struct Page([u8; 4096]);
    let memory = memory(1 << 20);
    let page = Box::new_in(Page([7; 4096]), memory.clone());
    assert!((&raw const *page).addr().is_multiple_of(4096) && page.0 == [7; 4096]);
    let nothing = Box::new_in((), memory.clone());
    assert_eq!((memory.stats().expect("this process").num_live, *nothing), (1, ()));
}

#[test]
fn a_list_in_memory_of_wrapped_sources_ends_at_their_cap_and_gives_it_back() {
    let (cap, log) = (Cap::new(4 << 20), Log::default());
    let source = Recording::new(Capped::new(HostMemory::new(), cap.clone()), log.clone());
    let memory = PoolAllocator::over(source, Options::new(1 << 30)).expect("in range");
    let mut list: Vec<u8, _> = Vec::new_in(memory.clone());
    list.resize(1 << 20, 7);
    assert!(list.try_reserve(8 << 20).is_err());
    assert!(list.iter().all(|&byte| byte == 7) && cap.used() >= 1 << 20);
    drop(list);
    memory.trim().expect("this process");
    assert_eq!(cap.used(), 0);
    let (mut granted, mut released) = (0, 0);
    for call in log.take() {
        if let Call::Reserve { answer: Some(grant), .. } = call {
            granted += grant.bytes;
        } else if let Call::Release(region) = call {
            released += region.bytes;
        }
    }
    assert!(granted >= 1 << 20 && granted == released);
}

use std::cell::Cell;

use allotment::Options;

use super::*;
use crate::HostMemory;

const MIB: u64 = 1 << 20;

thread_local! {
    /// What the machine of this thread's tests has left.
    static AVAILABLE: Cell<Option<u64>> = const { Cell::new(None) };
}

fn machine() -> Option<Machine> {
    AVAILABLE.get().map(|available| Machine { total: 4096 * MIB, available })
}

/// The margin of a machine of 4 GiB.
const MARGIN_OF_ALL: u64 = 128 * MIB;

fn watched(available: u64) -> Watch {
    AVAILABLE.set(Some(available));
    let pool = Pool::new(HostMemory::new(), Options { growth: false, ..Options::new(4096 * MIB) }).unwrap();
    Watch { machine, ..Watch::new(&Arc::new(pool)) }
}

/// Allocates until the watch refuses; the addresses.
fn fill(watch: &Arc<Watch>, peers: &[Arc<Watch>], bytes: u64) -> Vec<u64> {
    let admitted = || {
        watch.admit_data(bytes, || peers.to_vec()).ok().map(|()| watch.pool.allocate(bytes).unwrap().address)
    };
    std::iter::from_fn(admitted).take(10_000).collect()
}

fn write(address: u64, bytes: u64) {
    let start: *mut u8 = std::ptr::with_exposed_provenance_mut(usize::try_from(address).unwrap());
    // SAFETY: the test holds the allocation.
    unsafe { start.write_bytes(1, usize::try_from(bytes).unwrap()) };
}

#[test]
fn no_more_is_handed_out_than_the_machine_has_left_written_to_or_not() {
    let watch = Arc::new(watched(MARGIN_OF_ALL + 64 * MIB));
    let peers = [Arc::clone(&watch)];
    let held = fill(&watch, &peers, MIB);
    // All of it, and what small requests may take of the margin.
    assert!((64..=64 + 32).contains(&held.len()), "{}", held.len());
    let refused = watch.admit_data(MIB, || peers.to_vec()).unwrap_err();
    assert_eq!((refused.requested, refused.margin), (MIB, MARGIN_OF_ALL));
    assert!(refused.to_string().contains("out-of-memory killer"));
    for address in &held {
        watch.pool.free(*address).unwrap();
    }
    assert_eq!(fill(&watch, &peers, 32 * MIB).len(), 2);
}

#[test]
#[cfg(target_os = "linux")]
fn what_was_written_to_is_paid_for() {
    let watch = Arc::new(watched(MARGIN_OF_ALL + 64 * MIB));
    let peers = [Arc::clone(&watch)];
    let first = fill(&watch, &peers, 32 * MIB);
    assert_eq!(first.len(), 2);
    for address in first {
        write(address, 32 * MIB);
    }
    // The machine has had it, and now has as much again.
    assert_eq!(fill(&watch, &peers, 32 * MIB).len(), 2);
}

#[test]
#[cfg(target_os = "linux")]
fn pages_without_an_allocation_go_back_before_a_refusal() {
    let watch = Arc::new(watched(MARGIN_OF_ALL + 64 * MIB));
    let peers = [Arc::clone(&watch)];
    for address in fill(&watch, &peers, 32 * MIB) {
        write(address, 32 * MIB);
        watch.pool.free(address).unwrap();
    }
    AVAILABLE.set(Some(MARGIN_OF_ALL + 8 * MIB));
    // Were the written pages counted as paid, this would pass; no allocation holds them, and the system gets them back.
    assert!(watch.admit_data(32 * MIB, || peers.to_vec()).is_err());
    assert_eq!(watch.pool.stats().unwrap().reserved, 0);
    AVAILABLE.set(Some(MARGIN_OF_ALL + 64 * MIB));
    assert!(watch.admit_data(32 * MIB, || peers.to_vec()).is_ok());
}

#[test]
fn pools_share_what_the_machine_has() {
    let one = Arc::new(watched(MARGIN_OF_ALL + 64 * MIB));
    let other = Arc::new(watched(MARGIN_OF_ALL + 64 * MIB));
    let peers = [Arc::clone(&one), Arc::clone(&other)];
    assert_eq!(fill(&one, &peers, 48 * MIB).len(), 1);
    assert_eq!(fill(&other, &peers, 48 * MIB).len(), 0);
    // Together no more than there is, and what small requests may take of the margin.
    assert!((1..=6).contains(&fill(&other, &peers, 8 * MIB).len()));
}

#[test]
fn a_system_that_does_not_tell_is_not_watched() {
    let watch = Arc::new(watched(0));
    AVAILABLE.set(None);
    assert!(watch.admit_data(u64::MAX >> 2, || vec![Arc::clone(&watch)]).is_ok());
    assert!(watch.admit_data(u64::MAX >> 2, || unreachable!("nothing to look at")).is_ok());
}

#[test]
fn addresses_pass_while_the_machine_has_memory_left() {
    let watch = Arc::new(watched(MARGIN_OF_ALL + 64 * MIB));
    let peers = || vec![Arc::clone(&watch)];
    assert!(watch.admit_address(65 * MIB, peers).is_err());
    // Nothing was written to, so the machine has as much as before.
    for _ in 0..1000 {
        watch.admit_address(16 * MIB, peers).unwrap();
    }
    AVAILABLE.set(Some(MARGIN_OF_ALL));
    let admitted = (0..1000).take_while(|_| watch.admit_address(MIB, peers).is_ok()).count();
    // What was allowed at the last look: what small requests may take of the margin.
    assert!(admitted <= 32, "{admitted}");
    AVAILABLE.set(Some(MARGIN_OF_ALL + 2 * LARGEST_ALLOWANCE));
    watch.admit_address(u64::MAX >> 2, peers).unwrap();
}

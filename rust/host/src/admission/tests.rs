use std::cell::Cell;

use allotment::Options;

use super::*;
use crate::HostMemory;

const MIB: u64 = 1 << 20;

thread_local! {
    /// The available memory of the fake machine of this thread's tests.
    static AVAILABLE: Cell<Option<u64>> = const { Cell::new(None) };
}

fn machine_memory() -> Option<MachineMemory> {
    AVAILABLE.get().map(|available| MachineMemory { total: 4096 * MIB, available })
}

/// The margin of a machine with 4 GiB.
const MARGIN_OF_ALL: u64 = 128 * MIB;

fn admission(available: u64) -> AdmissionControl {
    admissions(available).0
}

/// Returns the controls of a pool of regions and of an elastic pool.
fn admissions(available: u64) -> (AdmissionControl, AdmissionControl) {
    AVAILABLE.set(Some(available));
    let control = |options| {
        let pool = Pool::new(HostMemory::new(), options).unwrap();
        AdmissionControl { machine_memory, ..AdmissionControl::new(&Arc::new(pool)) }
    };
    let options = Options::new(4096 * MIB);
    (control(options.clone().growth(false)), control(options.elastic(true)))
}

/// Allocates until the control refuses; returns the addresses.
fn fill(admission: &Arc<AdmissionControl>, peers: &[Arc<AdmissionControl>], bytes: u64) -> Vec<u64> {
    let admitted = || {
        admission
            .admit_data(bytes, || peers.to_vec())
            .ok()
            .map(|()| admission.pool.allocate(bytes).unwrap().address)
    };
    std::iter::from_fn(admitted).take(10_000).collect()
}

fn write(address: u64, bytes: u64) {
    let start: *mut u8 = std::ptr::with_exposed_provenance_mut(usize::try_from(address).unwrap());
    // SAFETY: the test holds the allocation.
    unsafe { start.write_bytes(1, usize::try_from(bytes).unwrap()) };
}

#[test]
fn pools_hand_out_no_more_than_the_machine_has_left() {
    let (plain, elastic) = admissions(MARGIN_OF_ALL + 64 * MIB);
    for admission in [plain, elastic].map(Arc::new) {
        AVAILABLE.set(Some(MARGIN_OF_ALL + 64 * MIB));
        let peers = [Arc::clone(&admission)];
        let held = fill(&admission, &peers, MIB);
        // All of the memory, plus the margin's part for small requests.
        assert!((64..=64 + 32).contains(&held.len()), "{}", held.len());
        let refused = admission.admit_data(MIB, || peers.to_vec()).unwrap_err();
        assert_eq!((refused.requested, refused.margin), (MIB, MARGIN_OF_ALL));
        assert!(refused.to_string().contains("out-of-memory killer"));
        for address in &held {
            admission.pool.free(*address).unwrap();
        }
        assert_eq!(fill(&admission, &peers, 32 * MIB).len(), 2);
    }
}

#[test]
#[cfg(target_os = "linux")]
fn written_pages_do_not_count_twice() {
    let (plain, elastic) = admissions(MARGIN_OF_ALL + 64 * MIB);
    for admission in [plain, elastic].map(Arc::new) {
        AVAILABLE.set(Some(MARGIN_OF_ALL + 64 * MIB));
        let peers = [Arc::clone(&admission)];
        let first = fill(&admission, &peers, 32 * MIB);
        assert_eq!(first.len(), 2);
        for address in first {
            write(address, 32 * MIB);
        }
        // The machine has spent it, and now has as much again.
        assert_eq!(fill(&admission, &peers, 32 * MIB).len(), 2);
    }
}

#[test]
#[cfg(target_os = "linux")]
fn pages_without_an_allocation_go_back_before_a_refusal() {
    let (plain, elastic) = admissions(MARGIN_OF_ALL + 64 * MIB);
    for admission in [plain, elastic].map(Arc::new) {
        AVAILABLE.set(Some(MARGIN_OF_ALL + 64 * MIB));
        let peers = [Arc::clone(&admission)];
        for address in fill(&admission, &peers, 32 * MIB) {
            write(address, 32 * MIB);
            admission.pool.free(address).unwrap();
        }
        AVAILABLE.set(Some(MARGIN_OF_ALL + 8 * MIB));
        // If the written pages counted as taken this would be admitted; they are outside of all allocations and were
        // released.
        assert!(admission.admit_data(32 * MIB, || peers.to_vec()).is_err());
        assert_eq!(admission.pool.stats().unwrap().reserved, 0);
        AVAILABLE.set(Some(MARGIN_OF_ALL + 64 * MIB));
        assert!(admission.admit_data(32 * MIB, || peers.to_vec()).is_ok());
    }
}

#[test]
fn pools_share_what_the_machine_has() {
    let one = Arc::new(admission(MARGIN_OF_ALL + 64 * MIB));
    let other = Arc::new(admission(MARGIN_OF_ALL + 64 * MIB));
    let peers = [Arc::clone(&one), Arc::clone(&other)];
    assert_eq!(fill(&one, &peers, 48 * MIB).len(), 1);
    assert_eq!(fill(&other, &peers, 48 * MIB).len(), 0);
    // Together at most the available memory, plus the margin's part for small requests.
    assert!((1..=6).contains(&fill(&other, &peers, 8 * MIB).len()));
}

#[test]
fn a_system_without_memory_figures_is_not_limited() {
    let admission = Arc::new(admission(0));
    AVAILABLE.set(None);
    assert!(admission.admit_data(u64::MAX >> 2, || vec![Arc::clone(&admission)]).is_ok());
    assert!(admission.admit_data(u64::MAX >> 2, || unreachable!("nothing to look at")).is_ok());
}

#[test]
fn addresses_pass_while_the_machine_has_memory_left() {
    let admission = Arc::new(admission(MARGIN_OF_ALL + 64 * MIB));
    let peers = || vec![Arc::clone(&admission)];
    assert!(admission.admit_address(65 * MIB, peers).is_err());
    // Nothing was written, so the machine has as much as before.
    for _ in 0..1000 {
        admission.admit_address(16 * MIB, peers).unwrap();
    }
    AVAILABLE.set(Some(MARGIN_OF_ALL));
    let admitted = (0..1000).take_while(|_| admission.admit_address(MIB, peers).is_ok()).count();
    // The allowance of the last check: the margin's part for small requests.
    assert!(admitted <= 32, "{admitted}");
    AVAILABLE.set(Some(MARGIN_OF_ALL + 2 * MAX_ALLOWANCE));
    admission.admit_address(u64::MAX >> 2, peers).unwrap();
}

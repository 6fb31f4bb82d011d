//! A forked child never reaches the driver.

use std::ffi::c_int;

use allotment::source::{Grant, PageSource, RegionSource, ReserveError};
use allotment_cuda::{CudaError, CudaMemory, CudaVirtualMemory, Driver};

mod support;
use support::{MIB, Outstanding, StandIn};

unsafe extern "C" {
    fn fork() -> c_int;
    fn waitpid(process: c_int, status: *mut c_int, options: c_int) -> c_int;
    fn _exit(status: c_int) -> !;
}

/// Runs a check in a forked child; returns whether it succeeded.
fn in_child(mut check: impl FnMut() -> bool) -> bool {
    // SAFETY: the child runs the check and ends without running the parent's destructors.
    let process = unsafe { fork() };
    assert!(process >= 0);
    if process == 0 {
        let passed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(&mut check)).unwrap_or(false);
        // SAFETY: as above.
        unsafe { _exit(c_int::from(!passed)) };
    }
    let mut status = -1;
    // SAFETY: the pointer is to a local variable.
    assert_eq!(unsafe { waitpid(process, &raw mut status, 0) }, process);
    status == 0
}

#[test]
fn a_child_gets_a_clear_error_and_calls_nothing() {
    let stand_in = StandIn::new(1);
    // A child of a process that has not used the driver may use it.
    assert!(in_child(|| stand_in.driver().devices().is_ok_and(|devices| devices.len() == 1)));
    let driver = stand_in.driver();
    let mut plain = CudaMemory::new(&driver, 0).unwrap();
    let mut mapped = CudaVirtualMemory::new(&driver, 0).unwrap();
    let grants = [plain.reserve(MIB, 256).unwrap(), mapped.reserve(MIB, 256).unwrap()];
    let range = mapped.reserve_addresses(8 * MIB, 2 * MIB).unwrap();
    let page = Grant { bytes: 2 * MIB, ..range };
    mapped.commit(page).unwrap();
    let gauge = plain.gauge().unwrap();
    // The child's copy is dropped there, the parent's here.
    let mut sources = Some((plain, mapped));
    let before = stand_in.outstanding();
    assert!(in_child(|| {
        let (mut plain, mut mapped) = sources.take().unwrap();
        let calls = stand_in.calls();
        let forked = |result: Result<_, ReserveError>| match result {
            Err(ReserveError::Failed(failure)) => {
                failure.to_string().contains("was forked after its parent used")
            }
            _ => false,
        };
        let mut passed = matches!(Driver::open(Some(stand_in.path())), Err(CudaError::Forked))
            && driver.devices() == Err(CudaError::Forked)
            && driver.memory_info(0) == Err(CudaError::Forked)
            && forked(plain.reserve(MIB, 256))
            && forked(mapped.reserve(MIB, 256))
            && forked(
                mapped.commit(Grant { address: range.address + 2 * MIB, bytes: 2 * MIB }).map(|()| range),
            )
            && forked(mapped.move_pages(page, range.address + 4 * MIB).map(|()| range))
            && mapped.decommit(page).is_err()
            && mapped.read(range.address, &mut [0; 8]).is_err()
            && gauge.headroom() == allotment::Headroom::UNKNOWN;
        plain.release(grants[0]);
        drop((plain, mapped));
        passed &= stand_in.calls() == calls;
        passed
    }));
    assert_eq!(stand_in.outstanding(), before);
    drop((sources, gauge));
    assert_eq!(stand_in.outstanding(), Outstanding::default());
}

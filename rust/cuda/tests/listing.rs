//! The driver's devices, and what is said where there are none.

use allotment_cuda::{CudaError, CudaMemory, CudaVirtualMemory, DRIVER_LIBRARY, Driver};

mod support;
use support::{MIB, Outstanding, StandIn, UNKNOWN};

#[test]
fn devices_are_listed_in_the_drivers_order_without_a_context() {
    let stand_in = StandIn::new(2);
    let driver = stand_in.driver();
    let devices = driver.devices().unwrap();
    let [first, second] = &devices[..] else { panic!("{devices:?}") };
    assert_eq!((first.ordinal, first.name.as_str(), first.total_memory), (0, "Stand-in GPU", 64 * MIB));
    assert_eq!((first.compute_capability, first.pci_bus_id.as_str()), ((9, 0), "0000:3a:00.0"));
    assert_eq!(first.uuid, "GPU-57a4d104-0000-4000-8000-000000000000");
    assert_eq!((second.ordinal, second.pci_bus_id.as_str()), (1, "0000:3b:00.0"));
    assert_eq!(second.uuid, "GPU-57a4d104-0000-4000-8000-000000000001");
    assert_eq!(driver.version(), Ok((13, 0)));
    assert_eq!(stand_in.outstanding(), Outstanding::default());
}

#[test]
fn free_memory_and_priorities_are_asked_in_a_context_that_is_released() {
    let stand_in = StandIn::new(1);
    let driver = stand_in.driver();
    assert_eq!(driver.memory_info(0), Ok((64 * MIB, 64 * MIB)));
    assert_eq!(driver.stream_priorities(0), Ok((-5, 0)));
    assert_eq!(stand_in.outstanding(), Outstanding::default());
    assert!(stand_in.current_context().is_null());
}

#[test]
fn a_missing_library_is_named() {
    let error = Driver::open(Some("/nowhere/libcuda.so.1")).unwrap_err();
    assert!(matches!(error, CudaError::NotFound { .. }));
    let text = error.to_string();
    assert!(
        text.starts_with("the CUDA driver was not found: /nowhere/libcuda.so.1 could not be opened ("),
        "{text}"
    );
    assert!(text.contains("No such file"), "{text}");
    // Here there is none, or it can be opened; the name is in either case the driver's.
    match Driver::open(None) {
        Ok(_) | Err(CudaError::Call { .. }) => {}
        Err(error) => assert!(error.to_string().contains(DRIVER_LIBRARY), "{error}"),
    }
}

#[test]
fn a_library_that_is_no_driver_is_named_with_what_it_lacks() {
    // The C library of every Linux.
    let error = Driver::open(Some("libc.so.6")).unwrap_err();
    assert_eq!(error.to_string(), "libc.so.6 is not a CUDA driver that can be used: it lacks cuInit");
}

#[test]
fn a_driver_without_a_device_lists_none() {
    let stand_in = StandIn::new(0);
    let driver = stand_in.driver();
    assert_eq!(driver.devices(), Ok(Vec::new()));
    let error = CudaMemory::new(&driver, 0).unwrap_err();
    assert_eq!(error, CudaError::NoSuchDevice { ordinal: 0, count: 0 });
    assert!(error.to_string().contains("the driver lists none"), "{error}");
}

#[test]
fn a_device_that_is_not_there_is_an_error_of_both_sources() {
    let stand_in = StandIn::new(2);
    let driver = stand_in.driver();
    let error = CudaMemory::new(&driver, 2).unwrap_err();
    assert_eq!(error.to_string(), "there is no CUDA device 2: the driver lists 2, from 0 to 1");
    assert_eq!(CudaVirtualMemory::new(&driver, 2).unwrap_err(), error);
    assert!(CudaMemory::new(&driver, u32::MAX).is_err());
}

#[test]
fn a_device_without_virtual_memory_is_said_so() {
    let stand_in = StandIn::with(1, 64 * MIB, false);
    let error = CudaVirtualMemory::new(&stand_in.driver(), 0).unwrap_err();
    assert_eq!(error, CudaError::NoVirtualMemory { ordinal: 0 });
    assert!(CudaMemory::new(&stand_in.driver(), 0).is_ok());
}

#[test]
fn every_call_of_the_listing_is_named_when_it_fails() {
    let stand_in = StandIn::new(1);
    let list = || Driver::open(Some(stand_in.path()))?.devices();
    let before = stand_in.calls();
    list().unwrap();
    for nth in 1..=stand_in.calls() - before {
        stand_in.fail_at(nth, UNKNOWN);
        let text = list().unwrap_err().to_string();
        let call = stand_in.failed().unwrap();
        assert_eq!(text, format!("{call} failed: CUDA_ERROR_UNKNOWN (999), unknown error"));
    }
    list().unwrap();
}

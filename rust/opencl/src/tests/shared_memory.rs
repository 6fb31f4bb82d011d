//! Regions of memory that the host and devices share.

use allotment::{Options, Pool};

use super::stand_in::{LONGEST, Program, library};
use crate::{OpenClError, SharedMemory};

/// Capabilities: coarse-grained buffers, and fine-grained ones as well.
const COARSE: u64 = 1;
const FINE: u64 = 3;

#[test]
fn regions_are_aligned_memory_of_the_process_and_go_back() {
    let program = Program::new(&[]);
    library().svm_capabilities = vec![FINE];
    let pool = Pool::new(SharedMemory::new(program.context()).unwrap(), Options::new(64 << 20)).unwrap();
    program.calls();
    let blocks = [pool.block(1000).unwrap(), pool.block(3 << 20).unwrap()];
    assert_eq!(program.calls(), ["allocate 2097408", "allocate 4194560"]);
    for block in &blocks {
        assert_eq!(block.address() % 256, 0);
        let start: *mut u8 = std::ptr::with_exposed_provenance_mut(usize::try_from(block.address()).unwrap());
        // SAFETY: the block is memory of the process.
        unsafe { start.write_bytes(0xA5, usize::try_from(block.size()).unwrap()) };
    }
    drop(blocks);
    pool.trim().unwrap();
    assert_eq!(program.calls(), ["free ", "free "]);
    drop(pool);
    program.check_nothing_is_left();
}

#[test]
fn a_region_is_no_longer_than_any_device_of_the_context_allows() {
    let program = Program::new(&[]);
    library().svm_capabilities = vec![FINE, FINE];
    let source = SharedMemory::new(program.context()).unwrap();
    let pool = Pool::new(source, Options::new(64 << 20).growth(false)).unwrap();
    let error = pool.allocate(LONGEST / 2).unwrap_err().to_string();
    assert!(error.contains("out of memory"), "{error}");
    // The pool asks for less until there is a region, and then for another one.
    pool.allocate(3 << 20).unwrap();
    pool.allocate(3 << 20).unwrap();
    let stats = pool.stats().unwrap();
    assert_eq!(stats.num_regions, 2);
    assert!(stats.reserved <= LONGEST);
}

#[test]
fn without_memory_the_source_declines() {
    let program = Program::new(&[]);
    library().svm_capabilities = vec![FINE];
    let pool = Pool::new(SharedMemory::new(program.context()).unwrap(), Options::new(64 << 20)).unwrap();
    library().fails = Some(("allocate", -6));
    let error = pool.allocate(1000).unwrap_err().to_string();
    assert!(error.contains("out of memory"), "{error}");
    library().fails = None;
    pool.free(pool.allocate(1000).unwrap().address).unwrap();
}

#[test]
fn contexts_without_fine_grained_memory_are_refused() {
    let program = Program::new(&[]);
    library().svm_capabilities = vec![FINE, COARSE];
    let error = SharedMemory::new(program.context()).unwrap_err();
    assert_eq!(error, OpenClError::NoSharedMemory { capabilities: COARSE });
    assert_eq!(
        error.to_string(),
        "the host cannot read and write memory of the device: it has no fine-grained shared virtual memory \
         (CL_DEVICE_SVM_FINE_GRAIN_BUFFER is not among its CL_DEVICE_SVM_CAPABILITIES, 0x1)"
    );
    for call in ["devices", "device_info"] {
        library().fails = Some((call, -33));
        let error = SharedMemory::new(program.context()).unwrap_err().to_string();
        assert!(error.ends_with("CL_INVALID_DEVICE (-33)"), "{error}");
    }
    library().fails = Some(("device_info", -30));
    let error = SharedMemory::new(program.context()).unwrap_err();
    assert_eq!(error, OpenClError::NoSharedMemory { capabilities: 0 });
    library().fails = None;
    drop(program);
    let old = Program::of_version_1();
    let error = SharedMemory::new(old.context()).unwrap_err().to_string();
    assert_eq!(error, "libOpenCL.so.1 is not an OpenCL 2.0 or newer: it lacks clSVMAlloc");
}

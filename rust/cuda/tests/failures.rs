//! Every call of the driver fails in turn: nothing stays reserved, the caller's context stays current, the error names
//! the call.

use allotment::source::{RegionSource, ReserveError};
use allotment::{Options, Pool};
use allotment_cuda::{CudaError, CudaMemory, CudaVirtualMemory, Driver};

mod support;
use support::{MIB, OUT_OF_MEMORY, Outstanding, StandIn, UNKNOWN};

/// Makes a source of one kind.
type Make = fn(&Driver) -> Result<Box<dyn RegionSource>, CudaError>;

const KINDS: [(&str, Make); 2] = [
    ("plain", |driver| Ok(Box::new(CudaMemory::new(driver, 0)?))),
    ("mapped", |driver| Ok(Box::new(CudaVirtualMemory::new(driver, 0)?))),
];

/// Reserves, releases and asks, and goes on after an error. Returns the texts of all errors, and the number of calls
/// before the source was dropped.
fn use_source(stand_in: &StandIn, make: Make) -> (Vec<String>, u64) {
    let mut errors = Vec::new();
    let opened = || {
        let driver = Driver::open(Some(stand_in.path()))?;
        driver.memory_info(0)?;
        make(&driver)
    };
    let mut source = match opened() {
        Ok(source) => source,
        Err(error) => return (vec![error.to_string()], stand_in.calls()),
    };
    let mut held = Vec::new();
    let mut reserve = |source: &mut Box<dyn RegionSource>, bytes| match source.reserve(bytes, 256) {
        Ok(grant) => Some(grant),
        Err(ReserveError::Declined) => None,
        Err(ReserveError::Failed(failure)) => {
            errors.push(failure.to_string());
            None
        }
    };
    for _ in 0..2 {
        held.extend([2, 4, 8].map(|mib| reserve(&mut source, mib * MIB)).into_iter().flatten());
        if held.len() > 1 {
            source.release(held.swap_remove(1));
        }
    }
    for grant in held.drain(..) {
        source.release(grant);
    }
    // Reports what the last releases had to say.
    held.extend(reserve(&mut source, MIB));
    let calls = stand_in.calls();
    drop(source);
    (errors, calls)
}

#[test]
fn every_call_of_a_source_fails_in_turn() {
    let stand_in = StandIn::new(2);
    stand_in.driver();
    let mine = stand_in.enter_context(1);
    for (kind, make) in KINDS {
        let before = stand_in.calls();
        assert_eq!(use_source(&stand_in, make).0, Vec::<String>::new());
        let calls = stand_in.calls() - before;
        let mut named = std::collections::BTreeSet::new();
        for (status, nth) in
            [UNKNOWN, OUT_OF_MEMORY].into_iter().flat_map(|status| (1..=calls).map(move |nth| (status, nth)))
        {
            let before = stand_in.calls();
            stand_in.fail_at(nth, status);
            let (errors, before_drop) = use_source(&stand_in, make);
            let call = stand_in.failed().expect("a call that was made");
            let place = format!("{kind}, call {nth}: {call} fails with {status}; errors: {errors:?}");
            stand_in.fail_at(0, 0);
            let left = Outstanding { contexts: 1, ..Outstanding::default() };
            assert_eq!(stand_in.outstanding(), left, "{place}");
            assert_eq!(stand_in.current_context(), mine, "{place}");
            // A failure in a destructor is not reported: of a source, or of the context of a query.
            let is_reported = before + nth <= before_drop && call != "cuDevicePrimaryCtxRelease_v2";
            if status == UNKNOWN && is_reported {
                let text = format!("{call} failed: CUDA_ERROR_UNKNOWN (999), unknown error");
                assert_eq!(errors, [text], "{place}");
            }
            named.insert(call);
        }
        let allocating = if kind == "plain" { "cuMemAlloc_v2" } else { "cuMemSetAccess" };
        assert!(named.contains(allocating) && named.contains("cuCtxPopCurrent_v2"), "{named:?}");
    }
}

#[test]
fn every_call_of_a_pool_fails_in_turn() {
    let stand_in = StandIn::new(1);
    let driver = stand_in.driver();
    for (kind, make) in KINDS {
        let play = || {
            let pool = Pool::new(make(&driver)?, Options::new(48 * MIB)).expect("options in range");
            let mut texts = Vec::new();
            for _ in 0..3 {
                let attempts = [MIB, 3 * MIB, 9 * MIB].map(|bytes| pool.allocate(bytes));
                for attempt in attempts {
                    match attempt {
                        Ok(allocation) => pool.free(allocation.address).expect("an allocation"),
                        Err(error) => texts.push(error.to_string()),
                    }
                }
                pool.check().expect("a pool in order");
                pool.trim().expect("a pool that can be used");
            }
            assert_eq!(pool.stats().expect("a pool that can be used").reserved, 0);
            Ok::<_, CudaError>(texts)
        };
        let before = stand_in.calls();
        assert_eq!(play().unwrap(), Vec::<String>::new());
        for nth in 1..=stand_in.calls() - before {
            stand_in.fail_at(nth, UNKNOWN);
            let texts = play().unwrap_or_else(|error| vec![error.to_string()]);
            let call = stand_in.failed().expect("a call that was made");
            stand_in.fail_at(0, 0);
            assert_eq!(
                stand_in.outstanding(),
                Outstanding::default(),
                "{kind}, call {nth}, {call}: {texts:?}"
            );
            let is_named = |text: &String| text.contains(&format!("{call} failed: CUDA_ERROR_UNKNOWN"));
            assert!(texts.iter().all(is_named) && texts.len() < 2, "{kind}, call {nth}, {call}: {texts:?}");
        }
    }
}

#[test]
fn a_driver_that_fails_for_good_does_not_stop_a_source_from_ending() {
    let stand_in = StandIn::new(1);
    for (_, make) in KINDS {
        let mut source = make(&stand_in.driver()).unwrap();
        let grant = source.reserve(2 * MIB, 256).unwrap();
        // As after an error of a kernel, every call of this context fails.
        let release: unsafe extern "C" fn(std::ffi::c_int) -> u32 =
            stand_in.function("cuDevicePrimaryCtxRelease_v2");
        // SAFETY: numbers only.
        assert_eq!(unsafe { release(0) }, 0);
        source.release(grant);
        let Err(ReserveError::Failed(failure)) = source.reserve(2 * MIB, 256) else {
            panic!("it cannot work")
        };
        assert!(failure.to_string().starts_with("cuCtxPushCurrent_v2 failed: CUDA_ERROR_INVALID_CONTEXT"));
        drop(source);
    }
}

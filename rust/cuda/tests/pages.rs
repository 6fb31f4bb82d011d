//! Memory that is mapped page by page: random programs, what the driver holds, and every call failing in turn.

use std::collections::BTreeSet;

use allotment::source::{Grant, PageSource, RegionSource, ReserveError};
use allotment_cuda::{CudaVirtualMemory, Driver};

#[path = "../../../tests/support/numbers.rs"]
#[allow(dead_code)]
mod numbers;
#[path = "../../../tests/support/page_programs.rs"]
#[allow(dead_code)]
mod page_programs;
mod support;

use page_programs::{Expected, PageProgram};
use support::{MIB, OUT_OF_MEMORY, Outstanding, StandIn, UNKNOWN, bytes_at};

const PAGE: u64 = 2 * MIB;
/// The distance of the bytes that are written and compared.
const SAMPLE: usize = 65_521;

fn pages(range: Grant, first: u64, count: u64) -> Grant {
    Grant { address: range.address + first * PAGE, bytes: count * PAGE }
}

#[test]
fn random_programs_of_pages() {
    for (seed, page_size) in [(1, PAGE), (2, PAGE), (3, 2 * PAGE), (4, 4 * PAGE)] {
        let stand_in = StandIn::new(1);
        let source = CudaVirtualMemory::new(&stand_in.driver(), 0).unwrap();
        let expected = Expected { has_content: true, moves: true, capacity: 64 * MIB };
        let mut program = PageProgram::new(source, page_size, expected, seed);
        for step in 0..400 {
            program.step(16);
            let outstanding = stand_in.outstanding();
            let held = program.account.bytes();
            assert_eq!((outstanding.bytes, outstanding.handles * page_size), (held, held));
            assert_eq!(outstanding.mappings, outstanding.handles, "no page is mapped twice");
            if step % 64 == 0 {
                program.check_stamps();
            }
        }
        assert!(program.moved > 100);
        program.end();
        drop(program);
        assert_eq!(stand_in.outstanding(), Outstanding::default());
    }
}

#[test]
fn pages_move_with_their_memory() {
    let stand_in = StandIn::new(1);
    let mut source = CudaVirtualMemory::new(&stand_in.driver(), 0).unwrap();
    let gauge = source.gauge().unwrap();
    let pool = source.pages().unwrap();
    assert_eq!((pool.granule(), pool.page_size()), (PAGE, PAGE));
    // Eight times the memory of the device.
    let range = pool.reserve_addresses(512 * MIB, PAGE).unwrap();
    let other = pool.reserve_addresses(16 * PAGE, 4 * PAGE).unwrap();
    assert!(other.address.is_multiple_of(4 * PAGE));
    assert_eq!(stand_in.outstanding().bytes, 0);
    pool.commit(pages(range, 0, 32)).unwrap();
    assert_eq!(gauge.headroom().maximum, 0);
    assert!(matches!(pool.commit(pages(range, 100, 1)), Err(ReserveError::Declined)));
    bytes_at(pages(range, 0, 32)).fill(7);
    pool.move_pages(pages(range, 4, 8), range.address + 200 * PAGE).unwrap();
    assert!(bytes_at(pages(range, 0, 4)).iter().all(|&byte| byte == 7));
    assert!(bytes_at(pages(range, 200, 8)).iter().all(|&byte| byte == 7), "the same memory");
    assert_eq!((stand_in.outstanding().bytes, stand_in.outstanding().mappings), (64 * MIB, 32));
    // Bytes in several mappings are read and written as one.
    let mut found = vec![0; 5 << 20];
    pool.write(range.address + 200 * PAGE + 1, &vec![9; found.len()]).unwrap();
    pool.read(range.address + 200 * PAGE + 1, &mut found).unwrap();
    assert!(found.iter().all(|&byte| byte == 9));
    let failure = pool.read(range.address + 4 * PAGE, &mut found).unwrap_err();
    assert!(failure.to_string().starts_with("cuMemcpyDtoH_v2 failed: CUDA_ERROR_INVALID_VALUE"), "{failure}");
    pool.decommit(pages(range, 202, 6)).unwrap();
    assert_eq!(gauge.headroom().maximum, 12 * MIB);
    // Regions and pages of one source.
    let region = source.reserve(4 * MIB, 256).unwrap();
    bytes_at(region).fill(1);
    source.release(region);
    drop((source, gauge));
    assert_eq!(stand_in.outstanding(), Outstanding::default(), "with pages that had memory");
}

#[test]
#[should_panic(expected = "is in no range of this source")]
fn pages_of_others_are_not_unmapped() {
    let stand_in = StandIn::new(1);
    let mut source = CudaVirtualMemory::new(&stand_in.driver(), 0).unwrap();
    let range = source.reserve_addresses(4 * PAGE, PAGE).unwrap();
    source.commit(range).unwrap();
    let _ = source.decommit(pages(range, 2, 3));
}

/// A source in use, and the errors so far.
struct Use<'a> {
    stand_in: &'a StandIn,
    source: CudaVirtualMemory,
    errors: Vec<String>,
    /// Spans that keep a byte, whatever fails.
    kept: Vec<(Grant, u8)>,
}

impl Use<'_> {
    fn call<T>(&mut self, call: impl FnMut(&mut dyn PageSource) -> Result<T, ReserveError>) -> T {
        self.call_and(call, |_| ())
    }

    /// Makes a call, and does what follows from its success. One that fails left everything as before, so that it
    /// succeeds when it is made again.
    fn call_and<T>(
        &mut self,
        mut call: impl FnMut(&mut dyn PageSource) -> Result<T, ReserveError>,
        then: impl Fn(&mut Vec<(Grant, u8)>),
    ) -> T {
        for _ in 0..4 {
            let result = call(&mut self.source);
            if result.is_ok() {
                then(&mut self.kept);
            }
            for &(span, byte) in &self.kept {
                let mut some = bytes_at(span).iter().step_by(SAMPLE);
                assert!(some.all(|&found| found == byte), "{span:?} after success: {}", result.is_ok());
            }
            match result {
                Ok(value) => return value,
                Err(ReserveError::Failed(failure)) => self.errors.push(failure.to_string()),
                Err(ReserveError::Declined) => self.errors.push(String::new()),
            }
        }
        panic!("it goes on to fail: {:?}", self.errors);
    }

    fn commit(&mut self, span: Grant, byte: u8) {
        self.call_and(
            |source| source.commit(span),
            |kept| {
                bytes_at(span).iter_mut().step_by(SAMPLE).for_each(|at| *at = byte);
                kept.push((span, byte));
            },
        );
    }

    fn decommit(&mut self, span: Grant) {
        self.kept.retain(|(kept, _)| *kept != span);
        self.call(|source| source.decommit(span).map_err(ReserveError::Failed));
    }

    fn move_pages(&mut self, from: Grant, to: u64) {
        self.call_and(
            |source| source.move_pages(from, to),
            |kept| {
                let (span, _) = kept.iter_mut().find(|(kept, _)| *kept == from).expect("pages in use");
                span.address = to;
            },
        );
    }
}

/// Uses pages in every way. Returns the errors, and the number of calls before the source was dropped.
fn use_pages(stand_in: &StandIn, driver: &Driver) -> (Vec<String>, u64) {
    let source = match CudaVirtualMemory::new(driver, 0) {
        Ok(source) => source,
        Err(error) => return (vec![error.to_string()], stand_in.calls()),
    };
    let mut user = Use { stand_in, source, errors: Vec::new(), kept: Vec::new() };
    let range = user.call(|source| source.reserve_addresses(64 * PAGE, PAGE));
    user.commit(pages(range, 0, 3), 1);
    user.commit(pages(range, 10, 2), 2);
    user.move_pages(pages(range, 0, 3), range.address + 20 * PAGE);
    user.move_pages(pages(range, 10, 2), range.address);
    user.decommit(pages(range, 20, 3));
    user.commit(pages(range, 3, 4), 3);
    user.move_pages(pages(range, 3, 4), range.address + 20 * PAGE);
    let mut found = [0; 64];
    user.call(|source| source.write(range.address, &[2; 64]).map_err(ReserveError::Failed));
    user.call(|source| source.read(range.address, &mut found).map_err(ReserveError::Failed));
    assert_eq!(found, [2; 64]);
    user.decommit(pages(range, 0, 2));
    // Reports what the last calls had to say.
    user.commit(pages(range, 0, 1), 4);
    assert_eq!(user.stand_in.outstanding().bytes, 5 * PAGE, "{:?}", user.errors);
    assert_eq!(user.stand_in.outstanding().mappings, 5, "{:?}", user.errors);
    user.decommit(pages(range, 0, 1));
    user.decommit(pages(range, 20, 4));
    user.source.release_addresses(range);
    let last = user.call(|source| source.reserve_addresses(PAGE, PAGE));
    user.commit(last, 5);
    let calls = stand_in.calls();
    drop(user.source);
    (user.errors, calls)
}

#[test]
fn every_call_fails_in_turn_and_leaves_all_as_before() {
    let stand_in = StandIn::new(2);
    let driver = stand_in.driver();
    let mine = stand_in.enter_context(1);
    let before = stand_in.calls();
    assert_eq!(use_pages(&stand_in, &driver).0, Vec::<String>::new());
    let calls = stand_in.calls() - before;
    let mut named = BTreeSet::new();
    for status in [UNKNOWN, OUT_OF_MEMORY] {
        for nth in 1..=calls {
            let before = stand_in.calls();
            stand_in.fail_at(nth, status);
            let (errors, before_drop) = use_pages(&stand_in, &driver);
            let call = stand_in.failed().expect("a call that was made");
            stand_in.fail_at(0, 0);
            let place = format!("call {nth}: {call} fails with {status}; errors: {errors:?}");
            let left = Outstanding { contexts: 1, ..Outstanding::default() };
            assert_eq!(stand_in.outstanding(), left, "{place}");
            assert_eq!(stand_in.current_context(), mine, "{place}");
            if status == UNKNOWN && before + nth <= before_drop {
                assert_eq!(
                    errors,
                    [format!("{call} failed: CUDA_ERROR_UNKNOWN (999), unknown error")],
                    "{place}"
                );
            }
            named.insert(call);
        }
    }
    let made =
        ["cuMemAddressReserve", "cuMemCreate", "cuMemMap", "cuMemSetAccess", "cuMemUnmap", "cuMemRelease"];
    let copies = ["cuMemcpyDtoH_v2", "cuMemcpyHtoD_v2", "cuCtxSynchronize", "cuMemAddressFree"];
    assert!(made.iter().chain(&copies).all(|&call| named.contains(call)), "{named:?}");
}

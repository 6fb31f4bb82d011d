//! Sources that decline, grant too little or too much, or fail; and the contents of refusals.

#[path = "refusal/agreement.rs"]
mod agreement;
#[path = "refusal/faults.rs"]
mod faults;
#[path = "refusal/nth.rs"]
mod nth;
#[allow(dead_code, reason = "the model test uses the rest")]
#[path = "../support/numbers.rs"]
mod numbers;
#[path = "refusal/panics.rs"]
mod panics;
#[path = "refusal/reports.rs"]
mod reports;
#[path = "refusal/sizes.rs"]
mod sizes;
#[allow(dead_code, reason = "the model test uses the rest")]
#[path = "../support/sources.rs"]
mod sources;
#[path = "refusal/verdicts.rs"]
mod verdicts;

use allotment::source::{Log, Recording};
use allotment::{AllocError, Allocation, Options, OutOfMemory, Pool, RegionSource};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// Creates a pool whose source is recorded.
fn recorded(source: impl RegionSource + 'static, options: Options) -> (Pool, Log) {
    let log = Log::default();
    let pool = Pool::new(Recording::new(source, log.clone()), options).expect("options in range");
    (pool, log)
}

/// Returns the figures of a refusal.
///
/// # Panics
/// If the result is not a refusal.
fn refused(result: Result<Allocation, AllocError>) -> OutOfMemory {
    match result {
        Err(AllocError::OutOfMemory(refused)) => *refused,
        other => panic!("not out of memory: {other:?}"),
    }
}

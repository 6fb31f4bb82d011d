//! Pools that hand out no more than the machine has: their refusals as errors of the core.

use std::sync::Arc;

use allotment::{AllocError, MAX_BYTES, OutOfMemory, Pool, Verdict};
use allotment_host::{Machine, MachineFull, Watch};
use pyo3::prelude::*;

use crate::registry;

/// Lets a request for the data of an array pass if the machine has memory for it, or if the pool is not watched.
///
/// # Errors
/// When the machine has no memory for the request.
#[inline]
pub(crate) fn admit_data(pool: &Pool, watch: Option<&Arc<Watch>>, bytes: u64) -> Result<(), AllocError> {
    let Some(watch) = watch else { return Ok(()) };
    watch.admit_data(bytes, registry::watches).map_err(|full| refusal(pool, bytes, full))
}

/// The same for an address, which may never be written to.
///
/// # Errors
/// When the machine has next to no memory left.
#[inline]
pub(crate) fn admit_address(pool: &Pool, watch: Option<&Arc<Watch>>, bytes: u64) -> Result<(), AllocError> {
    let Some(watch) = watch else { return Ok(()) };
    watch.admit_address(bytes, registry::watches).map_err(|full| refusal(pool, bytes, full))
}

#[cold]
fn refusal(pool: &Pool, requested: u64, full: MachineFull) -> AllocError {
    // The figures of the pool are those of a request that no pool serves. Its advice is about that one.
    match pool.explain(MAX_BYTES) {
        Ok(Some(refused)) => {
            let refused = OutOfMemory {
                requested,
                needed: requested,
                verdict: Verdict::Source,
                advice: Vec::new(),
                ..*refused
            };
            AllocError::SourceFailed { failure: Arc::new(full), refused: Box::new(refused) }
        }
        Ok(None) => unreachable!("no pool serves the largest request there is"),
        Err(error) => error,
    }
}

/// Bytes of memory that this machine has, under the limits of the control groups that the process is in; `None` where
/// the system does not tell.
#[pyfunction]
pub(crate) fn machine_memory() -> Option<u64> {
    Machine::now().map(|machine| machine.total)
}

//! Admission control of pools: refusals for lack of machine memory, as errors of the core.

use std::sync::Arc;

use allotment::bindings::PoolForBindings as _;
use allotment::{AllocError, MAX_BYTES, OutOfMemory, Pool, Verdict};
use allotment_host::{AdmissionControl, MachineMemory, MachineOutOfMemory};
use pyo3::prelude::*;

use crate::pool::registry;

/// Admits a request for array data if the machine has memory for it, or if the pool has no admission control.
///
/// # Errors
/// If the machine has no memory for the request.
#[inline]
pub(crate) fn admit_data(
    pool: &Pool,
    admission: Option<&Arc<AdmissionControl>>,
    bytes: u64,
) -> Result<(), AllocError> {
    let Some(admission) = admission else { return Ok(()) };
    admission.admit_data(bytes, registry::admission_controls).map_err(|full| refusal(pool, bytes, full))
}

/// Admits a request for an address that may never be written to.
///
/// # Errors
/// If the machine has almost no memory left.
#[inline]
pub(crate) fn admit_address(
    pool: &Pool,
    admission: Option<&Arc<AdmissionControl>>,
    bytes: u64,
) -> Result<(), AllocError> {
    let Some(admission) = admission else { return Ok(()) };
    admission.admit_address(bytes, registry::admission_controls).map_err(|full| refusal(pool, bytes, full))
}

#[cold]
fn refusal(pool: &Pool, requested: u64, full: MachineOutOfMemory) -> AllocError {
    if let Err(error) = pool.account_refusal(requested) {
        return error.into();
    }
    // The figures are those of a request that no pool serves; its advice does not apply and is dropped.
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

/// Return the bytes of memory that this machine has, within the limits of the process's control groups.
///
/// ``None`` where the system does not tell.
#[pyfunction]
pub(crate) fn machine_memory() -> Option<u64> {
    MachineMemory::now().map(|machine| machine.total)
}

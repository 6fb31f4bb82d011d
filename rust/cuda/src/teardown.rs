//! What is to be given back to the driver: what could not be is tried again.

use allotment::source::Grant;

use crate::context::DeviceContext;
use crate::driver::Driver;
use crate::error::CudaError;
use crate::sys::{self, Address, Handle};

/// One thing to give back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// Memory of `cuMemAlloc`.
    Free(Address),
    /// A mapped span.
    Unmap(Grant),
    /// Physical memory; it stays as long as it is mapped.
    Release(Handle),
    /// Reserved addresses, once nothing is mapped there.
    FreeAddresses(Grant),
}

/// The steps that are to be taken, in order, and a failure that no call has reported yet.
#[derive(Debug, Default)]
pub(crate) struct Teardown {
    pending: Vec<Step>,
    failure: Option<CudaError>,
}

impl Teardown {
    /// Adds a step.
    pub(crate) fn push(&mut self, step: Step) {
        self.pending.push(step);
    }

    /// Takes the steps; those that fail are kept for the next time, and the first failure for the next report.
    pub(crate) fn run(&mut self, context: &DeviceContext) {
        if self.pending.is_empty() {
            return;
        }
        let pending = &mut self.pending;
        let done = context.with(|driver| {
            let mut failure = None;
            if pending.iter().any(|step| matches!(step, Step::Unmap(_))) {
                // Unmapping does not wait for the device, which may still use the memory.
                driver.synchronize()?;
            }
            pending.retain(|&step| match take(driver, step) {
                Ok(()) => false,
                Err(error) => {
                    failure.get_or_insert(error);
                    true
                }
            });
            failure.map_or(Ok(()), Err)
        });
        match done {
            Ok(()) => {}
            // At the end of the process the driver may end first, with all memory.
            Err(CudaError::Call { code: sys::DEINITIALIZED, .. } | CudaError::Forked) => self.pending.clear(),
            Err(error) => self.fail_later(error),
        }
    }

    /// Keeps a failure of a call that has done its work for the next report.
    pub(crate) fn fail_later(&mut self, failure: CudaError) {
        self.failure = self.failure.take().or(Some(failure));
    }

    /// Returns whether the step has not been taken.
    pub(crate) fn is_pending(&self, step: Step) -> bool {
        self.pending.contains(&step)
    }

    /// Returns the failure that no call has reported yet.
    ///
    /// # Errors
    /// That failure, once.
    pub(crate) fn report(&mut self) -> Result<(), CudaError> {
        self.failure.take().map_or(Ok(()), Err)
    }
}

fn take(driver: &Driver, step: Step) -> Result<(), CudaError> {
    let length = |span: Grant| usize::try_from(span.bytes).unwrap_or(usize::MAX);
    match (step, driver.virtual_memory()) {
        (Step::Free(address), _) => driver.free(address),
        (Step::Unmap(span), Some(memory)) => memory.unmap(span.address, length(span)),
        (Step::Release(handle), Some(memory)) => memory.release(handle),
        (Step::FreeAddresses(span), Some(memory)) => memory.free_addresses(span.address, length(span)),
        // Without the functions there is nothing of these kinds.
        (_, None) => Ok(()),
    }
}

//! Copies between the host and a device as methods.

use super::Driver;
use crate::error::CudaError;
use crate::sys::{Address, Functions};

impl Driver {
    /// Copies device memory, after all work that is queued in the current context.
    pub(crate) fn copy_to_host(&self, from: Address, into: &mut [u8]) -> Result<(), CudaError> {
        // Streams that do not wait for the default one may still write.
        self.synchronize()?;
        let Functions { copy_to_host, .. } = self.0.functions;
        // SAFETY: the caller owns the device memory; the pointer is to a buffer of this length.
        self.call("cuMemcpyDtoH_v2", || unsafe { copy_to_host(into.as_mut_ptr().cast(), from, into.len()) })
    }

    /// Copies to device memory, and waits for the copy.
    pub(crate) fn copy_from_host(&self, to: Address, from: &[u8]) -> Result<(), CudaError> {
        let Functions { copy_from_host, .. } = self.0.functions;
        // SAFETY: as above.
        self.call("cuMemcpyHtoD_v2", || unsafe { copy_from_host(to, from.as_ptr().cast(), from.len()) })?;
        // The call may return before the last bytes are there.
        self.synchronize()
    }
}

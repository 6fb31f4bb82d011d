//! The primary context of a device, which CuPy, PyTorch and the CUDA runtime of the process share.

use std::sync::{Mutex, PoisonError};

use crate::driver::Driver;
use crate::error::CudaError;
use crate::sys::{Context, Device};

/// A device's primary context: retained at its first use, released at the end.
#[derive(Debug)]
pub(crate) struct DeviceContext {
    driver: Driver,
    pub(crate) device: Device,
    pub(crate) ordinal: u32,
    /// `None` until it is used: a context takes hundreds of MiB of the device.
    retained: Mutex<Option<Context>>,
}

impl DeviceContext {
    /// Finds the device. Makes no context.
    pub(crate) fn new(driver: &Driver, ordinal: u32) -> Result<Self, CudaError> {
        let device = driver.find(ordinal)?;
        Ok(Self { driver: driver.clone(), device, ordinal, retained: Mutex::new(None) })
    }

    /// Returns an error in a forked child.
    pub(crate) fn check_process(&self) -> Result<(), CudaError> {
        self.driver.check_process()
    }

    /// Calls `work` with the context current to this thread; afterwards the caller's is current again.
    ///
    /// # Errors
    /// If the driver fails: also when `work` succeeded and the caller's context could not be restored.
    pub(crate) fn with<T>(&self, work: impl FnOnce(&Driver) -> Result<T, CudaError>) -> Result<T, CudaError> {
        let context = self.retain()?;
        self.driver.push_context(context)?;
        let result = work(&self.driver);
        let popped = self.driver.pop_context();
        if popped.is_err() && self.driver.current_context() == Ok(context) {
            // The call failed and did nothing.
            let _ = self.driver.pop_context();
        }
        result.and_then(|value| popped.map(|()| value))
    }

    fn retain(&self) -> Result<Context, CudaError> {
        // Before the lock: in a forked child it may be held for ever.
        self.driver.check_process()?;
        let mut retained = self.retained.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(context) = *retained {
            return Ok(context);
        }
        let context = self.driver.retain_context(self.device)?;
        Ok(*retained.insert(context))
    }
}

impl Drop for DeviceContext {
    fn drop(&mut self) {
        let retained = self.retained.get_mut().unwrap_or_else(PoisonError::into_inner);
        // A forked child owns nothing, and its calls are refused. A second try is for a failure that passes.
        if retained.take().is_some() && self.driver.release_context(self.device).is_err() {
            let _ = self.driver.release_context(self.device);
        }
    }
}

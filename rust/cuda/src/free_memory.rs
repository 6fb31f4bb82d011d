//! How much memory of a device is free, for the pools over it.

use std::fmt;
use std::sync::Arc;

use allotment::source::{Gauge, Headroom};

use crate::context::DeviceContext;
use crate::driver::Driver;

/// The gauge: more than the driver calls free is refused for sure, and nothing is granted for sure, as other processes
/// and pools take from the same memory.
pub(crate) struct FreeMemory(Arc<DeviceContext>);

impl FreeMemory {
    pub(crate) fn new(context: &Arc<DeviceContext>) -> Self {
        Self(Arc::clone(context))
    }
}

impl Gauge for FreeMemory {
    fn headroom(&self) -> Headroom {
        match self.0.with(Driver::current_memory_info) {
            Ok((free, _)) => Headroom { maximum: free, ..Headroom::UNKNOWN },
            Err(_) => Headroom::UNKNOWN,
        }
    }
}

impl fmt::Debug for FreeMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FreeMemory(device {})", self.0.ordinal)
    }
}

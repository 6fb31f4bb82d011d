//! CUDA device memory as a region source.
//!
//! ```text
//! sys      types, constants, table of functions
//! driver   each function as a method that returns a Result
//! device, context, teardown          devices; whose memory it is; what is still to be given back
//! plain, virtual_memory, pages       the two sources; memory that is mapped page by page
//! addresses, free_memory             reserved addresses; the gauge
//! stream_order                       which stream waits for which, for memory that streams share
//! ```

mod addresses;
mod context;
mod device;
mod driver;
mod error;
mod free_memory;
mod pages;
mod plain;
mod stream_order;
mod sys;
mod teardown;
mod virtual_memory;

pub use device::DeviceDetails;
pub use driver::{DRIVER_LIBRARY, Driver};
pub use error::CudaError;
pub use plain::CudaMemory;
pub use stream_order::StreamOrder;
pub use virtual_memory::CudaVirtualMemory;

/// The example of the README, compiled.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

//! Memory of OpenCL as regions: buffers, with parts of them as blocks, and memory that the host and the devices share.
//!
//! ```text
//! sys       types, constants, table of functions
//! library   the opened library: each function as a method that returns a Result
//! handles   contexts and queues that are retained
//! buffer    buffers, sub-buffers, buffers over host memory, and what is called at their end
//! regions   the source of buffers
//! shared_memory   a source of memory that the host and the devices share
//! order     which queue waits for which, for memory that queues share
//! ```

mod buffer;
mod error;
mod handles;
mod library;
mod order;
mod regions;
mod shared_memory;
mod sys;
#[cfg(test)]
mod tests;

pub use buffer::Buffer;
pub use error::OpenClError;
pub use handles::{Context, Queue};
pub use library::OpenCl;
pub use order::{QueueOrder, QueueUse};
pub use regions::Regions;
pub use shared_memory::SharedMemory;

/// The example of the README, compiled.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

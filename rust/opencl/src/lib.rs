//! Buffers of OpenCL as regions, and parts of them as blocks.
//!
//! ```text
//! sys       types, constants, table of functions
//! library   the opened library: each function as a method that returns a Result
//! handles   contexts and queues that are retained
//! buffer    buffers, sub-buffers, buffers over host memory, and what is called at their end
//! regions   the source
//! order     which queue waits for which, for memory that queues share
//! ```

mod buffer;
mod error;
mod handles;
mod library;
mod order;
mod regions;
mod sys;
#[cfg(test)]
mod tests;

pub use buffer::Buffer;
pub use error::OpenClError;
pub use handles::{Context, Queue};
pub use library::OpenCl;
pub use order::{QueueOrder, QueueUse};
pub use regions::Regions;

/// The example of the README, compiled.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

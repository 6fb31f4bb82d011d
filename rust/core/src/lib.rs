#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod allocator;
mod bins;
mod check;
mod chunk;
mod error;
pub mod fork;
mod free_list;
mod growth;
mod live;
mod pool;
mod region;
pub mod replay;
mod report;
pub mod source;
mod stats;
#[cfg(test)]
mod strategies;
mod trie;
mod units;

pub use allocator::Allocation;
pub use check::Violation;
pub use error::{AllocError, FreeError, GrantFault, OptionsError, OutOfMemory, Unusable, Verdict};
pub use pool::{MAX_WAIT, Options, Patience, Pool, Refused};
pub use report::{ChunkSnapshot, RegionSnapshot, Snapshot};
pub use source::{Grant, RegionSource, SourceFailure};
pub use stats::Stats;
pub use units::{Bytes, GRANULE, MAX_BYTES, SizeError, parse_size};

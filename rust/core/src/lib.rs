#![doc = include_str!("../README.md")]
#![cfg_attr(not(feature = "std"), no_std)]
#![cfg_attr(not(feature = "std"), allow(dead_code, reason = "what only pools use"))]
#![deny(unsafe_code)]

extern crate alloc;

mod advice;
mod allocator;
mod bins;
mod branch_hint;
mod check;
mod chunk;
mod decisions;
mod details;
mod error;
#[cfg(feature = "std")]
pub mod fork;
mod free_list;
mod free_target;
mod growth;
pub mod guard;
mod history;
#[cfg(feature = "std")]
mod kept;
mod live;
mod map;
mod options;
mod out_of_memory;
mod owner;
mod policy;
#[cfg(feature = "std")]
mod pool;
mod region;
#[cfg(feature = "std")]
pub mod replay;
mod report;
mod request;
#[cfg(feature = "std")]
mod rerun;
pub mod source;
mod stats;
mod tables;
#[cfg(test)]
mod test_strategies;
mod trie;
#[expect(unsafe_code, reason = "the one place for it, which says why")]
mod unchecked;
mod units;

pub use advice::{Action, Advice, When};
pub use allocator::Allocator;
pub use check::Violation;
#[cfg(feature = "decisions")]
#[doc(hidden)]
pub use decisions::{Decided, Decision, Maker};
pub use details::{Details, OwnerGroup, SizeGroup, Splitter};
pub use error::{AllocError, FreeError, GrantFault, LimitError, OptionsError, ResizeError, Unusable};
pub use guard::{Damage, DamagedPlace, Leaks, MemoryGuard};
#[cfg(feature = "std")]
pub use kept::KeptRegion;
pub use options::{MAX_WAIT, Options};
pub use out_of_memory::{OutOfMemory, Verdict};
pub use owner::{ScopeLimitReached, ScopeStats};
pub use policy::{Policy, PolicyError};
#[cfg(feature = "std")]
pub use pool::{
    AllocationAttempt, Block, EventKind, EventLog, Keep, MemoryWait, Pool, PoolEvent, Scope, Siblings,
    is_tagged, set_tag,
};
pub use region::RegionId;
pub use report::{ChunkSnapshot, RegionSnapshot, Snapshot};
pub use request::{MAX_ALIGNMENT, Request};
pub use source::{Gauge, Grant, Headroom, RegionSource, SourceFailure};
pub use stats::Stats;
pub use tables::Allocation;
pub use units::{Bytes, GRANULE, MAX_BYTES, SizeError, parse_size};

/// The examples of the manual's page, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/embed-in-rust.md")]
mod manual {}

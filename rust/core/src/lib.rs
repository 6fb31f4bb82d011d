#![doc = include_str!("../README.md")]
#![cfg_attr(not(feature = "std"), no_std)]
#![cfg_attr(not(feature = "std"), allow(dead_code, reason = "what only pools use"))]
#![deny(unsafe_code)]

extern crate alloc;

mod allocator;
#[cfg(feature = "std")]
#[doc(hidden)]
pub mod bindings;
mod bins;
mod chunk;
mod error;
#[cfg(feature = "std")]
pub mod fork;
pub mod guard;
mod options;
pub mod plan;
mod policy;
#[cfg(feature = "std")]
mod pool;
#[cfg(feature = "std")]
pub mod replay;
mod report;
mod request;
pub mod source;
mod stats;
mod tables;
#[cfg(test)]
mod test_strategies;
mod units;

pub use allocator::Allocator;
pub use chunk::region::RegionId;
pub use error::{
    AllocError, FreeError, GrantFault, LimitError, OptionsError, ResizeError, TrimError, Unusable,
};
pub use guard::{Damage, DamagedPlace, Leaks, MemoryGuard};
pub use options::{MAX_WAIT, Options};
pub use policy::{Policy, PolicyError};
#[cfg(feature = "std")]
pub use pool::{
    AllocationAttempt, Block, EventKind, EventLog, Keep, MemoryWait, PauseError, PausedContent, Pool,
    PoolEvent, RecentEvents, Scope, Siblings, set_tag,
};
pub use report::advice::{Action, Advice, When};
pub use report::details::{Details, OwnerGroup, SizeGroup, Splitter};
#[cfg(feature = "std")]
pub use report::kept::KeptRegion;
pub use report::out_of_memory::{OutOfMemory, Verdict};
pub use report::snapshot::{ChunkSnapshot, RegionSnapshot, Snapshot};
pub use request::{MAX_ALIGNMENT, Request};
pub use source::{Gauge, Grant, Headroom, RegionSource, SourceFailure};
pub use stats::Stats;
pub use tables::Allocation;
pub use tables::check::Violation;
#[cfg(feature = "decisions")]
#[doc(hidden)]
pub use tables::decisions::{Decided, Decision, Maker};
pub use tables::owner::{ScopeLimitReached, ScopeStats};
pub use units::{Bytes, GRANULE, MAX_BYTES, SizeError, parse_size};

/// The map of the crate: a hash table where the standard library is, else a tree.
mod map {
    #[cfg(not(feature = "std"))]
    pub(crate) use alloc::collections::BTreeMap as Map;
    #[cfg(feature = "std")]
    pub(crate) use std::collections::HashMap as Map;
}

/// The examples of the manual's page, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/embed-in-rust.md")]
mod manual {}

//! One call of one thread: when it began and ended, what it asked for, and what it returned.

use std::sync::Arc;

use allotment::{Allocation, LimitError, OutOfMemory, ScopeStats, Snapshot, Stats};

/// A call that has returned.
#[derive(Debug)]
pub(crate) struct Event {
    /// The time before the call.
    pub(crate) invoked: u64,
    /// The time after the call.
    pub(crate) returned: u64,
    /// The number of decisions that the thread had run before, of all pools.
    pub(crate) first: u64,
    /// The number of decisions that the thread ran meanwhile, deferred ones of other threads included.
    pub(crate) made: u64,
    pub(crate) call: Call,
}

/// A call and its result.
#[derive(Debug)]
pub(crate) enum Call {
    Allocate {
        bytes: u64,
        alignment: u64,
        way: AllocateWay,
        tag: Tag,
        answer: Answer,
    },
    Free {
        address: u64,
        id: u64,
        way: FreeWay,
        answer: Freed,
    },
    Resize {
        address: u64,
        bytes: u64,
        size: Option<u64>,
    },
    Pin {
        id: u64,
        done: bool,
    },
    Unpin {
        id: u64,
    },
    Trim {
        released: u64,
    },
    SetLimit {
        limit: u64,
        trim: bool,
        released: Result<u64, LimitError>,
    },
    SetGrowth {
        growth: bool,
    },
    ResetPeaks,
    Close,
    Stats(Box<Stats>),
    Snapshot(Box<Snapshot>),
    CanAllocate {
        bytes: u64,
        tag: Tag,
        can: bool,
    },
    Limit(u64),
    Activity(u64),
    OpenScope {
        key: Key,
        shared: bool,
        limit: Option<u64>,
    },
    /// With the final figures, if the scope was open.
    CloseScope {
        key: Key,
        figures: Option<Box<ScopeStats>>,
    },
    CloseScopeDeferred {
        key: Key,
    },
    LimitScope {
        key: Key,
        limit: Option<u64>,
        done: bool,
    },
    ScopeStats {
        key: Key,
        figures: Option<Box<ScopeStats>>,
    },
}

/// The tag of a thread, if it has one.
pub(crate) type Tag = Option<Arc<str>>;

/// Identifies a scope of a history.
pub(crate) type Key = u64;

/// The function that allocates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AllocateWay {
    Plain,
    /// With an alignment, and a function that could ask for a retry.
    Aligned,
    /// Without growth, and only if no other thread holds the lock.
    Try,
    /// Only `free_held` frees it.
    Held,
}

/// The result of an allocation.
#[derive(Debug)]
pub(crate) enum Answer {
    Served(Allocation),
    Refused(Box<OutOfMemory>),
    /// Not served by [`AllocateWay::Try`].
    NotNow,
    Closed,
}

/// The function that frees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FreeWay {
    ByAddress,
    ByAllocation,
    TryByAddress,
    TryByAllocation,
    Deferred,
    Held,
}

/// The result of a free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Freed {
    Done,
    /// Another thread held the lock.
    NotNow,
    NotAllocated,
    Pinned,
    /// A deferred free returns nothing.
    Unknown,
}

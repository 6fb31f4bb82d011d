//! Forked processes: a pool's lock may be held for ever by a thread that the child does not have.

use std::sync::atomic::{AtomicU64, Ordering};

static GENERATION: AtomicU64 = AtomicU64::new(0);

/// Tells every pool made so far that this process is a forked child.
///
/// Call it in the child, before it uses a pool. From then on those pools refuse every call with
/// [`Unusable::Forked`](crate::Unusable::Forked) and give nothing back; pools made afterwards work. Memory
/// that the parent had written stays readable.
pub fn entered_child() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
    // The child's one thread owns none of their locks, so it does not get in without looking.
    allotment_sync::renumber_thread();
}

/// How many forks lie between the first process and this one, as far as it was told.
pub(crate) fn generation() -> u64 {
    GENERATION.load(Ordering::Relaxed)
}

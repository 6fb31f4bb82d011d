//! Frees that could not take the lock, left for whoever takes it next.

use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// An allocation to free: its address and its number.
pub(super) type Late = (u64, NonZeroU64);

/// The queue. Its own lock is held for a push or a swap and nothing else.
#[derive(Debug, Default)]
pub(super) struct LateFrees {
    queue: Mutex<Vec<Late>>,
    /// Set iff the queue may hold something, so that the common case costs one load.
    some: AtomicBool,
}

impl LateFrees {
    pub(super) fn push(&self, late: Late) {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner).push(late);
        self.some.store(true, Ordering::Release);
    }

    pub(super) fn is_empty(&self) -> bool {
        !self.some.load(Ordering::Acquire)
    }

    pub(super) fn take(&self) -> Vec<Late> {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        self.some.store(false, Ordering::Release);
        std::mem::take(&mut queue)
    }
}

//! A queue of operations that a thread could not run because the lock was taken.

use std::sync::PoisonError;

use crate::primitives::{AtomicU8, Mutex, MutexGuard, Ordering, heavy, init_barrier, light, light_or_full};

/// Flag: the queue may contain items.
const HAS_ITEMS: u8 = 1;
/// Flag: the fast path is closed.
const SLOW_PATH: u8 = 2;
/// Flag: operations on the fast path are observed.
const OBSERVED: u8 = 4;

/// Stores items for the next thread that takes the lock, and a flag that closes the fast path.
///
/// The queue's own lock is held for one push or one swap. Protocol: a thread that fails to take the main lock pushes
/// its item and tries the main lock once more. A thread that releases the main lock checks
/// [`DeferredQueue::is_empty`] afterwards. At least one of the two sees the item. The flag
/// [`DeferredQueue::set_slow_path`] shares one word with the item flag, so that the fast path checks both with one
/// load.
#[derive(Debug)]
pub struct DeferredQueue<T> {
    items: Mutex<Vec<T>>,
    flags: AtomicU8,
}

impl<T> DeferredQueue<T> {
    /// Creates an empty queue.
    #[must_use]
    pub fn new() -> Self {
        init_barrier();
        Self { items: Mutex::new(Vec::new()), flags: AtomicU8::new(0) }
    }

    /// Adds an item. The caller then tries to take the main lock once more.
    pub fn push(&self, item: T) {
        let mut items = self.items();
        items.push(item);
        self.flags.fetch_or(HAS_ITEMS, Ordering::Release);
        drop(items);
        heavy();
    }

    /// Returns whether the queue is empty, after the caller has released the main lock.
    ///
    /// Sees every item of a thread that failed to take the main lock before that release.
    #[inline]
    pub fn is_empty(&self) -> bool {
        light_or_full();
        self.has_no_items()
    }

    /// Does the same as [`DeferredQueue::is_empty`] for a thread that released the main lock as its biased owner.
    ///
    /// A compiler barrier is enough here: a lock has an owner only where the light barrier suffices.
    #[inline]
    pub fn is_empty_after_owner_unlock(&self) -> bool {
        light();
        self.has_no_items()
    }

    /// Returns whether the queue is empty and the fast path is open and not observed. The answer may be stale.
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.flags.load(Ordering::Relaxed) == 0
    }

    /// Returns whether the queue is empty and the fast path is open for operations that are observed. The answer may be
    /// stale.
    #[inline]
    pub fn is_idle_and_observed(&self) -> bool {
        self.flags.load(Ordering::Relaxed) == OBSERVED
    }

    /// Removes all items and passes each of them to `run`. The caller holds the main lock.
    ///
    /// The queue counts as empty only after that: a thread that works without the main lock while the queue is empty
    /// comes after all of them.
    pub fn run_all(&self, run: impl FnMut(T)) {
        let taken = std::mem::take(&mut *self.items());
        taken.into_iter().for_each(run);
        let items = self.items();
        if items.is_empty() {
            self.flags.fetch_and(!HAS_ITEMS, Ordering::Release);
        }
    }

    /// Closes the fast path, or opens it.
    pub fn set_slow_path(&self, requested: bool) {
        self.set(SLOW_PATH, requested);
    }

    /// Has operations on the fast path observed from now on, or not any more.
    pub fn set_observed(&self, requested: bool) {
        self.set(OBSERVED, requested);
    }

    fn set(&self, flag: u8, to: bool) {
        if to {
            self.flags.fetch_or(flag, Ordering::Relaxed);
        } else {
            self.flags.fetch_and(!flag, Ordering::Relaxed);
        }
    }

    #[inline]
    fn has_no_items(&self) -> bool {
        self.flags.load(Ordering::Acquire) & HAS_ITEMS == 0
    }

    fn items(&self) -> MutexGuard<'_, Vec<T>> {
        // A panic leaves a push complete or not done, so poisoning is ignored.
        self.items.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Default for DeferredQueue<T> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::DeferredQueue;

    #[test]
    fn the_queue_counts_as_empty_only_after_its_items_have_run() {
        let queue = DeferredQueue::new();
        queue.push(1);
        queue.push(2);
        let mut ran = Vec::new();
        queue.run_all(|item| {
            assert!(!queue.is_idle() && !queue.is_empty());
            ran.push(item);
            if item == 2 {
                queue.push(3);
            }
        });
        assert_eq!((ran, queue.is_empty()), (vec![1, 2], false));
        queue.run_all(|item| assert_eq!(item, 3));
        assert!(queue.is_idle() && queue.is_empty());
    }
}

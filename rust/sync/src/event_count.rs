//! An event count: threads wait for a change that another thread announces, and miss no announcement.

use std::sync::PoisonError;
use std::time::Duration;

use crate::primitives::{Condvar, Mutex, MutexGuard};

/// Blocks threads until another thread calls [`EventCount::notify_all`].
///
/// A waiter takes a ticket, checks its condition, and waits with that ticket. A notification between ticket and wait
/// ends the wait at once.
#[derive(Debug)]
pub struct EventCount {
    count: Mutex<u64>,
    changed: Condvar,
}

impl EventCount {
    /// Creates an event count without notifications.
    #[must_use]
    pub fn new() -> Self {
        Self { count: Mutex::new(0), changed: Condvar::new() }
    }

    /// Returns the number of notifications so far. Call it before checking the condition.
    pub fn ticket(&self) -> u64 {
        *self.lock()
    }

    /// Wakes all waiting threads and invalidates all earlier tickets.
    pub fn notify_all(&self) {
        *self.lock() += 1;
        self.changed.notify_all();
    }

    /// Blocks until a notification after `ticket`, until the timeout, or until a spurious wakeup.
    pub fn wait_timeout(&self, ticket: u64, timeout: Duration) {
        let count = self.lock();
        if *count == ticket {
            drop(self.changed.wait_timeout(count, timeout));
        }
    }

    fn lock(&self) -> MutexGuard<'_, u64> {
        // A panic cannot leave an integer half written, so poisoning is ignored.
        self.count.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for EventCount {
    fn default() -> Self {
        Self::new()
    }
}

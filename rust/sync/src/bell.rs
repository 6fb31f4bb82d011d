//! A bell: whoever waits for something that others do sleeps until it rings.

use std::sync::PoisonError;
use std::time::Duration;

use crate::primitives::{Condvar, Mutex, MutexGuard};

/// Wakes sleepers, and lets nobody sleep through a ring that came after [`Bell::rings`].
#[derive(Debug)]
pub struct Bell {
    rings: Mutex<u64>,
    rung: Condvar,
}

impl Bell {
    /// A bell that has never rung.
    #[must_use]
    pub fn new() -> Self {
        Self { rings: Mutex::new(0), rung: Condvar::new() }
    }

    /// How often it has rung. Ask before looking whether there is anything to wait for.
    pub fn rings(&self) -> u64 {
        *self.count()
    }

    /// Wakes everybody.
    pub fn ring(&self) {
        *self.count() += 1;
        self.rung.notify_all();
    }

    /// Sleeps until it has rung more than `heard` times, or for `nap`, or less.
    pub fn sleep(&self, heard: u64, nap: Duration) {
        let rings = self.count();
        if *rings == heard {
            drop(self.rung.wait_timeout(rings, nap));
        }
    }

    fn count(&self) -> MutexGuard<'_, u64> {
        // A number is never half written.
        self.rings.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Bell {
    fn default() -> Self {
        Self::new()
    }
}

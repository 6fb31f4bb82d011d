//! Trimming a pool that nobody uses.

use std::io;
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use super::Pool;
use crate::error::Unusable;

impl Pool {
    /// From now on, hands back the wholly free regions whenever the pool was not used for `after`, or somewhat longer.
    ///
    /// A thread of its own looks, so the source must be one that any thread may call at any time. It ends with the
    /// pool; in a forked child there is none. `before` is called first: for who keeps back memory that nobody uses.
    ///
    /// # Errors
    /// When the system has no thread left.
    pub fn trim_when_idle(
        self: &Arc<Self>,
        after: Duration,
        before: impl Fn() + Send + 'static,
    ) -> io::Result<()> {
        let pool = Arc::downgrade(self);
        let look = move || look(&pool, after, &before);
        thread::Builder::new().name("allotment-idle".to_owned()).spawn(look).map(drop)
    }

    /// Counts allocations and frees so far.
    ///
    /// # Errors
    /// In a forked child.
    pub fn activity(&self) -> Result<u64, Unusable> {
        self.with_state(|state| state.activity())
    }
}

fn look(pool: &Weak<Pool>, after: Duration, before: &impl Fn()) {
    let mut last = None;
    let mut trimmed = false;
    loop {
        thread::sleep(after);
        let Some(pool) = pool.upgrade() else { return };
        let Ok(activity) = pool.activity() else { return };
        if last.replace(activity) != Some(activity) {
            trimmed = false;
        } else if !trimmed {
            before();
            // Only once for each time it falls idle: what was kept back counts as use.
            last = pool.activity().ok();
            trimmed = pool.trim().is_ok();
        }
    }
}

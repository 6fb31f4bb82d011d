//! Waiting for memory: a refused request may sleep until another thread frees.

use std::time::{Duration, Instant};

use super::Pool;
use crate::error::Unusable;
use crate::report::out_of_memory::{OutOfMemory, Verdict};

/// The longest sleep of a waiting thread: neither a deferred free nor a signal wakes it.
const MAX_SLEEP: Duration = Duration::from_millis(20);

/// A failed attempt that may be retried: see [`Pool::allocate_with_retry`].
#[derive(Debug, Clone)]
pub struct AllocationAttempt {
    /// The figures of the refusal.
    pub out_of_memory: Box<OutOfMemory>,
    /// The retry counter at the refusal; a higher one is a reason to retry.
    pub(super) progress: u64,
    /// The most bytes that the source may have granted at that moment; `None` if the request does not wait.
    pub(super) possible: Option<u64>,
}

impl AllocationAttempt {
    /// Returns whether no free can let the request succeed.
    #[must_use]
    pub fn cannot_succeed(&self) -> bool {
        let OutOfMemory { requested, verdict, scope_limit, .. } = &*self.out_of_memory;
        // A chunk may hold an aligned piece without padding.
        (*verdict == Verdict::Limit && !self.out_of_memory.fits_without_padding(0))
            || scope_limit.as_ref().is_some_and(|scope_limit| *requested > scope_limit.limit)
    }
}

/// The remaining wait of one request, according to the pool's options; for [`Pool::allocate_with_retry`].
#[derive(Debug)]
pub struct MemoryWait<'a> {
    pool: &'a Pool,
    /// Set at the first refusal, so that requests without a wait never read the clock.
    deadline: Option<Instant>,
    expired: bool,
}

impl MemoryWait<'_> {
    /// Sleeps until something is freed after the refusal; returns whether to retry.
    ///
    /// Returns true once more at the deadline, as memory of the source may have become free. Returns false early if
    /// `interrupted` returns true.
    pub fn should_retry(
        &mut self,
        refused: &AllocationAttempt,
        mut interrupted: impl FnMut() -> bool,
    ) -> bool {
        let wait = self.pool.options.wait;
        if wait.is_zero() || self.expired || refused.cannot_succeed() {
            return false;
        }
        let deadline = *self.deadline.get_or_insert_with(|| Instant::now() + wait);
        while let Some(left) = deadline.checked_duration_since(Instant::now()).filter(|d| !d.is_zero()) {
            if interrupted() {
                return false;
            }
            match self.pool.sleep(refused, left.min(MAX_SLEEP)) {
                Ok(false) => {}
                Ok(true) => return true,
                Err(_) => return false,
            }
        }
        self.expired = true;
        true
    }

    /// Returns whether the request has waited all of its time.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.expired
    }
}

impl Pool {
    /// Returns the wait of one request.
    #[must_use]
    pub fn memory_wait(&self) -> MemoryWait<'_> {
        MemoryWait { pool: self, deadline: None, expired: false }
    }

    /// Returns whether anything was freed since the refusal.
    ///
    /// # Errors
    /// In a forked child.
    pub fn freed_since(&self, refused: &AllocationAttempt) -> Result<bool, Unusable> {
        self.with_settled_state(|state| state.progress() != refused.progress)
    }

    /// Sleeps until a free, for at most `timeout`; returns whether there is a reason to retry.
    fn sleep(&self, refused: &AllocationAttempt, timeout: Duration) -> Result<bool, Unusable> {
        let mut state = self.lock_settled_state()?;
        if state.progress() != refused.progress || state.is_closed() {
            return Ok(true);
        }
        // Nothing is lent before the lock is released, and afterwards every free takes it.
        self.update_slow_path(&mut state, |slow_path| slow_path.waiting += 1);
        let ticket = self.freed.ticket();
        drop(state);
        self.drain_deferred();
        self.freed.wait_timeout(ticket, timeout);
        self.update_slow_path(&mut *self.lock_state()?, |slow_path| slow_path.waiting -= 1);
        // Memory that a sibling pool releases does not wake this thread.
        Ok(refused.possible.is_some_and(|before| before != self.possible_bytes()))
    }
}

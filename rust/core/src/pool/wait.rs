//! Waiting for memory: a refused request may sleep until another thread frees.
//!
//! Waiting requests have an order. Memory that is freed is **offered** to each of them that it is enough for: a request
//! that comes later lets those go first, as the thread that frees would otherwise take the memory again before another
//! thread wakes. It waits for no free meanwhile, and for no longer than [`MAX_SLEEP`]: what is offered and not taken is
//! for all.
//!
//! ```text
//! allocate ─ is memory offered to an older request? ─ no ─→ attempt ─ refused ─→ waits, as the youngest
//!              └ yes: sleep until that was served or refused again ─┘     ↑            │ a free: memory is offered
//!                                                                         └────────────┘
//! ```

use std::time::{Duration, Instant};

use super::Pool;
use super::state::State;
use crate::error::Unusable;
use crate::report::out_of_memory::{OutOfMemory, Verdict};
use crate::tables::ChunkRequest;

/// The longest sleep of a waiting thread: neither a deferred free nor a signal wakes it. And the longest that a request
/// lets others go first.
// Loom's clock does not advance.
const MAX_SLEEP: Duration = Duration::from_millis(if cfg!(loom) { 3_600_000 } else { 20 });

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

/// The requests of a pool that wait for a free, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    requests: Vec<WaitingRequest>,
    /// The number of the next one.
    next: u64,
}

/// A request that waits.
#[derive(Debug)]
struct WaitingRequest {
    /// A request that waits for longer has a smaller number.
    number: u64,
    /// What memory serves it; `None` if it is not memory that it lacks.
    lacking: Option<ChunkRequest>,
    /// The retry counter when it was refused last.
    progress: u64,
    /// Whether another request has waited for it in vain.
    passed: bool,
}

impl Waiting {
    pub(super) fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// Adds a refused request, or records that it was refused again; returns its number.
    fn note(&mut self, number: Option<u64>, refused: &AllocationAttempt) -> u64 {
        let out_of_memory = &refused.out_of_memory;
        let number = number.unwrap_or(self.next);
        let noted = WaitingRequest {
            number,
            lacking: (out_of_memory.verdict != Verdict::Scope).then(|| out_of_memory.request()),
            progress: refused.progress,
            passed: false,
        };
        if let Some(request) = self.requests.iter_mut().find(|request| request.number == number) {
            *request = noted;
        } else {
            self.next += 1;
            self.requests.push(noted);
        }
        number
    }

    fn remove(&mut self, number: u64) {
        self.requests.retain(|request| request.number != number);
    }

    /// Makes memory that is offered to a request one for all, until it is refused again.
    fn pass(&mut self, number: u64) {
        if let Some(request) = self.requests.iter_mut().find(|request| request.number == number) {
            request.passed = true;
        }
    }
}

impl State {
    /// Returns the oldest request that memory is offered to, if it is older than number `before`.
    pub(super) fn offered_to(&self, before: u64) -> Option<u64> {
        let older = self.slow_path().waiting.requests.iter().take_while(|request| request.number < before);
        let mut offered = older.filter(|request| !request.passed && request.progress != self.progress());
        let is_enough = |request: &&WaitingRequest| {
            request.lacking.is_some_and(|lacking| self.allocator.has_free(lacking))
        };
        offered.find(is_enough).map(|request| request.number)
    }
}

/// The remaining wait of one request, according to the pool's options; for [`Pool::allocate_with_retry`]. The request
/// has its place among those that wait until this is dropped.
#[derive(Debug)]
pub struct MemoryWait<'a> {
    pool: &'a Pool,
    /// Set at the first refusal, so that requests without a wait never read the clock.
    deadline: Option<Instant>,
    expired: bool,
    /// Its number among the requests that wait, from its first refusal on.
    number: Option<u64>,
}

impl MemoryWait<'_> {
    /// Lets older requests go first that wait for memory and could have some now: before the first attempt of a request
    /// that may wait. Takes as long as these take to wake up, and at most 20 ms.
    pub fn await_turn(&self) {
        if !self.pool.options.wait.is_zero() && !self.pool.is_fast_path_open() {
            // An unusable pool says so at the attempt.
            let _ = self.pool.await_turn(self.number.unwrap_or(u64::MAX));
        }
    }

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
            match self.pool.sleep(&mut self.number, refused, left.min(MAX_SLEEP)) {
                Ok(false) => {}
                Ok(true) => {
                    self.await_turn();
                    return true;
                }
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

/// Takes the lock, so it must not run under the lock.
impl Drop for MemoryWait<'_> {
    fn drop(&mut self) {
        if let Some(number) = self.number
            && !self.pool.state.is_poisoned()
        {
            self.pool.stop_waiting(number);
        }
    }
}

impl Pool {
    /// Returns the wait of one request.
    #[must_use]
    pub fn memory_wait(&self) -> MemoryWait<'_> {
        MemoryWait { pool: self, deadline: None, expired: false, number: None }
    }

    /// Returns whether anything was freed since the refusal.
    ///
    /// # Errors
    /// In a forked child.
    pub fn freed_since(&self, refused: &AllocationAttempt) -> Result<bool, Unusable> {
        self.with_settled_state(|state| state.progress() != refused.progress)
    }

    /// Sleeps until a free, for at most `timeout`; returns whether there is a reason to retry. The request waits from
    /// now on, with this number or a new one.
    fn sleep(
        &self,
        number: &mut Option<u64>,
        refused: &AllocationAttempt,
        timeout: Duration,
    ) -> Result<bool, Unusable> {
        let mut state = self.lock_settled_state()?;
        // Nothing is lent before the lock is released, and afterwards every free takes it.
        *number =
            Some(self.update_slow_path(&mut state, |slow_path| slow_path.waiting.note(*number, refused)));
        let has_reason = state.progress() != refused.progress || state.is_closed();
        let ticket = self.freed.ticket();
        drop(state);
        self.drain_deferred();
        if has_reason {
            return Ok(true);
        }
        self.tried.notify_all();
        self.freed.wait_timeout(ticket, timeout);
        // Memory that a sibling pool releases does not wake this thread.
        Ok(refused.possible.is_some_and(|before| before != self.possible_bytes()))
    }

    /// Sleeps while memory is offered to a request that is older than number `before`, for at most [`MAX_SLEEP`].
    fn await_turn(&self, before: u64) -> Result<(), Unusable> {
        let mut since = None;
        let mut first = None;
        loop {
            let mut state = self.lock_state()?;
            let Some(offered_to) = state.offered_to(before).filter(|_| !state.is_closed()) else { break };
            let waited = since.get_or_insert_with(Instant::now).elapsed();
            let Some(left) = MAX_SLEEP.checked_sub(waited).filter(|left| !left.is_zero()) else {
                if first == Some(offered_to) {
                    // Its thread does something else: the next request need not wait for it.
                    self.update_slow_path(&mut state, |slow_path| slow_path.waiting.pass(offered_to));
                }
                break;
            };
            first.get_or_insert(offered_to);
            let ticket = self.tried.ticket();
            drop(state);
            self.drain_deferred();
            self.tried.wait_timeout(ticket, left);
        }
        self.drain_deferred();
        Ok(())
    }

    /// Ends the wait of a request. In a forked child nothing is left to do.
    fn stop_waiting(&self, number: u64) {
        let removed = self.with_state(|state| {
            self.update_slow_path(state, |slow_path| slow_path.waiting.remove(number));
        });
        if removed.is_ok() {
            self.tried.notify_all();
        }
    }
}

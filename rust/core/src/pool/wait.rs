//! Waiting for memory: a refused request may sleep until somebody frees.

use std::time::{Duration, Instant};

use super::Pool;
use crate::error::Unusable;
use crate::refusal::{OutOfMemory, Verdict};

/// The longest sleep of a thread that waits: a late free does not wake it, nor does an interrupt.
const NAP: Duration = Duration::from_millis(20);

/// A refusal that may be taken back: see [`Pool::allocate_or`].
#[derive(Debug, Clone)]
pub struct Refused {
    /// The figures of the refusal.
    pub out_of_memory: Box<OutOfMemory>,
    /// What had happened until then: more since is a reason to try again.
    pub(super) progress: u64,
    /// What the source may have granted at the most at that moment; none where the request does not wait.
    pub(super) possible: Option<u64>,
}

impl Refused {
    /// Whether a free, of whatever, could let the request be served.
    #[must_use]
    pub fn is_hopeless(&self) -> bool {
        let OutOfMemory { requested, verdict, capped, .. } = &*self.out_of_memory;
        *verdict == Verdict::Limit || capped.as_ref().is_some_and(|capped| *requested > capped.limit)
    }
}

/// How long one request still waits, as the pool's options say; made for [`Pool::allocate_or`].
#[derive(Debug)]
pub struct Patience<'a> {
    pool: &'a Pool,
    /// Set when the first refusal comes: the clock is read only once there is something to wait for.
    deadline: Option<Instant>,
    spent: bool,
}

impl Patience<'_> {
    /// Sleeps until something is freed after the refusal, and says whether to try again.
    ///
    /// At the deadline it says so once more, whatever happened: memory behind the source may be free by now.
    /// Ends early, with a no, when `interrupted` says true.
    pub fn again(&mut self, refused: &Refused, mut interrupted: impl FnMut() -> bool) -> bool {
        let wait = self.pool.options.wait;
        if wait.is_zero() || self.spent || refused.is_hopeless() {
            return false;
        }
        let deadline = *self.deadline.get_or_insert_with(|| Instant::now() + wait);
        while let Some(left) = deadline.checked_duration_since(Instant::now()).filter(|d| !d.is_zero()) {
            if interrupted() {
                return false;
            }
            match self.pool.sleep(refused, left.min(NAP)) {
                Ok(false) => {}
                Ok(true) => return true,
                Err(_) => return false,
            }
        }
        self.spent = true;
        true
    }
}

impl Pool {
    /// The patience of one request.
    #[must_use]
    pub fn patience(&self) -> Patience<'_> {
        Patience { pool: self, deadline: None, spent: false }
    }

    /// Whether anything was freed since the refusal.
    ///
    /// # Errors
    /// In a forked child.
    pub fn freed_since(&self, refused: &Refused) -> Result<bool, Unusable> {
        self.with_state(|state| state.progress() != refused.progress)
    }

    /// Sleeps until a free, or for `nap`; says whether there is a reason to try again.
    fn sleep(&self, refused: &Refused, nap: Duration) -> Result<bool, Unusable> {
        let mut state = self.enter()?;
        if state.progress() != refused.progress || state.is_closed() {
            return Ok(true);
        }
        self.change_concerns(&mut state, |concerns| concerns.waiting += 1);
        let heard = self.freed.rings();
        drop(state);
        self.settle();
        self.freed.sleep(heard, nap);
        self.change_concerns(&mut *self.enter()?, |concerns| concerns.waiting -= 1);
        // Memory that another pool hands back does not wake this thread.
        Ok(refused.possible.is_some_and(|before| before != self.possible_bytes()))
    }
}

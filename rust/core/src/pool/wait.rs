//! Waiting for memory: a refused request may sleep until somebody frees.

use std::sync::PoisonError;
use std::time::{Duration, Instant};

use super::Pool;
use crate::error::{OutOfMemory, Unusable};

/// The longest sleep of a thread that waits for memory: a late free does not wake it.
const NAP: Duration = Duration::from_millis(20);

/// A refusal that may be taken back: see [`Pool::allocate_or`].
#[derive(Debug, Clone, Copy)]
pub struct Refused {
    /// The figures of the refusal.
    pub out_of_memory: OutOfMemory,
    /// Frees until then; more of them since are a reason to try again.
    pub(super) frees: u64,
}

impl Pool {
    /// Sleeps until something is freed after the refusal, or the deadline; says whether to try again.
    ///
    /// Made for [`Pool::allocate_or`].
    pub fn wait_for_free(&self, refused: &Refused, deadline: Instant) -> bool {
        while let Some(left) = deadline.checked_duration_since(Instant::now()).filter(|d| !d.is_zero()) {
            let Ok(mut state) = self.enter() else { return false };
            if state.frees != refused.frees || state.closed {
                return true;
            }
            state.waiting += 1;
            let slept = self.freed.wait_timeout(state, left.min(NAP));
            slept.unwrap_or_else(PoisonError::into_inner).0.waiting -= 1;
        }
        false
    }

    /// Whether anything was freed since the refusal.
    ///
    /// # Errors
    /// In a forked child.
    pub fn freed_since(&self, refused: &Refused) -> Result<bool, Unusable> {
        Ok(self.enter()?.frees != refused.frees)
    }
}

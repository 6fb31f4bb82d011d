//! Giving memory back on request.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use super::{Pool, Source, hand_back};
use crate::error::Unusable;

/// Free chunks this long or longer are discarded by a trim: shorter ones seldom hold a whole page.
const DISCARDED: u64 = 4096;

impl Pool {
    /// Hands back every wholly free region; returns their bytes. Of the others, what is free is discarded, where the
    /// source can do so; no request gets it meanwhile. Where nothing was allocated or freed since the last time, it was
    /// discarded then.
    ///
    /// # Errors
    /// When called by the source of this pool, or in a forked child.
    pub fn trim(&self) -> Result<u64, Unusable> {
        self.with_turn(|turn| self.trim_with(turn))?
    }

    /// The same, unless another thread has the turn; `None`: nothing was done.
    pub(super) fn try_trim(&self) -> Result<Option<u64>, Unusable> {
        self.same_process()?;
        let turn = self.turn.try_take();
        turn.map(|turn| self.use_turn(turn, |turn| self.trim_with(turn))).transpose()
    }

    fn trim_with(&self, turn: &mut Source<'_>) -> Result<u64, Unusable> {
        let mut state = self.enter()?;
        let activity = state.activity();
        // What comes out of quarantine is free without a free, and full of poison.
        let touched = state.empty_quarantine() || state.discarded_at != Some(activity);
        let regions = state.allocator.give_up_free_regions();
        if !regions.is_empty() {
            state.allocator.history.end();
        }
        let discards = turn.discards() && touched;
        let aside = if discards { state.allocator.set_free_aside(DISCARDED) } else { Vec::new() };
        drop(state);
        let discarded = catch_unwind(AssertUnwindSafe(|| {
            for &(_, span) in &aside {
                turn.discard(span);
            }
        }));
        let mut state = self.enter()?;
        state.allocator.take_back_aside(aside);
        if discards {
            // What was freed meanwhile counts as activity.
            state.discarded_at = discarded.is_ok().then_some(activity);
        }
        drop(state);
        let released = hand_back(turn, regions);
        discarded.unwrap_or_else(|panic| resume_unwind(panic));
        Ok(released)
    }
}

//! Closing: no more requests, and regions go back when the last allocation is gone.

use super::{BROKEN, Pool, hand_back};
use crate::error::Unusable;

impl Pool {
    /// Takes no more requests. Regions go back when the last allocation is gone, at once if there is none.
    ///
    /// # Errors
    /// As [`Pool::trim`].
    pub fn close(&self) -> Result<(), Unusable> {
        self.with_turn(|_| {
            let mut state = self.enter()?;
            self.change_concerns(&mut state, |concerns| concerns.closed = true);
            state.empty_quarantine();
            drop(state);
            self.freed.ring();
            Ok(())
        })?
    }

    /// Hands back what a closed pool without allocations still holds.
    ///
    /// If somebody else has the turn, that thread does it: it looks here after it gave the turn up.
    pub(super) fn hand_back_last_regions(&self) {
        while self.state.lock().expect(BROKEN).is_over() {
            let Some(mut turn) = self.turn.try_take() else { break };
            let regions = self.state.lock().expect(BROKEN).last_regions();
            hand_back(&mut turn, regions);
        }
        // A late free that found the lock taken by this look may be the last; then it comes here itself.
        self.settle();
    }
}

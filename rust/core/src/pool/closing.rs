//! Closing: no more requests, and regions go back when the last allocation is gone.

use super::{BROKEN, Pool, State, hand_back};
use crate::error::Unusable;
use crate::source::Grant;

impl Pool {
    /// Takes no more requests. Regions go back when the last allocation is gone, at once if there is none.
    ///
    /// # Errors
    /// As [`Pool::trim`].
    pub fn close(&self) -> Result<(), Unusable> {
        self.with_turn(|_| {
            self.enter()?.closed = true;
            self.freed.notify_all();
            Ok(())
        })?
    }

    /// Hands back what a closed pool without allocations still holds.
    ///
    /// If somebody else has the turn, that thread does it: it looks here after it gave the turn up.
    pub(super) fn hand_back_last_regions(&self) {
        while self.state.lock().expect(BROKEN).is_over() {
            let Some(mut turn) = self.turn.try_take() else { return };
            let regions = self.state.lock().expect(BROKEN).last_regions();
            hand_back(&mut turn, regions);
        }
    }
}

impl State {
    pub(super) fn open(&mut self) -> Result<&mut Self, Unusable> {
        if self.closed { Err(Unusable::Closed) } else { Ok(self) }
    }

    /// Whether it is closed and without allocations, and still holds regions.
    pub(super) fn is_over(&self) -> bool {
        self.closed && self.allocator.live.len() == 0 && self.allocator.regions.len() > 0
    }

    /// All regions of a closed pool without allocations, taken out; none otherwise.
    fn last_regions(&mut self) -> Vec<Grant> {
        if self.is_over() { self.allocator.give_up_free_regions() } else { Vec::new() }
    }
}

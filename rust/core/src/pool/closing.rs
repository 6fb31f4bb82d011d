//! Closing a pool: it refuses new requests and releases its regions after the last free.

use super::lock::usable;
use super::{Pool, release_regions};
use crate::error::Unusable;
use crate::tables::decisions::Decision;

impl Pool {
    /// Closes the pool: it refuses new requests and releases its regions once the last allocation is freed, at once
    /// if there is none.
    ///
    /// # Errors
    /// As [`Pool::trim`].
    pub fn close(&self) -> Result<(), Unusable> {
        self.with_source(|_| {
            let mut state = self.lock_state()?;
            self.update_slow_path(&mut state, |slow_path| slow_path.closed = true);
            state.allocator.decisions.record(|| Decision::Closed);
            state.empty_quarantine();
            drop(state);
            self.freed.notify_all();
            Ok(())
        })?
    }

    /// Releases the remaining regions of a closed pool without allocations.
    ///
    /// If another thread holds the source lock, that thread does it: it calls this after it releases the source lock.
    /// If the lock stays with its owner, the next call of the owner does it.
    pub(super) fn release_last_regions(&self) {
        while usable(self.state.lock()).is_ok_and(|state| state.must_release_regions()) {
            let Some(mut source) = self.source_lock.try_lock() else { break };
            if self.options.elastic {
                if self.give_back_last_pages(&mut source) {
                    continue;
                }
                // A decommit failed; the next free or trim does not come, and the pages stay with the source.
                break;
            }
            let Ok(mut state) = usable(self.state.lock()) else { break };
            let regions = state.take_last_regions();
            drop(state);
            release_regions(&mut source, regions);
        }
        // A deferred free that failed to take the lock during this check may be the last one; it then comes here
        // itself.
        self.drain_deferred();
    }
}

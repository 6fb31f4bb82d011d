//! Limit and growth, changed while the pool is in use.

use super::{Pool, hand_back};
use crate::allocator::Limit;
use crate::error::{LimitError, Unusable};
use crate::units::MAX_BYTES;

impl Pool {
    /// The most the pool may reserve now, in bytes.
    ///
    /// # Errors
    /// In a forked child.
    pub fn limit(&self) -> Result<u64, Unusable> {
        self.with_state(|state| state.allocator.limit)
    }

    /// Whether the pool reserves step by step now.
    ///
    /// # Errors
    /// In a forked child.
    pub fn growth(&self) -> Result<bool, Unusable> {
        self.with_state(|state| state.allocator.grows())
    }

    /// Changes the limit, in bytes; returns the bytes that were handed back for it. `set_by` is for reports.
    ///
    /// What is reserved never is above the limit: one below that is an error. With `trim`, the wholly free regions
    /// go back first, if that is enough.
    ///
    /// # Errors
    /// When the limit is out of range or below what stays reserved, or the pool cannot be used.
    pub fn set_limit(&self, limit: u64, trim: bool, set_by: &str) -> Result<u64, LimitError> {
        if limit == 0 || limit > MAX_BYTES {
            return Err(LimitError::OutOfRange { limit });
        }
        // With the turn: whoever has it has planned to reserve what the limit leaves.
        self.with_turn(|turn| {
            let mut state = self.enter()?;
            if state.allocator.counters.reserved() > limit {
                state.empty_quarantine();
            }
            let allocator = &mut state.allocator;
            let reserved = allocator.counters.reserved();
            let mut regions = Vec::new();
            if reserved > limit {
                let kept = reserved - allocator.releasable();
                if !trim || kept > limit {
                    let trim_helps = kept <= limit;
                    let reserved = if trim { kept } else { reserved };
                    let error = LimitError::BelowReserved { limit, reserved, after_trim: trim, trim_helps };
                    drop(state);
                    return Err(error);
                }
                regions = allocator.give_up_free_regions();
            }
            allocator.change(Limit { bytes: limit, set_by: set_by.into() }, allocator.grows());
            state.changes += 1;
            drop(state);
            // Whoever waits for memory may find room under the new limit.
            self.freed.ring();
            Ok(hand_back(turn, regions))
        })?
    }

    /// Turns growth on or off, for regions to come. Off, the next one is all that the limit leaves.
    ///
    /// # Errors
    /// When called by the source of this pool, or in a forked child.
    pub fn set_growth(&self, growth: bool) -> Result<(), Unusable> {
        self.with_turn(|_| {
            let mut state = self.enter()?;
            let limit = state.allocator.limit();
            state.allocator.change(limit, growth);
            Ok(())
        })?
    }
}

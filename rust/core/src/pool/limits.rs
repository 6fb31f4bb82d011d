//! Changes of limit and growth while a pool is in use.

use super::{Pool, release_regions};
use crate::error::{LimitError, TrimError, Unusable};
use crate::tables::Limit;
use crate::units::MAX_BYTES;

impl Pool {
    /// Returns the current limit in bytes.
    ///
    /// # Errors
    /// In a forked child.
    pub fn limit(&self) -> Result<u64, Unusable> {
        self.with_state(|state| state.allocator.limit)
    }

    /// Returns whether growth is on.
    ///
    /// # Errors
    /// In a forked child.
    pub fn growth(&self) -> Result<bool, Unusable> {
        self.with_state(|state| state.allocator.grows())
    }

    /// Changes the limit in bytes; returns the bytes released for it. `set_by` appears in reports.
    ///
    /// The limit cannot be lower than the reserved bytes; of a paused pool, than those that it has after a resume. With
    /// `trim`, wholly free regions are released first if that is enough.
    ///
    /// # Errors
    /// If the limit is out of range or below what stays reserved, the source takes too few pages of an elastic pool, or
    /// the pool is unusable. The limit is as it was then; free pages may have gone back.
    pub fn set_limit(&self, limit: u64, trim: bool, set_by: &str) -> Result<u64, LimitError> {
        if limit == 0 || limit > MAX_BYTES {
            return Err(LimitError::OutOfRange { limit });
        }
        // Under the source lock: its holder has planned with the old limit.
        self.with_source(|source| {
            let mut state = self.lock_settled_state()?;
            if state.allocator.counters.reserved() > limit {
                state.empty_quarantine();
            }
            let bytes = state.allocator.bytes_to_resume();
            if limit < bytes {
                drop(state);
                return Err(LimitError::BelowPaused { limit, bytes });
            }
            let (reserved, releasable) = state.held_and_releasable();
            let mut regions = Vec::new();
            let mut released = 0;
            if reserved > limit {
                let kept = reserved.saturating_sub(releasable);
                if !trim || kept > limit {
                    let trim_helps = kept <= limit;
                    let reserved = if trim { kept } else { reserved };
                    let error = LimitError::BelowReserved { limit, reserved, after_trim: trim, trim_helps };
                    drop(state);
                    return Err(error);
                }
                if self.options.elastic {
                    drop(state);
                    let given = self.give_back_pages(source, reserved - limit, false);
                    let failure;
                    (released, failure) = match given {
                        Ok(released) => (released, None),
                        Err(TrimError::SourceFailed { failure, released }) => (released, Some(failure)),
                        Err(TrimError::Unusable(unusable)) => return Err(unusable.into()),
                    };
                    state = self.lock_settled_state()?;
                    // Frees meanwhile only help; a source that fails, and requests for free pages, do not.
                    let (reserved, _) = state.held_and_releasable();
                    if limit < reserved {
                        drop(state);
                        let (after_trim, trim_helps) = (true, false);
                        return Err(match failure {
                            Some(failure) => LimitError::SourceFailed { limit, reserved, failure },
                            None => LimitError::BelowReserved { limit, reserved, after_trim, trim_helps },
                        });
                    }
                } else {
                    regions = state.allocator.take_free_regions();
                }
            }
            let allocator = &mut state.allocator;
            allocator.change(Limit { bytes: limit, set_by: set_by.into() }, allocator.grows());
            state.retry_reasons += 1;
            drop(state);
            // Waiting requests may fit under the new limit.
            self.freed.notify_all();
            Ok(released + release_regions(source, regions))
        })?
    }

    /// Turns growth on or off for later regions. Without growth the next region takes all that the limit leaves. An
    /// elastic pool without growth takes the memory of its limit at its first request; later it has no effect there.
    ///
    /// # Errors
    /// If the pool's own source calls it, or in a forked child.
    pub fn set_growth(&self, growth: bool) -> Result<(), Unusable> {
        self.with_source(|_| {
            let mut state = self.lock_state()?;
            let limit = state.allocator.limit();
            state.allocator.change(limit, growth);
            Ok(())
        })?
    }
}

pub(super) mod scope;
pub(super) mod siblings;

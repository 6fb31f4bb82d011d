//! Calls without a decision of their own: queries, refusals, and calls that changed nothing. Each must fit the state
//! at one moment between its start and its end.

use std::sync::Arc;

use allotment::{LimitError, OutOfMemory, Snapshot, Verdict};

use crate::event::{Answer, Call, FreeWay, Freed, Tag};
use crate::judge::Judge;
use crate::shadow::Shadow;

impl Judge<'_> {
    /// Returns whether the state of this moment explains a call.
    pub(crate) fn explains(&mut self, event: usize) -> bool {
        let order = self.order;
        match &order.events[event].call {
            Call::Allocate { bytes, alignment, tag, answer, .. } => {
                let needed = Shadow::needed(*bytes, *alignment);
                match answer {
                    Answer::Served(_) => unreachable!("a decision"),
                    Answer::Closed => self.shadow.is_closed(),
                    Answer::NotNow => !self.shadow.fits(needed) || self.exceeds(event, *bytes, tag),
                    Answer::Refused(refused) => self.refuses(event, *bytes, needed, tag, refused),
                }
            }
            Call::Free { address, id, way, answer } => {
                let at_address = self.shadow.live_at(*address).map_or(0, |(id, _)| id);
                let number = match way {
                    FreeWay::ByAddress | FreeWay::TryByAddress | FreeWay::Held => at_address,
                    FreeWay::ByAllocation | FreeWay::TryByAllocation | FreeWay::Deferred => *id,
                };
                let Some(known) = self.known.get(usize::try_from(number).expect("a few")) else {
                    return false;
                };
                if self.lending.is_lent(*address) || known.address == 0 && number != 0 {
                    // A cache has it, or had: see `Judge::comes_too_late`.
                    return false;
                }
                match answer {
                    Freed::Done => unreachable!("a decision"),
                    Freed::NotNow => false,
                    Freed::NotAllocated => !known.live,
                    Freed::Pinned => known.live && known.held,
                    Freed::Unknown => !known.live || known.held,
                }
            }
            Call::Resize { address, .. } if self.lending.is_lent(*address) => {
                let served = self.lending.served_at(*address);
                self.resized.extend(served.map(|id| (event, id)));
                served.is_none()
            }
            Call::Resize { address, bytes, .. } => self.cannot_resize(*address, *bytes),
            Call::Pin { id, .. } => {
                self.has_known(*id) && !self.known[usize::try_from(*id).expect("a few")].live
            }
            Call::SetLimit { limit, trim, released } => {
                let reserved = self.shadow.reserved();
                let kept = reserved - self.shadow.releasable();
                let error = LimitError::BelowReserved {
                    limit: *limit,
                    reserved: if *trim { kept } else { reserved },
                    after_trim: *trim,
                    trim_helps: kept <= *limit,
                };
                reserved > *limit && (!trim || kept > *limit) && *released == Err(error)
            }
            Call::Stats(stats) => self.is_near(stats.num_allocs, stats.num_live) && **stats == self.stats(),
            Call::Snapshot(snapshot) => self.shows(snapshot),
            Call::CanAllocate { bytes, tag, can } => {
                // What the source has left is another moment's.
                let can_now = self.shadow.can_allocate(*bytes, None) && !self.exceeds(event, *bytes, tag);
                self.is_capped || *can == can_now
            }
            Call::Limit(limit) => self.options.limit == *limit,
            Call::Activity(activity) => self.shadow.allocs() + self.frees == *activity,
            Call::CloseScope { key, .. } | Call::CloseScopeDeferred { key } => !self.owners.is_open(*key),
            Call::ScopeStats { key, figures } => self.owners.stats(*key) == figures.as_deref().cloned(),
            call => unreachable!("a decision: {call:?}"),
        }
    }

    /// Returns whether a resize fails now: nothing is there, or it is held, or there is no room, or a limit forbids it.
    fn cannot_resize(&self, address: u64, bytes: u64) -> bool {
        let Some((id, _)) = self.shadow.live_at(address) else { return true };
        let known = &self.known[usize::try_from(id).expect("a few")];
        let more = bytes.next_multiple_of(256).saturating_sub(known.requested.next_multiple_of(256));
        let exceeds = known.owner.as_ref().is_some_and(|owner| self.owners.exceeded(owner, more).is_some());
        known.held || bytes > self.shadow.possible_at(address) || exceeds
    }

    /// Returns whether these counts are those of this moment.
    fn is_near(&self, allocs: u64, live: u64) -> bool {
        allocs == self.shadow.allocs() && live == allocs - self.frees
    }

    fn exceeds(&self, event: usize, bytes: u64, tag: &Tag) -> bool {
        let owner = self.owners.owner(self.order.thread_of(event), tag);
        owner.is_some_and(|owner| self.owners.exceeded(&owner, bytes.next_multiple_of(256)).is_some())
    }

    /// Returns whether a request is refused now, with these figures.
    fn refuses(&mut self, event: usize, bytes: u64, needed: u64, tag: &Tag, refused: &OutOfMemory) -> bool {
        let refused = OutOfMemory { advice: Vec::new(), ..refused.clone() };
        if refused.verdict == Verdict::Scope {
            let owner = self.owners.owner(self.order.thread_of(event), tag);
            let Some(owner) = owner else { return false };
            let scope_limit = self.owners.exceeded(&owner, bytes.next_multiple_of(256));
            let expected = self.shadow.refusal(bytes, needed, false);
            return scope_limit.is_some()
                && refused == OutOfMemory { verdict: Verdict::Scope, scope_limit, ..expected };
        }
        let helps = self.options.trim_on_oom && self.shadow.release_helps(needed);
        let progress = self.progress.entry(event).or_default();
        progress.removal_tried |= !helps;
        let removal_tried = progress.removal_tried;
        let declined = self.is_declined(event);
        removal_tried
            && !self.shadow.fits(needed)
            && (declined || needed > self.shadow.room())
            // A request that waits is attempted again: the source may have declined an earlier attempt only.
            && (refused == self.shadow.refusal(bytes, needed, declined)
                || !self.options.wait.is_zero() && refused == self.shadow.refusal(bytes, needed, false))
    }

    fn shows(&self, snapshot: &Snapshot) -> bool {
        let Snapshot { name, stats, regions } = snapshot;
        if !self.lending.is_empty() {
            return false;
        }
        if !self.is_near(stats.num_allocs, stats.num_live) || *stats != self.shadow.stats() {
            return false;
        }
        let mut expected = self.shadow.regions();
        for chunk in expected.iter_mut().flat_map(|region| &mut region.chunks) {
            let known = &self.known[usize::try_from(chunk.id).expect("a few")];
            chunk.owner = known.owner.as_ref().map(|owner| Arc::from(self.owners.name(owner)));
        }
        *name == self.options.name && *regions == expected
    }
}

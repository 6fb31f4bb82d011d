//! What happens when nothing fits: plan, ask, adopt, hand back.

use super::state::State;
use super::{Pool, Refused, Source, hand_back};
use crate::allocator::{Allocation, Request};
use crate::error::{AllocError, GrantFault};
use crate::growth::Plan;
use crate::refusal::OutOfMemory;
use crate::source::{Grant, Refusal};
use crate::units::GRANULE;

impl Pool {
    /// One try of what nothing fitted: grow, hand back and grow again, or the refusal.
    pub(super) fn attempt(
        &self,
        turn: &mut Source<'_>,
        request: Request,
    ) -> Result<Result<Allocation, Refused>, AllocError> {
        let mut source_refused = false;
        if let Some(allocation) = self.grow(turn, request, &mut source_refused)? {
            return Ok(Ok(allocation));
        }
        if self.options.trim_on_oom {
            let mut state = self.enter_open()?;
            state.empty_quarantine();
            // A free while the source was asked may be all it takes; its region must not go back for it.
            if let Some(allocation) = state.allocator.try_allocate(request) {
                return Ok(Ok(allocation));
            }
            if state.allocator.release_would_help(request.needed) {
                let regions = state.allocator.give_up_free_regions();
                drop(state);
                hand_back(turn, regions);
                if let Some(allocation) = self.grow(turn, request, &mut source_refused)? {
                    return Ok(Ok(allocation));
                }
            }
        }
        // A free since the last look is served here or wakes whoever waits; it is never missed.
        let mut state = self.enter_open()?;
        state.empty_quarantine();
        if let Some(allocation) = state.allocator.try_allocate(request) {
            return Ok(Ok(allocation));
        }
        let out_of_memory = self.refusal(&state, request, source_refused);
        let progress = state.progress();
        Ok(Err(Refused { out_of_memory, progress, possible: None }))
    }

    pub(super) fn refusal(&self, state: &State, request: Request, source_refused: bool) -> Box<OutOfMemory> {
        Box::new(state.allocator.refusal(request, source_refused, self.margins()))
    }

    /// Plan, ask, adopt. None if the limit leaves no room, or the source refused to the end.
    fn grow(
        &self,
        turn: &mut Source<'_>,
        request: Request,
        source_refused: &mut bool,
    ) -> Result<Option<Allocation>, AllocError> {
        let mut state = self.enter_open()?;
        // Others may have freed, or grown, since this thread looked last.
        if let Some(allocation) = state.allocator.try_allocate(request) {
            return Ok(Some(allocation));
        }
        let Some(plan) = state.allocator.plan(request) else { return Ok(None) };
        drop(state);
        for bytes in plan.sizes() {
            match turn.reserve(bytes, GRANULE) {
                Ok(grant) => {
                    if let Some(allocation) = self.adopt(turn, request, &plan, grant)? {
                        return Ok(Some(allocation));
                    }
                }
                Err(Refusal::Declined) => {}
                Err(Refusal::Failed(failure)) => {
                    let mut state = self.enter()?;
                    state.allocator.counters.account_refuse();
                    let refused = self.refusal(&state, request, true);
                    return Err(AllocError::SourceFailed { failure, refused });
                }
            }
        }
        *source_refused = true;
        let smallest = plan.sizes().last().unwrap_or(plan.needed);
        let promised = self.gauge.as_ref().is_some_and(|gauge| smallest <= gauge.headroom().sure);
        let mut state = self.enter()?;
        state.source_declined = true;
        state.source_broke_promise = promised;
        state.allocator.history.end();
        Ok(None)
    }

    /// Makes the grant a region and serves the request from it; a grant of no use goes back.
    fn adopt(
        &self,
        turn: &mut Source<'_>,
        request: Request,
        plan: &Plan,
        grant: Grant,
    ) -> Result<Option<Allocation>, AllocError> {
        let mut state = self.enter()?;
        if let Some(fault) = state.allocator.fault_of(grant) {
            drop(state);
            // An overlapping grant is not given back: its bytes belong to a region that is still held.
            if fault != GrantFault::Overlap {
                turn.release(grant);
            }
            return Err(AllocError::BadGrant { grant, fault });
        }
        if state.is_closed() || grant.bytes < plan.needed || grant.bytes > plan.room {
            let open = state.open().map(|()| None);
            drop(state);
            turn.release(grant);
            return open.map_err(AllocError::from);
        }
        if grant.bytes != plan.largest {
            state.allocator.history.end();
        }
        state.source_declined = false;
        state.source_broke_promise = false;
        state.allocator.adopt(grant, plan);
        Ok(state.allocator.try_allocate(request))
    }
}

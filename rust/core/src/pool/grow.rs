//! Growth: plan, reserve from the source, adopt, and release free regions.

use super::state::State;
use super::{AllocationAttempt, Pool, Source, release_regions};
use crate::error::{AllocError, GrantFault};
use crate::policy::growth::Plan;
use crate::report::out_of_memory::OutOfMemory;
use crate::source::{Grant, ReserveError};
use crate::tables::decisions::Decision;
use crate::tables::{Allocation, ChunkRequest};
use crate::units::GRANULE;

impl Pool {
    /// Attempts a request that no free chunk fitted: grow, else release free regions and grow again, else refuse.
    pub(super) fn attempt(
        &self,
        source: &mut Source<'_>,
        request: ChunkRequest,
    ) -> Result<Result<Allocation, AllocationAttempt>, AllocError> {
        if self.options.elastic {
            return self.attempt_in_pages(source, request);
        }
        let mut source_refused = false;
        if let Some(allocation) = self.grow(source, request, &mut source_refused)? {
            return Ok(Ok(allocation));
        }
        if self.options.trim_on_oom {
            let mut state = self.lock_open_settled_state()?;
            state.empty_quarantine();
            // A free during the source call may suffice; its region must not be released then.
            if let Some(allocation) = state.allocator.try_allocate(request) {
                return Ok(Ok(allocation));
            }
            if state.allocator.release_would_help(request.needed) {
                let regions = state.allocator.take_free_regions();
                drop(state);
                release_regions(source, regions);
                if let Some(allocation) = self.grow(source, request, &mut source_refused)? {
                    return Ok(Ok(allocation));
                }
            }
        }
        // A free since the last check is served here or wakes the waiting thread; none is missed.
        let mut state = self.lock_open_settled_state()?;
        state.empty_quarantine();
        if let Some(allocation) = state.allocator.try_allocate(request) {
            return Ok(Ok(allocation));
        }
        let out_of_memory = self.out_of_memory(&state, request, source_refused);
        let progress = state.progress();
        Ok(Err(AllocationAttempt { out_of_memory, progress, possible: None }))
    }

    pub(super) fn out_of_memory(
        &self,
        state: &State,
        request: ChunkRequest,
        source_refused: bool,
    ) -> Box<OutOfMemory> {
        Box::new(state.allocator.out_of_memory(request, source_refused, self.margins()))
    }

    /// Plans, reserves and adopts. Returns `None` if the limit leaves no room, or if the source declined every size.
    fn grow(
        &self,
        source: &mut Source<'_>,
        request: ChunkRequest,
        source_refused: &mut bool,
    ) -> Result<Option<Allocation>, AllocError> {
        let mut state = self.lock_open_state()?;
        // Another thread may have freed or grown since the last check.
        if let Some(allocation) = state.allocator.try_allocate(request) {
            return Ok(Some(allocation));
        }
        if let Some(plan) = state.allocator.plan_arena(request.needed) {
            drop(state);
            if let Some(allocation) = self.reserve(source, request, &plan)? {
                return Ok(Some(allocation));
            }
            state = self.lock_open_state()?;
            // A free during the source call may suffice, or the arena may not serve an aligned request.
            if let Some(allocation) = state.allocator.try_allocate(request) {
                return Ok(Some(allocation));
            }
        }
        let Some(plan) = state.allocator.plan(request) else { return Ok(None) };
        drop(state);
        if let Some(allocation) = self.reserve(source, request, &plan)? {
            return Ok(Some(allocation));
        }
        *source_refused = true;
        let smallest = plan.sizes().last().unwrap_or(plan.needed);
        let promised = self.gauge.as_ref().is_some_and(|gauge| smallest <= gauge.headroom().guaranteed);
        let mut state = self.lock_state()?;
        state.source_declined = true;
        state.source_declined_guaranteed = promised;
        state.allocator.history.end();
        Ok(None)
    }

    /// Calls the source for the sizes of a plan. Returns `None` if it declined all of them.
    fn reserve(
        &self,
        source: &mut Source<'_>,
        request: ChunkRequest,
        plan: &Plan,
    ) -> Result<Option<Allocation>, AllocError> {
        for bytes in plan.sizes() {
            match source.reserve(bytes, GRANULE) {
                Ok(grant) => {
                    if let Some(allocation) = self.adopt(source, request, plan, grant)? {
                        return Ok(Some(allocation));
                    }
                }
                Err(ReserveError::Declined) => {}
                Err(ReserveError::Failed(failure)) => {
                    let mut state = self.lock_settled_state()?;
                    state.allocator.decisions.record(|| Decision::Refused);
                    let refused = self.out_of_memory(&state, request, true);
                    return Err(AllocError::SourceFailed { failure, refused });
                }
            }
        }
        Ok(None)
    }

    /// Makes the grant a region and serves the request from it; releases an unusable grant.
    fn adopt(
        &self,
        source: &mut Source<'_>,
        request: ChunkRequest,
        plan: &Plan,
        grant: Grant,
    ) -> Result<Option<Allocation>, AllocError> {
        let mut state = self.lock_state()?;
        if let Some(fault) = state.allocator.grant_fault(grant) {
            drop(state);
            // An overlapping grant is not released: its bytes belong to a region in use.
            if fault != GrantFault::Overlap {
                source.release(grant);
            }
            return Err(AllocError::BadGrant { grant, fault });
        }
        if state.is_closed() || grant.bytes < plan.needed || grant.bytes > plan.room {
            let open = state.open().map(|()| None);
            drop(state);
            source.release(grant);
            return open.map_err(AllocError::from);
        }
        if grant.bytes != plan.largest {
            state.allocator.history.end();
        }
        state.source_declined = false;
        state.source_declined_guaranteed = false;
        state.allocator.adopt(grant, plan);
        Ok(state.allocator.try_allocate(request))
    }
}

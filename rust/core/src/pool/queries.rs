//! Queries about future requests and about refusals.

use super::Pool;
use super::advise::{Depth, ExternalMemory};
use super::state::State;
use crate::error::{AllocError, Unusable};
use crate::report::details::Details;
use crate::report::kept::{KeptRegion, kept};
use crate::report::out_of_memory::{OutOfMemory, Verdict};
use crate::tables::{ChunkRequest, Supply};

impl Pool {
    /// Returns whether a request of `bytes` bytes would be served now, provided that the source grants as much as its
    /// [`Gauge`](crate::Gauge) says it may. A closed pool serves nothing.
    ///
    /// # Errors
    /// In a forked child.
    pub fn can_allocate(&self, bytes: u64) -> Result<bool, Unusable> {
        let refused = match self.would_refuse(bytes, false) {
            Ok(refused) => refused.is_some(),
            Err(AllocError::Unusable(Unusable::Closed) | AllocError::TooLarge { .. }) => true,
            Err(AllocError::Unusable(unusable)) => return Err(unusable),
            Err(_) => unreachable!("nothing is asked of the source, and the alignment is the granule"),
        };
        Ok(!refused)
    }

    /// Explains why a request of `bytes` bytes would be refused now; `None` if it would be served.
    ///
    /// # Errors
    /// If the request is out of range or the pool is unusable.
    ///
    /// # Cost
    /// Linear in the number of regions if the request would be served; else that of [`Pool::add_details`].
    pub fn explain(&self, bytes: u64) -> Result<Option<Box<OutOfMemory>>, AllocError> {
        self.would_refuse(bytes, true)
    }

    /// Adds details to a refusal: the current use of the memory, and the advice that needs a scan of all chunks.
    ///
    /// # Errors
    /// In a forked child.
    ///
    /// # Cost
    /// Linear in the number of chunks, under the lock; some nanoseconds each. A program of up to 512 allocations is
    /// replayed up to 20 times, without the lock.
    pub fn add_details(&self, refused: &mut OutOfMemory) -> Result<(), Unusable> {
        let request = refused.request();
        self.add_details_for(refused, request, &self.external_memory(&self.others()))
    }

    /// Returns whether the fast path is open: no thread waits, no scope is open, no guard mode or owner tags, not
    /// closed. The answer may be stale.
    #[must_use]
    pub(crate) fn is_fast_path_open(&self) -> bool {
        self.deferred.is_idle()
    }

    /// Removes and returns the decisions so far, in the order of the lock. Runs no deferred operation: what the last
    /// calls left in the queue stays there.
    ///
    /// # Panics
    /// After a panic under the lock.
    #[cfg(feature = "decisions")]
    #[doc(hidden)]
    pub fn take_decisions(&self) -> Vec<crate::tables::decisions::Decided> {
        self.state.lock().expect(super::STATE_IS_SOUND).allocator.decisions.take()
    }

    /// Returns the decisions of each thread cache so far, in order, with the number of the cache.
    ///
    /// # Panics
    /// After a panic under the lock of one.
    #[cfg(feature = "decisions")]
    #[doc(hidden)]
    pub fn cache_decisions(&self) -> Vec<(u64, Vec<crate::tables::decisions::Decided>)> {
        self.caches.as_ref().map_or_else(Vec::new, |caches| caches.decisions())
    }

    /// Returns the number of this pool, unique within the process.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Returns the regions that a trim would keep, and their content.
    ///
    /// # Errors
    /// In a forked child.
    ///
    /// # Cost
    /// Linear in the number of chunks, under the lock.
    pub fn kept_regions(&self) -> Result<Vec<KeptRegion>, Unusable> {
        self.with_settled_state(|state| {
            state.empty_quarantine();
            kept(&state.allocator)
        })
    }

    fn would_refuse(&self, bytes: u64, with_details: bool) -> Result<Option<Box<OutOfMemory>>, AllocError> {
        let request = self.request(bytes.into())?;
        if self.is_served_from_held(request)? {
            return Ok(None);
        }
        let external = self.external_memory(&self.others());
        let mut refused = self.with_settled_state(|state| {
            let scope_limit = self.exceeded_limit(state, request);
            let trim_on_oom = self.options.trim_on_oom;
            let fits = |state: &State, supply| state.allocator.would_serve(request, trim_on_oom, supply);
            let possible = external.possible();
            let served = fits(state, possible) || (state.empty_quarantine() && fits(state, possible));
            if served && scope_limit.is_none() {
                return None;
            }
            let source_refuses = !served && fits(state, Supply::UNLIMITED);
            let mut refused = self.out_of_memory(state, request, source_refuses);
            if scope_limit.is_some() {
                refused.verdict = Verdict::Scope;
                refused.scope_limit = scope_limit;
            }
            Some(refused)
        })?;
        if with_details && let Some(refused) = &mut refused {
            self.add_details_for(refused, request, &external)?;
        }
        Ok(refused)
    }

    /// Returns whether a free chunk serves the request, without a look at the source.
    fn is_served_from_held(&self, request: ChunkRequest) -> Result<bool, Unusable> {
        self.with_settled_state(|state| {
            state.open()?;
            let has_chunk = request.bytes == 0 || state.allocator.has_free(request);
            Ok(has_chunk && self.exceeded_limit(state, request).is_none())
        })?
    }

    fn add_details_for(
        &self,
        refused: &mut OutOfMemory,
        request: ChunkRequest,
        external: &ExternalMemory,
    ) -> Result<(), Unusable> {
        refused.details = Some(Box::new(self.with_settled_state(|state| {
            state.empty_quarantine();
            Details::new(&state.allocator)
        })?));
        refused.advice = self.advise(request, external, Depth::Thorough)?;
        Ok(())
    }
}

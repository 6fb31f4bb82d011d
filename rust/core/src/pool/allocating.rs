//! Allocation: the fast path, the slow path, and the refusal.

use allotment_sync::MutexGuard;

use super::advise::Depth;
use super::state::State;
use super::{AllocationAttempt, Pool};
use crate::error::{AllocError, Unusable};
use crate::guard::MARGINS;
use crate::report::out_of_memory::OutOfMemory;
use crate::request::Request;
use crate::tables::decisions::Decision;
use crate::tables::{Allocation, ChunkRequest};
use crate::units::GRANULE;

impl Pool {
    /// Allocates memory for a request, or for a number of bytes; zero bytes give an allocation without an address.
    ///
    /// May call the source, and waits for a free if the options say so.
    ///
    /// # Errors
    /// If no memory is available, or the pool is unusable.
    #[inline(always)]
    pub fn allocate<'a>(&self, request: impl Into<Request<'a>>) -> Result<Allocation, AllocError> {
        let request = request.into();
        if let Some(allocation) = self.allocate_fast(request, false) {
            return Ok(allocation);
        }
        self.allocate_slow(request)
    }

    // Apart from the rest, which needs many registers: with thread caches this is the usual path.
    #[cold]
    #[inline(never)]
    fn allocate_slow(&self, wanted: Request<'_>) -> Result<Allocation, AllocError> {
        if let Some(allocation) = self.allocate_cached(wanted, false, true) {
            return Ok(allocation);
        }
        self.allocate_uncached(wanted)
    }

    #[cold]
    #[inline(never)]
    fn allocate_uncached(&self, wanted: Request<'_>) -> Result<Allocation, AllocError> {
        if let Some(allocation) = self.allocate_recorded(wanted, false) {
            return Ok(allocation);
        }
        if let Some(request) = fast_request(wanted)
            && let Some(allocation) = self.on_shared_path(|allocator| allocator.try_allocate(request))
        {
            return Ok(allocation);
        }
        self.allocate_at_length(wanted)
    }

    #[cold]
    #[inline(never)]
    fn allocate_at_length(&self, wanted: Request<'_>) -> Result<Allocation, AllocError> {
        let mut wait = self.memory_wait();
        let request = self.request(wanted)?;
        wait.await_turn();
        self.serve_with_retry(wanted, request, |refused| wait.should_retry(refused, || false))
    }

    /// Allocates like [`Pool::allocate`], and calls `retry` before each refusal.
    ///
    /// `retry` runs without locks. If it returns true the whole request is attempted again; the callback may free
    /// memory or wait for some.
    ///
    /// # Errors
    /// As [`Pool::allocate`].
    pub fn allocate_with_retry<'a>(
        &self,
        request: impl Into<Request<'a>>,
        retry: impl FnMut(&AllocationAttempt) -> bool,
    ) -> Result<Allocation, AllocError> {
        let wanted = request.into();
        if let Some(allocation) = self.allocate_beside(wanted, false, true) {
            return Ok(allocation);
        }
        self.serve_with_retry(wanted, self.request(wanted)?, retry)
    }

    /// Serves a request, and calls `retry` before each refusal.
    pub(super) fn serve_with_retry(
        &self,
        wanted: Request<'_>,
        request: ChunkRequest,
        mut retry: impl FnMut(&AllocationAttempt) -> bool,
    ) -> Result<Allocation, AllocError> {
        if let Some(damage) = self.take_damage()? {
            return Err(damage.into());
        }
        let mut reclaimed = false;
        loop {
            let refused = match self.try_once(wanted, request) {
                Ok(Ok(allocation)) => return Ok(allocation),
                Ok(Err(refused)) => refused,
                Err(error) => {
                    if matches!(error, AllocError::SourceFailed { .. }) {
                        self.account_refusal(request.bytes)?;
                    }
                    return Err(error);
                }
            };
            // At most once between two calls of `retry`, which may want to stop.
            reclaimed = !reclaimed && self.reclaim_for(request, &refused)?;
            if !reclaimed && !retry(&refused) {
                return Err(self.refuse(request, refused)?.into());
            }
        }
    }

    /// Records the final refusal of a request and builds its error.
    #[cold]
    fn refuse(
        &self,
        request: ChunkRequest,
        refused: AllocationAttempt,
    ) -> Result<Box<OutOfMemory>, Unusable> {
        let AllocationAttempt { mut out_of_memory, .. } = refused;
        let logs = self.with_state(|state| {
            state.allocator.decisions.record(|| Decision::Refused);
            state.allocator.history.refused(request.needed);
            state.account_refusal(request.bytes)
        })?;
        logs.notify();
        let external = self.external_memory(&self.others());
        out_of_memory.advice = self.advise(request, &external, Depth::Quick)?;
        Ok(out_of_memory)
    }

    /// Counts and records a refusal for another reason than a lack of memory in this pool. The caller has no locks.
    #[cold]
    pub(crate) fn account_refusal(&self, bytes: u64) -> Result<(), Unusable> {
        self.with_state(|state| state.account_refusal(bytes))?.notify();
        Ok(())
    }

    /// Attempts a request once: from free chunks, then by growth.
    fn try_once(
        &self,
        wanted: Request<'_>,
        request: ChunkRequest,
    ) -> Result<Result<Allocation, AllocationAttempt>, AllocError> {
        let mut state = self.lock_open_state()?;
        let alignment = wanted.alignment();
        let charge = match self.charge(&mut state, request, wanted.tag_name()) {
            Ok(charge) => charge,
            Err(out_of_memory) => {
                let progress = state.progress();
                drop(state);
                self.drain_deferred();
                return Ok(Err(AllocationAttempt { out_of_memory, progress, possible: None }));
            }
        };
        let outcome = match self.serve(state, charge.request, alignment) {
            Some(allocation) => Ok(allocation),
            None => match self.with_source(|source| self.attempt(source, charge.request))?? {
                Ok(allocation) => Ok(self.with_state(|state| state.hand_out(allocation, alignment))?),
                Err(refused) => {
                    // After the source lock is released: this queries other pools.
                    let waits = !self.options.wait.is_zero();
                    Err(AllocationAttempt { possible: waits.then(|| self.possible_bytes()), ..refused })
                }
            },
        };
        if outcome.is_ok() {
            charge.served();
        }
        Ok(outcome)
    }

    /// Allocates without waiting and without growth; returns `None` if that is not enough, or if an older request waits
    /// for memory and could have what is free.
    ///
    /// # Errors
    /// If the request is out of range or the pool is unusable.
    #[inline]
    pub fn try_allocate<'a>(
        &self,
        request: impl Into<Request<'a>>,
    ) -> Result<Option<Allocation>, AllocError> {
        let request = request.into();
        if let Some(allocation) = self.allocate_fast(request, false) {
            return Ok(Some(allocation));
        }
        self.try_serve(request)
    }

    #[cold]
    fn try_serve(&self, wanted: Request<'_>) -> Result<Option<Allocation>, AllocError> {
        if let Some(allocation) = self.allocate_beside(wanted, false, false) {
            return Ok(Some(allocation));
        }
        let request = self.request(wanted)?;
        let Some(mut state) = self.try_lock_state()? else { return Ok(None) };
        if state.offered_to(u64::MAX).is_some() {
            drop(state);
            self.drain_deferred();
            return Ok(None);
        }
        let damage = state.next_damage().map_or(Ok(()), |damage| Err(AllocError::from(damage)));
        let ready = damage.and(state.open().map_err(AllocError::from)).and_then(|()| {
            let fits = request.bytes == 0 || state.allocator.has_free(request);
            if fits { Ok(()) } else { state.settle().map_err(AllocError::from) }
        });
        if let Err(refused) = ready {
            drop(state);
            self.drain_deferred();
            return Err(refused);
        }
        let Ok(charge) = self.charge(&mut state, request, wanted.tag_name()) else {
            drop(state);
            self.drain_deferred();
            return Ok(None);
        };
        let served = self.serve(state, charge.request, wanted.alignment());
        if served.is_some() {
            charge.served();
        }
        Ok(served)
    }

    /// Serves a request from a free chunk on the fast path; `None` if that path is closed or no chunk fits.
    #[inline(always)]
    pub(super) fn allocate_fast(&self, request: Request<'_>, held: bool) -> Option<Allocation> {
        let request = ChunkRequest { held, ..fast_request(request)? };
        self.on_fast_path(|allocator| allocator.try_allocate(request))
    }

    /// Serves a request from the cache of this thread, or from a free chunk on the fast path of a recorded pool; `None`
    /// if neither is possible. Without `waits` no lock is waited for.
    pub(super) fn allocate_beside(
        &self,
        request: Request<'_>,
        held: bool,
        waits: bool,
    ) -> Option<Allocation> {
        self.allocate_cached(request, held, waits).or_else(|| self.allocate_recorded(request, held))
    }

    fn allocate_recorded(&self, request: Request<'_>, held: bool) -> Option<Allocation> {
        let request = ChunkRequest { held, ..fast_request(request)? };
        self.on_recorded_path(|state| {
            let allocation = state.allocator.try_allocate(request)?;
            state.record_allocation(&allocation);
            Some(allocation)
        })
    }

    /// Serves a request from a free chunk, with the lock held.
    fn serve(
        &self,
        mut state: MutexGuard<'_, State>,
        request: ChunkRequest,
        alignment: u64,
    ) -> Option<Allocation> {
        let served = if request.bytes == 0 {
            Some(Allocation::nothing(self.no_address))
        } else {
            state.allocator.try_allocate(request).map(|served| state.hand_out(served, alignment))
        };
        drop(state);
        self.drain_deferred();
        served
    }

    /// Returns the bytes that guard mode adds to each request for red zones.
    pub(super) fn margins(&self) -> u64 {
        if self.options.guard { MARGINS } else { 0 }
    }

    /// Builds the request to the tables. In guard mode it has room for red zones, and the address is aligned within
    /// the chunk.
    pub(super) fn request(&self, wanted: Request<'_>) -> Result<ChunkRequest, AllocError> {
        let (bytes, alignment) = (wanted.bytes(), wanted.alignment());
        if !wanted.has_valid_alignment() {
            return Err(AllocError::BadAlignment { alignment });
        }
        let wide = bytes.checked_add(self.margins()).and_then(|padded| ChunkRequest::new(padded, alignment));
        let wide = wide.ok_or(AllocError::TooLarge { bytes })?;
        let alignment = if self.options.guard { GRANULE } else { alignment };
        Ok(ChunkRequest { bytes, alignment, ..wide })
    }
}

/// Builds the request to the tables, if the fast path may serve it.
#[inline(always)]
pub(super) fn fast_request(wanted: Request<'_>) -> Option<ChunkRequest> {
    if wanted.is_plain() { ChunkRequest::new(wanted.bytes(), wanted.alignment()) } else { None }
}

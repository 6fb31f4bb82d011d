//! Allocation: the fast path, the slow path, and the refusal.

use allotment_sync::MutexGuard;

use super::advise::Depth;
use super::recording::EventKind;
use super::state::State;
use super::{AllocationAttempt, Pool};
use crate::decisions::Decision;
use crate::error::{AllocError, Unusable};
use crate::guard::MARGINS;
use crate::out_of_memory::OutOfMemory;
use crate::tables::{Allocation, ChunkRequest};
use crate::units::GRANULE;

/// The largest supported alignment in bytes.
const MAX_ALIGNMENT: u64 = 4096;

impl Pool {
    /// Allocates at least `bytes` bytes; zero bytes give an allocation without an address.
    ///
    /// May call the source, and waits for a free if the options say so.
    ///
    /// # Errors
    /// If no memory is available, or the pool is unusable.
    #[inline(always)]
    pub fn allocate(&self, bytes: u64) -> Result<Allocation, AllocError> {
        if let Some(allocation) = self.allocate_fast(bytes, GRANULE, false) {
            return Ok(allocation);
        }
        self.allocate_slow(bytes)
    }

    #[cold]
    #[inline(never)]
    fn allocate_slow(&self, bytes: u64) -> Result<Allocation, AllocError> {
        if bytes > 0
            && let Some(request) = ChunkRequest::new(bytes, GRANULE)
            && let Some(allocation) = self.on_shared_path(|allocator| allocator.try_allocate(request))
        {
            return Ok(allocation);
        }
        let mut wait = self.memory_wait();
        self.allocate_with_retry(bytes, GRANULE, |refused| wait.should_retry(refused, || false))
    }

    /// Allocates like [`Pool::allocate`], aligned to `alignment`, and calls `retry` before each refusal.
    ///
    /// `retry` runs without locks. If it returns true the whole request is attempted again; the callback may free
    /// memory or wait for some. An alignment above 256 bytes makes the chunk that much larger, and the caller uses
    /// [`Allocation::aligned_address`].
    ///
    /// # Errors
    /// As [`Pool::allocate`]; also if the alignment is not a power of two up to 4096.
    pub fn allocate_with_retry(
        &self,
        bytes: u64,
        alignment: u64,
        retry: impl FnMut(&AllocationAttempt) -> bool,
    ) -> Result<Allocation, AllocError> {
        self.serve_with_retry(self.request(bytes, alignment)?, alignment, retry)
    }

    /// Serves a request, and calls `retry` before each refusal.
    pub(super) fn serve_with_retry(
        &self,
        request: ChunkRequest,
        alignment: u64,
        mut retry: impl FnMut(&AllocationAttempt) -> bool,
    ) -> Result<Allocation, AllocError> {
        if let Some(damage) = self.take_damage()? {
            return Err(damage.into());
        }
        let mut reclaimed = false;
        loop {
            let refused = match self.try_once(request, alignment)? {
                Ok(allocation) => return Ok(allocation),
                Err(refused) => refused,
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
        self.with_state(|state| {
            state.allocator.counters.account_refuse();
            state.allocator.decisions.record(|| Decision::Refused);
            if state.recordings.are_running() {
                state.recordings.add(EventKind::Refused, 0, request.bytes);
            }
            state.allocator.history.refused(request.needed);
        })?;
        let external = self.external_memory(&self.others());
        out_of_memory.advice = self.advise(request, &external, Depth::Quick)?;
        Ok(out_of_memory)
    }

    /// Attempts a request once: from free chunks, then by growth.
    fn try_once(
        &self,
        request: ChunkRequest,
        alignment: u64,
    ) -> Result<Result<Allocation, AllocationAttempt>, AllocError> {
        let mut state = self.lock_open_state()?;
        let charge = match self.charge(&mut state, request) {
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

    /// Allocates without waiting and without growth; returns `None` if that is not enough.
    ///
    /// # Errors
    /// If the request is out of range or the pool is unusable.
    #[inline]
    pub fn try_allocate(&self, bytes: u64, alignment: u64) -> Result<Option<Allocation>, AllocError> {
        if let Some(allocation) = self.allocate_fast(bytes, alignment, false) {
            return Ok(Some(allocation));
        }
        self.try_serve(bytes, alignment)
    }

    #[cold]
    fn try_serve(&self, bytes: u64, alignment: u64) -> Result<Option<Allocation>, AllocError> {
        let request = self.request(bytes, alignment)?;
        let Some(mut state) = self.try_lock_state()? else { return Ok(None) };
        let damage = state.next_damage().map_or(Ok(()), |damage| Err(AllocError::from(damage)));
        if let Err(refused) = damage.and(state.open().map_err(AllocError::from)) {
            drop(state);
            self.drain_deferred();
            return Err(refused);
        }
        let Ok(charge) = self.charge(&mut state, request) else {
            drop(state);
            self.drain_deferred();
            return Ok(None);
        };
        let served = self.serve(state, charge.request, alignment);
        if served.is_some() {
            charge.served();
        }
        Ok(served)
    }

    /// Serves a request from a free chunk on the fast path; `None` if that path is closed or no chunk fits.
    #[inline(always)]
    pub(super) fn allocate_fast(&self, bytes: u64, alignment: u64, held: bool) -> Option<Allocation> {
        if bytes == 0 || !is_alignment(alignment) {
            return None;
        }
        let request = ChunkRequest { held, ..ChunkRequest::new(bytes, alignment)? };
        self.on_fast_path(|allocator| allocator.try_allocate(request))
    }

    /// Serves a request from a free chunk, with the lock held.
    fn serve(
        &self,
        mut state: MutexGuard<'_, State>,
        request: ChunkRequest,
        alignment: u64,
    ) -> Option<Allocation> {
        let served = if request.bytes == 0 {
            Some(Allocation::NOTHING)
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

    /// Builds the request, with room for red zones in guard mode.
    pub(super) fn request(&self, bytes: u64, alignment: u64) -> Result<ChunkRequest, AllocError> {
        let padded = bytes.checked_add(self.margins()).ok_or(AllocError::TooLarge { bytes })?;
        let wide = request(padded, alignment).map_err(|error| match error {
            AllocError::TooLarge { .. } => AllocError::TooLarge { bytes },
            other => other,
        })?;
        Ok(ChunkRequest { bytes, ..wide })
    }
}

fn request(bytes: u64, alignment: u64) -> Result<ChunkRequest, AllocError> {
    if !is_alignment(alignment) {
        return Err(AllocError::BadAlignment { alignment });
    }
    ChunkRequest::new(bytes, alignment).ok_or(AllocError::TooLarge { bytes })
}

fn is_alignment(alignment: u64) -> bool {
    alignment.is_power_of_two() && alignment <= MAX_ALIGNMENT
}

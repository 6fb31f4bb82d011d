//! Allocating: a request on the fast path, on the slow one, and refused.

use allotment_sync::Guard;

use super::advise::Depth;
use super::state::State;
use super::{Pool, Refused};
use crate::allocator::{Allocation, Request};
use crate::error::{AllocError, Unusable};
use crate::guard::MARGINS;
use crate::refusal::OutOfMemory;
use crate::units::GRANULE;

/// The largest alignment a request may ask for, in bytes.
const MAX_ALIGNMENT: u64 = 4096;

impl Pool {
    /// Allocates at least `bytes` bytes; zero bytes give an allocation without address.
    ///
    /// May ask the source, and waits for a free if the options say so.
    ///
    /// # Errors
    /// When nothing fits and there is no more to get, or the pool cannot be used.
    #[inline(always)]
    pub fn allocate(&self, bytes: u64) -> Result<Allocation, AllocError> {
        if let Some(allocation) = self.serve_quickly(bytes, GRANULE, false) {
            return Ok(allocation);
        }
        self.allocate_slowly(bytes)
    }

    #[cold]
    #[inline(never)]
    fn allocate_slowly(&self, bytes: u64) -> Result<Allocation, AllocError> {
        let mut patience = self.patience();
        self.allocate_or(bytes, GRANULE, |refused| patience.again(refused, || false))
    }

    /// Like [`Pool::allocate`] at a multiple of `alignment`, and asks `again` before it refuses.
    ///
    /// `again` is called without lock or turn. While it says true the request is tried once more, from the
    /// start; how it finds memory, or waits for some, is up to it. Above 256 bytes of alignment the chunk is
    /// that much longer, and [`Allocation::aligned_address`] is the address to use.
    ///
    /// # Errors
    /// As [`Pool::allocate`], and for an alignment that is no power of two up to 4096.
    pub fn allocate_or(
        &self,
        bytes: u64,
        alignment: u64,
        again: impl FnMut(&Refused) -> bool,
    ) -> Result<Allocation, AllocError> {
        self.serve_or(self.request(bytes, alignment)?, alignment, again)
    }

    /// Serves a request, and asks `again` before it refuses.
    pub(super) fn serve_or(
        &self,
        request: Request,
        alignment: u64,
        mut again: impl FnMut(&Refused) -> bool,
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
            // Once for each time that `again` has its say: it may want to stop.
            reclaimed = !reclaimed && self.reclaim_for(request, &refused)?;
            if !reclaimed && !again(&refused) {
                return Err(self.refuse(request, refused)?.into());
            }
        }
    }

    /// Refuses a request for good.
    #[cold]
    fn refuse(&self, request: Request, refused: Refused) -> Result<Box<OutOfMemory>, Unusable> {
        let Refused { mut out_of_memory, .. } = refused;
        self.with_state(|state| {
            state.allocator.counters.account_refuse();
            state.allocator.history.refused(request.needed);
        })?;
        let around = self.surroundings(&self.others());
        out_of_memory.advice = self.advise(request, &around, Depth::Quick)?;
        Ok(out_of_memory)
    }

    /// Serves a request, from what is held or from more, or refuses it.
    fn try_once(&self, request: Request, alignment: u64) -> Result<Result<Allocation, Refused>, AllocError> {
        let mut state = self.enter_open()?;
        let charge = match self.charge(&mut state, request) {
            Ok(charge) => charge,
            Err(out_of_memory) => {
                let progress = state.progress();
                drop(state);
                self.settle();
                return Ok(Err(Refused { out_of_memory, progress, possible: None }));
            }
        };
        let outcome = match self.serve(state, charge.request, alignment) {
            Some(allocation) => Ok(allocation),
            None => match self.with_turn(|turn| self.attempt(turn, charge.request))?? {
                Ok(allocation) => Ok(self.with_state(|state| state.surround(allocation, alignment))?),
                Err(refused) => {
                    // Not with the source: other pools are asked.
                    let waits = !self.options.wait.is_zero();
                    Err(Refused { possible: waits.then(|| self.possible_bytes()), ..refused })
                }
            },
        };
        if outcome.is_ok() {
            charge.served();
        }
        Ok(outcome)
    }

    /// Allocates if that takes no waiting and no growing; none where that is not enough.
    ///
    /// # Errors
    /// When the request is out of range or the pool cannot be used.
    #[inline]
    pub fn try_allocate(&self, bytes: u64, alignment: u64) -> Result<Option<Allocation>, AllocError> {
        if let Some(allocation) = self.serve_quickly(bytes, alignment, false) {
            return Ok(Some(allocation));
        }
        self.try_serve(bytes, alignment)
    }

    #[cold]
    fn try_serve(&self, bytes: u64, alignment: u64) -> Result<Option<Allocation>, AllocError> {
        let request = self.request(bytes, alignment)?;
        let Some(mut state) = self.try_enter()? else { return Ok(None) };
        let damage = state.next_damage().map_or(Ok(()), |damage| Err(AllocError::from(damage)));
        if let Err(refused) = damage.and(state.open().map_err(AllocError::from)) {
            drop(state);
            self.settle();
            return Err(refused);
        }
        let Ok(charge) = self.charge(&mut state, request) else {
            drop(state);
            self.settle();
            return Ok(None);
        };
        let served = self.serve(state, charge.request, alignment);
        if served.is_some() {
            charge.served();
        }
        Ok(served)
    }

    /// Serves a request from what is held, if that is all there is to do; none where that is not enough.
    #[inline(always)]
    pub(super) fn serve_quickly(&self, bytes: u64, alignment: u64, held: bool) -> Option<Allocation> {
        if bytes == 0 || !is_alignment(alignment) {
            return None;
        }
        let request = Request { held, ..Request::new(bytes, alignment)? };
        self.quickly(|allocator| allocator.try_allocate(request))
    }

    /// Serves a request from what is held.
    fn serve(&self, mut state: Guard<'_, State>, request: Request, alignment: u64) -> Option<Allocation> {
        let served = if request.bytes == 0 {
            Some(Allocation::NOTHING)
        } else {
            state.allocator.try_allocate(request).map(|served| state.surround(served, alignment))
        };
        drop(state);
        self.settle();
        served
    }

    /// Bytes that each request takes more for red zones.
    pub(super) fn margins(&self) -> u64 {
        if self.options.guard { MARGINS } else { 0 }
    }

    /// A request with room for red zones in guard mode.
    pub(super) fn request(&self, bytes: u64, alignment: u64) -> Result<Request, AllocError> {
        let padded = bytes.checked_add(self.margins()).ok_or(AllocError::TooLarge { bytes })?;
        let wide = request(padded, alignment).map_err(|error| match error {
            AllocError::TooLarge { .. } => AllocError::TooLarge { bytes },
            other => other,
        })?;
        Ok(Request { bytes, ..wide })
    }
}

fn request(bytes: u64, alignment: u64) -> Result<Request, AllocError> {
    if !is_alignment(alignment) {
        return Err(AllocError::BadAlignment { alignment });
    }
    Request::new(bytes, alignment).ok_or(AllocError::TooLarge { bytes })
}

fn is_alignment(alignment: u64) -> bool {
    alignment.is_power_of_two() && alignment <= MAX_ALIGNMENT
}

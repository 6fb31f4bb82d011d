//! Questions about requests to come, and about refusals.

use super::Pool;
use super::advise::{Depth, Surroundings};
use super::state::State;
use crate::allocator::{Request, Supply};
use crate::details::Details;
use crate::error::{AllocError, Unusable};
use crate::kept::{KeptRegion, kept};
use crate::refusal::{OutOfMemory, Verdict};
use crate::units::GRANULE;

impl Pool {
    /// Whether a request of `bytes` bytes would be served now, provided that the source grants as much as its
    /// [`Gauge`](crate::Gauge) says it may, and the limit allows. A closed pool serves nothing.
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

    /// Why a request of `bytes` bytes would be refused now, with details; none if it would be served, as
    /// [`Pool::can_allocate`] says.
    ///
    /// # Errors
    /// When the request is out of range or the pool cannot be used.
    ///
    /// # Cost
    /// Linear in the regions if it would be served; else that of [`Pool::look_into`].
    pub fn explain(&self, bytes: u64) -> Result<Option<Box<OutOfMemory>>, AllocError> {
        self.would_refuse(bytes, true)
    }

    /// Adds to a refusal what the memory is used for at this moment, and the advice that takes a look at every chunk.
    ///
    /// # Errors
    /// In a forked child.
    ///
    /// # Cost
    /// Linear in the chunks, under the lock; some nanoseconds for each. A program of up to 512 allocations is played
    /// again, up to 20 times, without the lock.
    pub fn look_into(&self, refused: &mut OutOfMemory) -> Result<(), Unusable> {
        let request = Request { bytes: refused.requested, needed: refused.needed, owner: None, held: false };
        self.look_into_with(refused, request, &self.surroundings(&self.others()))
    }

    /// Whether nobody waits, nothing is pinned, no scope is open, and the pool is not closed: at a glance, and only at
    /// this moment.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.late.is_bare()
    }

    /// Its own number among all pools of the process.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The regions that a trim would leave, and what is in them.
    ///
    /// # Errors
    /// In a forked child.
    ///
    /// # Cost
    /// Linear in the chunks, under the lock.
    pub fn kept_regions(&self) -> Result<Vec<KeptRegion>, Unusable> {
        self.with_state(|state| {
            state.empty_quarantine();
            kept(&state.allocator)
        })
    }

    fn would_refuse(&self, bytes: u64, with_details: bool) -> Result<Option<Box<OutOfMemory>>, AllocError> {
        let request = self.request(bytes, GRANULE)?;
        if self.is_served_from_held(request)? {
            return Ok(None);
        }
        let around = self.surroundings(&self.others());
        let mut refused = self.with_state(|state| {
            let capped = self.cap_broken(state, request);
            let trim_on_oom = self.options.trim_on_oom;
            let fits =
                |state: &State, supply| state.allocator.would_serve(request.needed, trim_on_oom, supply);
            let possible = around.possible();
            let served = fits(state, possible) || (state.empty_quarantine() && fits(state, possible));
            if served && capped.is_none() {
                return None;
            }
            let source_refuses = !served && fits(state, Supply::UNLIMITED);
            let mut refused = self.refusal(state, request, source_refuses);
            if capped.is_some() {
                refused.verdict = Verdict::Scope;
                refused.capped = capped;
            }
            Some(refused)
        })?;
        if with_details && let Some(refused) = &mut refused {
            self.look_into_with(refused, request, &around)?;
        }
        Ok(refused)
    }

    /// Whether a request is served without a look at anything but the own free chunks.
    fn is_served_from_held(&self, request: Request) -> Result<bool, Unusable> {
        self.with_state(|state| {
            state.open()?;
            let has_chunk = request.bytes == 0 || state.allocator.has_free(request.needed);
            Ok(has_chunk && self.cap_broken(state, request).is_none())
        })?
    }

    fn look_into_with(
        &self,
        refused: &mut OutOfMemory,
        request: Request,
        around: &Surroundings,
    ) -> Result<(), Unusable> {
        refused.details = Some(Box::new(self.with_state(|state| {
            state.empty_quarantine();
            Details::new(&state.allocator)
        })?));
        refused.advice = self.advise(request, around, Depth::Thorough)?;
        Ok(())
    }
}

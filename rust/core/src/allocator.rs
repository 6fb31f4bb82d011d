//! The allocator alone: for one owner, without a lock.
//!
//! Longer than 300 lines: the methods of one class, half of them documentation.

use alloc::vec::Vec;

use crate::chunk::Chunk;
use crate::chunk::region::RegionId;
use crate::error::{AllocError, FreeError, GrantFault, LimitError, OptionsError, ResizeError, Shortage};
use crate::options::Options;
use crate::policy::growth::Plan;
use crate::report::snapshot::Snapshot;
use crate::request::Request;
use crate::source::{Grant, RegionSource, ReserveError};
use crate::stats::Stats;
use crate::tables::check::{Violation, check};
use crate::tables::free_target::FreeTarget;
use crate::tables::{Allocation, ChunkRequest, Limit, Tables, Tail};
use crate::units::{GRANULE, MAX_BYTES, round_up};

/// A best-fit allocator over regions from one source, for one owner.
///
/// It makes the decisions of a [`Pool`](crate::Pool) with the same options, and works on `&mut self`: no lock, no
/// thread-local value, no look at the process. It has no scopes, no guard mode and no waiting, and its refusals come
/// without advice. A pool is for threads that share.
///
/// ```
/// use allotment::source::AddressSpace;
/// use allotment::{Allocator, Options, Request};
///
/// let mut allocator = Allocator::new(AddressSpace::new(0), Options::new(64 << 20))?;
/// let a = allocator.allocate(1000)?;
/// let b = allocator.allocate(Request::new(4096).align(1 << 16))?;
/// assert_eq!((a.size, b.address % (1 << 16)), (1024, 0));
/// allocator.free(a.address)?;
/// allocator.free(b.address)?;
/// assert_eq!(allocator.trim(), 2 << 20);
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Allocator<S: RegionSource> {
    tables: Tables,
    options: Options,
    /// The address of zero bytes.
    no_address: u64,
    source: S,
}

impl<S: RegionSource> Allocator<S> {
    /// Creates an allocator over `source`. Reserves nothing before the first allocation.
    ///
    /// # Errors
    /// If an option is out of range, or is one of pools: guard mode, or a wait.
    pub fn new(source: S, options: Options) -> Result<Self, OptionsError> {
        options.check()?;
        if options.guard {
            return Err(OptionsError::OnlyForPools { option: "guard" });
        }
        if options.elastic {
            return Err(OptionsError::OnlyForPools { option: "elastic" });
        }
        if !options.wait.is_zero() {
            return Err(OptionsError::OnlyForPools { option: "wait" });
        }
        let tables = options.tables(&source);
        let no_address = if tables.is_zero_based { u64::MAX } else { 0 };
        Ok(Self { tables, options, no_address, source })
    }

    /// Returns the options that the allocator was created with.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Returns the source.
    #[must_use]
    pub fn source(&self) -> &S {
        &self.source
    }

    /// Returns the source, mutably. The allocator's regions must stay granted.
    pub fn source_mut(&mut self) -> &mut S {
        &mut self.source
    }

    /// Allocates memory for a request, or for a number of bytes; zero bytes give an allocation without an address.
    ///
    /// # Errors
    /// If no memory is available, or the request is out of range.
    #[inline]
    pub fn allocate<'a>(&mut self, request: impl Into<Request<'a>>) -> Result<Allocation, AllocError> {
        let wanted = request.into();
        if wanted.is_plain()
            && let Some(request) = ChunkRequest::new(wanted.bytes(), wanted.alignment())
            && let Some(allocation) = self.tables.try_allocate(request)
        {
            return Ok(allocation);
        }
        self.allocate_slow(wanted)
    }

    #[cold]
    #[inline(never)]
    fn allocate_slow(&mut self, wanted: Request<'_>) -> Result<Allocation, AllocError> {
        let (bytes, alignment) = (wanted.bytes(), wanted.alignment());
        if !wanted.has_valid_alignment() {
            return Err(AllocError::BadAlignment { alignment });
        }
        let mut request = ChunkRequest::new(bytes, alignment).ok_or(AllocError::TooLarge { bytes })?;
        if bytes == 0 {
            return Ok(Allocation::nothing(self.no_address));
        }
        request.owner = wanted.tag_name().map(|tag| self.tables.owners.tag(None, &tag.into()));
        if let Some(owner) = request.owner {
            self.tables.owners.account_pending(owner, request.rounded());
        }
        let served = self.serve(request);
        if served.is_err()
            && let Some(owner) = request.owner
        {
            self.tables.owners.account_settled(owner, request.rounded());
        }
        served
    }

    /// Fits, grows, releases and grows again, or refuses.
    fn serve(&mut self, request: ChunkRequest) -> Result<Allocation, AllocError> {
        if let Some(allocation) = self.tables.try_allocate(request) {
            return Ok(allocation);
        }
        let mut source_refused = false;
        if let Some(allocation) = self.grow(request, &mut source_refused)? {
            return Ok(allocation);
        }
        if self.options.trim_on_oom && self.tables.release_would_help(request.needed) {
            self.release_free_regions();
            // The best fit may be another chunk now, which holds an aligned piece.
            if let Some(allocation) = self.tables.try_allocate(request) {
                return Ok(allocation);
            }
            if let Some(allocation) = self.grow(request, &mut source_refused)? {
                return Ok(allocation);
            }
        }
        self.tables.counters.account_refuse();
        Err(AllocError::OutOfMemory(self.tables.out_of_memory(request, source_refused, 0).into()))
    }

    /// Plans, reserves and adopts. Returns `None` if the limit leaves no room, or if the source declined every size.
    fn grow(
        &mut self,
        request: ChunkRequest,
        source_refused: &mut bool,
    ) -> Result<Option<Allocation>, AllocError> {
        if let Some(plan) = self.tables.plan_arena(request.needed)
            && let Some(allocation) = self.reserve(request, &plan)?
        {
            return Ok(Some(allocation));
        }
        let Some(plan) = self.tables.plan(request) else { return Ok(None) };
        let allocation = self.reserve(request, &plan)?;
        *source_refused |= allocation.is_none();
        Ok(allocation)
    }

    /// Calls the source for the sizes of a plan. Returns `None` if it declined all of them.
    fn reserve(&mut self, request: ChunkRequest, plan: &Plan) -> Result<Option<Allocation>, AllocError> {
        for bytes in plan.sizes() {
            match self.source.reserve(bytes, GRANULE) {
                Ok(grant) if self.adopt(plan, grant)? => return Ok(self.tables.try_allocate(request)),
                Ok(_) | Err(ReserveError::Declined) => {}
                Err(ReserveError::Failed(failure)) => {
                    self.tables.counters.account_refuse();
                    let refused = self.tables.out_of_memory(request, true, 0).into();
                    return Err(AllocError::SourceFailed { failure, refused });
                }
            }
        }
        Ok(None)
    }

    /// Makes a grant a region; returns false if it has the wrong size and was released.
    fn adopt(&mut self, plan: &Plan, grant: Grant) -> Result<bool, AllocError> {
        if let Some(fault) = self.tables.grant_fault(grant) {
            // An overlapping grant is not released: its bytes belong to a region in use.
            if fault != GrantFault::Overlap {
                self.source.release(grant);
            }
            return Err(AllocError::BadGrant { grant, fault });
        }
        if grant.bytes < plan.needed || grant.bytes > plan.room {
            self.source.release(grant);
            return Ok(false);
        }
        self.tables.adopt(grant, plan);
        Ok(true)
    }

    /// Frees the allocation at `address`; the address of zero bytes is accepted and does nothing.
    ///
    /// # Errors
    /// If no allocation starts there; nothing is changed.
    #[inline]
    pub fn free(&mut self, address: u64) -> Result<(), FreeError> {
        match self.tables.free(address, FreeTarget::ANY) {
            Some(()) => Ok(()),
            None if address == self.no_address => Ok(()),
            None => Err(FreeError::NotAllocated { address }),
        }
    }

    /// Changes the allocation at `address` to `bytes` bytes without moving it, and returns it as it is then: grown
    /// into the free memory after it, or without its tail.
    ///
    /// # Errors
    /// If it cannot grow that far, with the bytes that it has and those that it could have; also if no allocation
    /// starts there. Nothing is changed then.
    pub fn resize(&mut self, address: u64, bytes: u64) -> Result<Allocation, ResizeError> {
        if bytes == 0 {
            return Err(ResizeError::ZeroBytes { address });
        }
        let needed = if bytes <= MAX_BYTES { round_up(bytes) } else { u64::MAX };
        let resized = self.tables.resize(address, FreeTarget::ANY, (bytes, needed), Tail::Free);
        match resized.ok_or(ResizeError::NotAllocated { address })? {
            Ok(size) => {
                let id = self.tables.chunk_at(address).map_or(0, Chunk::number);
                Ok(Allocation { address, size, requested: bytes, id })
            }
            Err(Shortage::Neighbour { size, possible }) => {
                Err(ResizeError::NoRoom { address, bytes, size, possible })
            }
            Err(Shortage::Scope { size, limit }) => {
                Err(ResizeError::ScopeLimit { address, bytes, size, limit })
            }
        }
    }

    /// Returns the region that contains `address`, and the offset of `address` in it; `None` if there is none.
    #[must_use]
    pub fn region_of(&self, address: u64) -> Option<(RegionId, u64)> {
        self.tables.regions.locate(address)
    }

    /// Releases all wholly free regions to the source; returns their bytes.
    pub fn trim(&mut self) -> u64 {
        self.release_free_regions()
    }

    /// Returns the current limit in bytes.
    #[must_use]
    pub fn limit(&self) -> u64 {
        self.tables.limit
    }

    /// Changes the limit in bytes.
    ///
    /// # Errors
    /// If the limit is out of range, or below the reserved bytes.
    pub fn set_limit(&mut self, limit: u64) -> Result<(), LimitError> {
        if limit == 0 || limit > MAX_BYTES {
            return Err(LimitError::OutOfRange { limit });
        }
        let reserved = self.tables.counters.reserved();
        if reserved > limit {
            let trim_helps = reserved - self.tables.releasable() <= limit;
            return Err(LimitError::BelowReserved { limit, reserved, after_trim: false, trim_helps });
        }
        let set_by = self.tables.limit().set_by;
        let growth = self.tables.grows();
        self.tables.change(Limit { bytes: limit, set_by }, growth);
        Ok(())
    }

    /// Returns the counters.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.tables.stats()
    }

    /// Sets every peak to its current value; cumulative counters stay.
    pub fn reset_peaks(&mut self) {
        self.tables.counters.reset_peaks();
    }

    /// Returns a copy of all regions and chunks.
    ///
    /// # Cost
    /// Linear in the number of chunks.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::new(&self.options.name, &self.tables)
    }

    /// Checks all invariants and returns the first violation. For tests.
    ///
    /// # Errors
    /// The violation.
    pub fn check(&self) -> Result<(), Violation> {
        check(&self.tables)
    }

    fn release_free_regions(&mut self) -> u64 {
        let regions: Vec<Grant> = self.tables.take_free_regions();
        let mut bytes = 0;
        for region in regions {
            self.source.release(region);
            bytes += region.bytes;
        }
        bytes
    }
}

/// Releases wholly free regions. A region with a live allocation stays reserved for ever, as its user may still access
/// it.
impl<S: RegionSource> Drop for Allocator<S> {
    fn drop(&mut self) {
        self.release_free_regions();
    }
}

#[cfg(test)]
mod tests;

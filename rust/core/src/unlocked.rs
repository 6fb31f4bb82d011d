//! The allocator alone, without pool, lock and source, for benchmarks of locks around it.

use crate::free_target::FreeTarget;
use crate::policy::{Policy, SplitRule};
use crate::source::{AddressSpace, Grant};
use crate::tables::{Allocation, ChunkRequest, Limit, Tables};
use crate::units::GRANULE;

/// The allocator of a pool with default options, over one region of made-up addresses.
#[derive(Debug)]
pub struct UnlockedAllocator(Tables);

impl UnlockedAllocator {
    /// Creates an allocator over `bytes` bytes, which are a multiple of the granule.
    ///
    /// # Panics
    /// If `bytes` is 0 or no such multiple.
    #[must_use]
    pub fn new(bytes: u64) -> Self {
        let limit = Limit { bytes, set_by: "bytes".into() };
        let split_rule = SplitRule { policy: Policy::default(), fraction: 0.0 };
        let mut allocator = Tables::new(limit, false, split_rule, false);
        let plan = ChunkRequest::new(1, GRANULE).and_then(|request| allocator.plan(request));
        let grant = Grant { address: AddressSpace::START, bytes };
        assert_eq!(allocator.grant_fault(grant), None, "a region");
        allocator.adopt(grant, &plan.expect("room for a granule"));
        Self(allocator)
    }

    /// Allocates at least `bytes` bytes; returns `None` if no free chunk fits.
    #[inline]
    pub fn allocate(&mut self, bytes: u64) -> Option<Allocation> {
        self.0.try_allocate(ChunkRequest::new(bytes, GRANULE)?)
    }

    /// Frees the allocation at `address`; returns `None` if there is none.
    #[inline]
    pub fn free(&mut self, address: u64) -> Option<()> {
        self.0.free(address, FreeTarget::ANY)
    }
}

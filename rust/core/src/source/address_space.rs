//! Made-up addresses: for replays, for tests, and for memory that this process cannot access.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicU64, Ordering};

use super::{Gauge, Grant, Headroom, RegionSource, ReserveError};
use crate::units::{MAX_BYTES, round_down};

/// Grants each span where the last one ended, plus a gap. No memory backs the addresses.
///
/// ```text
/// START            gap              gap
///   ├── grant 1 ──┤···├── grant 2 ──┤···├── …      released addresses are not reused
/// ```
#[derive(Debug)]
pub struct AddressSpace(Arc<Next>);

/// The start of the next grant.
#[derive(Debug)]
struct Next {
    address: AtomicU64,
    gap: u64,
}

impl AddressSpace {
    /// The first granted address.
    pub const START: u64 = 1 << 32;

    /// Creates a source whose grants lie `gap` bytes apart; with 0 they are adjacent.
    ///
    /// # Panics
    /// If `gap` is not a multiple of [`GRANULE`](crate::GRANULE).
    #[must_use]
    pub fn new(gap: u64) -> Self {
        assert!(gap.is_multiple_of(crate::GRANULE), "a gap of {gap} bytes is not a multiple of the granule");
        Self(Arc::new(Next { address: AtomicU64::new(Self::START), gap }))
    }
}

impl RegionSource for AddressSpace {
    fn reserve(&mut self, bytes: u64, _alignment: u64) -> Result<Grant, ReserveError> {
        let Next { address: next, gap } = &*self.0;
        let address = next.load(Ordering::Relaxed);
        let end = address.checked_add(bytes).and_then(|end| end.checked_add(*gap));
        let end = end.filter(|&end| end <= MAX_BYTES).ok_or(ReserveError::Declined)?;
        next.store(end, Ordering::Relaxed);
        Ok(Grant { address, bytes })
    }

    fn release(&mut self, _region: Grant) {}

    fn joins_regions(&self) -> bool {
        self.0.gap == 0
    }

    fn gauge(&self) -> Option<Arc<dyn Gauge>> {
        Some(Arc::clone(&self.0) as _)
    }
}

impl Gauge for Next {
    fn headroom(&self) -> Headroom {
        let left = MAX_BYTES - self.address.load(Ordering::Relaxed);
        let bytes = round_down(left.saturating_sub(self.gap));
        Headroom { guaranteed: bytes, maximum: bytes, grants_released: false, is_sequential: self.gap == 0 }
    }
}

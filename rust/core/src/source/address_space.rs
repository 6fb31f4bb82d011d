//! Made-up addresses: for replays, for tests, and for memory that this process cannot access.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicU64, Ordering};

use thiserror::Error;

use super::{Gauge, Grant, Headroom, PageSource, RegionSource, ReserveError, SourceFailure};
use crate::units::{GRANULE, MAX_BYTES, align_up, round_down};

/// The page size of pools that set none: that of huge pages, and of CUDA's mappings.
pub(super) const PAGE_SIZE: u64 = 2 << 20;

/// Grants each span where the last one ended, plus a gap. No memory backs the addresses.
///
/// ```text
/// START            gap              gap
///   ├── grant 1 ──┤···├── grant 2 ──┤···├── …      released addresses are not reused
/// ```
///
/// As a [`PageSource`] it counts the committed bytes.
#[derive(Debug)]
pub struct AddressSpace {
    next: Arc<Next>,
    committed: Committed,
}

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
        let next = Arc::new(Next { address: AtomicU64::new(Self::START), gap });
        Self { next, committed: Committed(0) }
    }

    fn take(&self, bytes: u64, alignment: u64) -> Result<Grant, ReserveError> {
        let Next { address: next, gap } = &*self.next;
        let address = align_up(next.load(Ordering::Relaxed), alignment);
        let end = address.checked_add(bytes).and_then(|end| end.checked_add(*gap));
        let end = end.filter(|&end| end <= MAX_BYTES).ok_or(ReserveError::Declined)?;
        next.store(end, Ordering::Relaxed);
        Ok(Grant { address, bytes })
    }
}

impl RegionSource for AddressSpace {
    fn reserve(&mut self, bytes: u64, _alignment: u64) -> Result<Grant, ReserveError> {
        self.take(bytes, GRANULE)
    }

    fn release(&mut self, _region: Grant) {}

    fn joins_regions(&self) -> bool {
        self.next.gap == 0
    }

    fn pages(&mut self) -> Option<&mut dyn PageSource> {
        Some(self)
    }

    fn gauge(&self) -> Option<Arc<dyn Gauge>> {
        Some(Arc::clone(&self.next) as _)
    }
}

impl PageSource for AddressSpace {
    fn granule(&self) -> u64 {
        GRANULE
    }

    fn page_size(&self) -> u64 {
        PAGE_SIZE
    }

    fn reserve_addresses(&mut self, bytes: u64, page_size: u64) -> Result<Grant, ReserveError> {
        self.take(bytes, page_size)
    }

    fn release_addresses(&mut self, _range: Grant) {}

    fn commit(&mut self, span: Grant) -> Result<(), ReserveError> {
        self.committed.add(span)
    }

    /// Counts the bytes as taken.
    ///
    /// # Panics
    /// If more bytes are taken than were committed.
    fn decommit(&mut self, span: Grant) -> Result<(), SourceFailure> {
        self.committed.subtract(span);
        Ok(())
    }

    fn move_pages(&mut self, _from: Grant, _to: u64) -> Result<(), ReserveError> {
        Ok(())
    }

    fn read(&mut self, address: u64, _into: &mut [u8]) -> Result<(), SourceFailure> {
        Err(no_content(address))
    }

    fn write(&mut self, address: u64, _from: &[u8]) -> Result<(), SourceFailure> {
        Err(no_content(address))
    }
}

/// A number of committed bytes.
#[derive(Debug)]
pub(super) struct Committed(pub(super) u64);

impl Committed {
    pub(super) fn add(&mut self, span: Grant) -> Result<(), ReserveError> {
        self.0 = self.0.checked_add(span.bytes).ok_or(ReserveError::Declined)?;
        Ok(())
    }

    pub(super) fn subtract(&mut self, span: Grant) {
        let left = self.0.checked_sub(span.bytes);
        self.0 = left.unwrap_or_else(|| panic!("{span:?} is more than the {} committed bytes", self.0));
    }
}

/// Returns the error of reading or writing at an address without memory.
pub(super) fn no_content(address: u64) -> SourceFailure {
    Arc::new(NoContent { address })
}

#[derive(Debug, Error)]
#[error("the address {address:#x} is made up: no memory backs it, so it has no content to read or write")]
struct NoContent {
    address: u64,
}

impl Gauge for Next {
    fn headroom(&self) -> Headroom {
        let left = MAX_BYTES - self.address.load(Ordering::Relaxed);
        let bytes = round_down(left.saturating_sub(self.gap));
        Headroom { guaranteed: bytes, maximum: bytes, grants_released: false, is_sequential: self.gap == 0 }
    }
}

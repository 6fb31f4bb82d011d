//! Made-up descending addresses: each span lies below the previous one, as operating systems usually place them.

use super::address_space::{Committed, PAGE_SIZE, no_content};
use super::{AddressSpace, Grant, PageSource, RegionSource, ReserveError, SourceFailure};
use crate::units::{GRANULE, MAX_BYTES};

/// Grants each span below the start of the previous one, less a gap, from the largest address down.
///
/// No memory backs the addresses, released addresses are not reused, and regions are not joined.
#[derive(Debug)]
pub struct DescendingAddresses {
    /// The end of the next span.
    end: u64,
    gap: u64,
    committed: Committed,
}

impl DescendingAddresses {
    /// Creates a source whose grants lie `gap` bytes apart.
    ///
    /// # Panics
    /// If `gap` is not a multiple of [`GRANULE`](crate::GRANULE).
    #[must_use]
    pub fn new(gap: u64) -> Self {
        assert!(gap.is_multiple_of(crate::GRANULE), "a gap of {gap} bytes is not a multiple of the granule");
        Self { end: MAX_BYTES, gap, committed: Committed(0) }
    }

    /// Takes addresses; `alignment` is a power of two.
    fn take(&mut self, bytes: u64, alignment: u64) -> Result<Grant, ReserveError> {
        let start = self.end.checked_sub(bytes).ok_or(ReserveError::Declined)?;
        let address = start & !(alignment - 1);
        let next = address.checked_sub(self.gap).filter(|&next| next >= AddressSpace::START);
        self.end = next.ok_or(ReserveError::Declined)?;
        Ok(Grant { address, bytes })
    }
}

impl RegionSource for DescendingAddresses {
    fn reserve(&mut self, bytes: u64, _alignment: u64) -> Result<Grant, ReserveError> {
        self.take(bytes, GRANULE)
    }

    fn release(&mut self, _region: Grant) {}

    fn pages(&mut self) -> Option<&mut dyn PageSource> {
        Some(self)
    }
}

impl PageSource for DescendingAddresses {
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

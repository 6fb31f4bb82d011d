//! Made-up descending addresses: each span lies below the previous one, as operating systems usually place them.

use super::{AddressSpace, Grant, RegionSource, ReserveError};
use crate::units::MAX_BYTES;

/// Grants each span below the start of the previous one, less a gap, from the largest address down.
///
/// No memory backs the addresses, released addresses are not reused, and regions are not joined.
#[derive(Debug)]
pub struct DescendingAddresses {
    /// The end of the next span.
    end: u64,
    gap: u64,
}

impl DescendingAddresses {
    /// Creates a source whose grants lie `gap` bytes apart.
    ///
    /// # Panics
    /// If `gap` is not a multiple of [`GRANULE`](crate::GRANULE).
    #[must_use]
    pub fn new(gap: u64) -> Self {
        assert!(gap.is_multiple_of(crate::GRANULE), "a gap of {gap} bytes is not a multiple of the granule");
        Self { end: MAX_BYTES, gap }
    }
}

impl RegionSource for DescendingAddresses {
    fn reserve(&mut self, bytes: u64, _alignment: u64) -> Result<Grant, ReserveError> {
        let address = self.end.checked_sub(bytes).ok_or(ReserveError::Declined)?;
        let next = address.checked_sub(self.gap).filter(|&next| next >= AddressSpace::START);
        self.end = next.ok_or(ReserveError::Declined)?;
        Ok(Grant { address, bytes })
    }

    fn release(&mut self, _region: Grant) {}
}

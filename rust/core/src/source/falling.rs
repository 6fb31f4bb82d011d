//! Made-up addresses that fall: each span lies below the one before, as operating systems usually place them.

use super::{AddressSpace, Grant, Refusal, RegionSource};
use crate::units::MAX_BYTES;

/// Grants each span where the last one starts, less a gap, from the largest address down.
///
/// There is no memory behind the addresses, released addresses are not used again, and regions are not joined.
#[derive(Debug)]
pub struct FallingAddresses {
    /// The end of the next span.
    end: u64,
    gap: u64,
}

impl FallingAddresses {
    /// A source whose grants lie `gap` bytes apart.
    ///
    /// # Panics
    /// When `gap` is not a multiple of [`GRANULE`](crate::GRANULE).
    #[must_use]
    pub fn new(gap: u64) -> Self {
        assert!(gap.is_multiple_of(crate::GRANULE), "a gap of {gap} bytes is not a multiple of the granule");
        Self { end: MAX_BYTES, gap }
    }
}

impl RegionSource for FallingAddresses {
    fn reserve(&mut self, bytes: u64, _alignment: u64) -> Result<Grant, Refusal> {
        let address = self.end.checked_sub(bytes).ok_or(Refusal::Declined)?;
        let next = address.checked_sub(self.gap).filter(|&next| next >= AddressSpace::START);
        self.end = next.ok_or(Refusal::Declined)?;
        Ok(Grant { address, bytes })
    }

    fn release(&mut self, _region: Grant) {}
}

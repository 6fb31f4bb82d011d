//! Which allocation a free takes back, of those that may be at its address.
//!
//! An allocation is held while a runtime frees it by its own rules, or a buffer shows its memory: a bit of the number
//! in its chunk says so. A free by address alone, or by number, leaves it; only [`Claim::HELD`] takes it back.

use std::num::NonZeroU64;

/// In the number of a chunk: its allocation is held. No pool makes so many allocations.
pub(crate) const HELD: u64 = 1 << 63;

/// A mask and what is expected under it: one comparison, whichever claim it is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Claim {
    expected: u64,
    mask: u64,
}

impl Claim {
    /// Any allocation that is not held.
    pub(crate) const ANY: Self = Self { expected: 0, mask: HELD };
    /// An allocation that is held.
    pub(crate) const HELD: Self = Self { expected: HELD, mask: HELD };

    /// The allocation of this number, if it is not held.
    #[inline(always)]
    pub(crate) fn number(id: NonZeroU64) -> Self {
        Self { expected: id.get(), mask: u64::MAX }
    }

    /// Whether the claim is good for the chunk of this number.
    #[inline(always)]
    pub(crate) fn takes(self, id: Option<NonZeroU64>) -> bool {
        (id.map_or(0, NonZeroU64::get) ^ self.expected) & self.mask == 0
    }

    /// Whether the claim would be good for the chunk of this number if that were not held.
    pub(crate) fn is_kept_off(self, id: Option<NonZeroU64>) -> bool {
        let number = id.map_or(0, NonZeroU64::get);
        number & HELD != 0 && (number ^ self.expected) & self.mask & !HELD == 0
    }
}

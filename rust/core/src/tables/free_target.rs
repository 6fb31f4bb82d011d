//! The allocation that a free refers to: any at its address, one by number, or a held one.
//!
//! An allocation is held while a runtime frees it by its own rules, or while a buffer exposes its memory. A bit of
//! its number records this. A free by address or by number leaves held allocations alone; only [`FreeTarget::HELD`]
//! frees them.

use core::num::NonZeroU64;

/// Bit of a chunk's number: the allocation is held. No pool makes 2^63 allocations.
pub(crate) const HELD: u64 = 1 << 63;

/// Bit of a chunk's number: the chunk is lent to thread caches, which know the allocation in it. No free by a caller
/// matches it.
pub(crate) const LENT: u64 = 1 << 62;

/// A masked comparison with a chunk's number: one instruction sequence for every kind of target.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FreeTarget {
    expected: u64,
    mask: u64,
}

impl FreeTarget {
    /// Any allocation that is not held.
    pub(crate) const ANY: Self = Self { expected: 0, mask: HELD | LENT };
    /// Any allocation that is held.
    pub(crate) const HELD: Self = Self { expected: HELD, mask: HELD };
    /// Any chunk that is lent.
    pub(crate) const LENT: Self = Self { expected: LENT, mask: LENT };

    /// The allocation with this number, unless it is held.
    #[inline(always)]
    pub(crate) fn number(id: NonZeroU64) -> Self {
        Self { expected: id.get(), mask: u64::MAX }
    }

    /// Returns whether a chunk with this number matches.
    #[inline(always)]
    pub(crate) fn matches(self, id: Option<NonZeroU64>) -> bool {
        (id.map_or(0, NonZeroU64::get) ^ self.expected) & self.mask == 0
    }

    /// Returns whether a chunk with this number would match if it were not held.
    pub(crate) fn is_blocked_by_hold(self, id: Option<NonZeroU64>) -> bool {
        let number = id.map_or(0, NonZeroU64::get);
        number & HELD != 0 && (number ^ self.expected) & self.mask & !HELD == 0
    }
}

//! Guard mode: red zones around allocations, poison and quarantine for freed memory.
//!
//! In a pool, a write past the end of an allocation corrupts its neighbour, and a write after a free corrupts the
//! next allocation at that address. Guard mode finds and reports such writes.
//!
//! ```text
//! chunk of a live allocation    │ red zone │ requested bytes │ red zone │
//!                               └ ≥ 1 granule ┴ the caller's address   └ ≥ 1 granule, to the chunk's end
//! chunk in quarantine           │ poison                              │   checked before its reuse
//! ```
//!
//! A [`MemoryGuard`] of the source reads and writes the memory; this file handles only numbers.

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use thiserror::Error;

use crate::tables::Allocation;
use crate::units::{Bytes, GRANULE};

/// The fill byte of red zones: not zero, not a small number, not text.
pub(crate) const RED_ZONE: u8 = 0xFA;
/// The fill byte of freed chunks.
pub(crate) const POISON: u8 = 0xFD;
/// The bytes that guard mode adds to each request: the minimum of both red zones.
pub(crate) const MARGINS: u64 = 2 * GRANULE;
/// The default quarantine: this fraction of the limit, up to [`MAX_QUARANTINE`] bytes.
const QUARANTINE_FRACTION: u64 = 8;
const MAX_QUARANTINE: u64 = 64 << 20;
/// The number of allocations that a leak report lists.
const MAX_LISTED: usize = 5;

/// Reads and writes the memory of a source for a pool in guard mode.
///
/// It receives spans within granted regions and accesses nothing else: see [`RegionSource::guard`].
///
/// [`RegionSource::guard`]: crate::RegionSource::guard
pub trait MemoryGuard: fmt::Debug + Send + Sync {
    /// Writes `byte` to each of the `bytes` bytes from `address`.
    fn fill(&self, address: u64, bytes: u64, byte: u8);

    /// Returns the offset of the first of `bytes` bytes from `address` that differs from `byte`; `None` if all are
    /// equal.
    fn first_other(&self, address: u64, bytes: u64, byte: u8) -> Option<u64>;

    /// Reports unreported damage and leaks when the pool with this name is dropped. The default does nothing. Must
    /// not panic.
    fn report(&self, _pool: &str, _damages: &[Damage], _leaks: Option<&Leaks>) {}
}

/// The place of an invalid write, relative to the allocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(not(feature = "_exhaustive"), non_exhaustive)]
pub enum DamagedPlace {
    /// Before the first byte of the allocation.
    Before,
    /// After the last requested byte.
    Behind,
    /// Inside the allocation, after it was freed.
    Freed,
}

impl DamagedPlace {
    /// Returns the name used by other languages.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Before => "before",
            Self::Behind => "behind",
            Self::Freed => "freed",
        }
    }
}

/// An invalid write that guard mode found after the fact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[cfg_attr(not(feature = "_exhaustive"), non_exhaustive)]
pub struct Damage {
    /// The place of the write.
    pub place: DamagedPlace,
    /// The address of the allocation.
    pub address: u64,
    /// The requested bytes of the allocation.
    pub requested: u64,
    /// The number of the allocation.
    pub id: u64,
    /// Distance of the first damaged byte from `address`; negative before it.
    pub offset: i64,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { place, address, requested, id, offset } = *self;
        write!(
            f,
            "memory damaged: allocation {id}, {requested} bytes at address {address:#x}, was written to "
        )?;
        match place {
            DamagedPlace::Before => write!(
                f,
                "in front of its start, first at offset {offset}: look for a negative index, or a neighbour that \
                 writes past its own end"
            ),
            DamagedPlace::Behind => write!(
                f,
                "past its end, first at offset {offset}: look for an index, a length or an element type that is \
                 too large"
            ),
            DamagedPlace::Freed => write!(
                f,
                "after it was freed, first at offset {offset}: look for a pointer or an array that outlives it"
            ),
        }
    }
}

/// The allocations that a pool still holds at its end.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(not(feature = "_exhaustive"), non_exhaustive)]
pub struct Leaks {
    /// The pool's name.
    pub name: String,
    /// All of them, the largest first.
    pub allocations: Vec<Allocation>,
}

impl Leaks {
    /// Returns `None` if there are no allocations.
    pub(crate) fn new(name: &str, mut allocations: Vec<Allocation>) -> Option<Self> {
        allocations.sort_unstable_by_key(|a| (core::cmp::Reverse(a.requested), a.id));
        (!allocations.is_empty()).then(|| Self { name: name.to_owned(), allocations })
    }

    /// Returns the total of the requested bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.allocations.iter().map(|allocation| allocation.requested).sum()
    }
}

/// Prints the number of allocations, their bytes, and the largest ones.
impl fmt::Display for Leaks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.allocations.len();
        let (noun, verb) = if count == 1 { ("allocation", "was") } else { ("allocations", "were") };
        let bytes = self.bytes();
        write!(f, "{}: {count} {noun} {verb} never freed, {bytes} bytes", self.name)?;
        if bytes >= 1024 {
            write!(f, " ({})", Bytes(bytes))?;
        }
        for Allocation { address, requested, id, .. } in self.allocations.iter().take(MAX_LISTED) {
            write!(f, "\n  allocation {id}: {requested} bytes at address {address:#x}")?;
        }
        match count.saturating_sub(MAX_LISTED) {
            0 => Ok(()),
            others => write!(f, "\n  and {others} more"),
        }
    }
}

/// Returns the default size of the quarantine in bytes for a pool of `limit` bytes.
pub(crate) fn default_quarantine(limit: u64) -> u64 {
    (limit / QUARANTINE_FRACTION).min(MAX_QUARANTINE)
}

#[cfg(test)]
mod tests;

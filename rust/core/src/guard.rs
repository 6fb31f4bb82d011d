//! Guard mode: red zones around every allocation, poison and quarantine for what was freed.
//!
//! A pool hides mistakes that separate allocations would not survive: a byte written past an end lands in a
//! neighbour, one written after a free in whoever comes next. In guard mode they are found, named, and told.
//!
//! ```text
//! chunk of a live allocation    │ red zone │ requested bytes │ red zone │
//!                               └ ≥ 1 granule ┴ the caller's address   └ ≥ 1 granule, to the chunk's end
//! chunk in quarantine           │ poison                              │   reused only after a look at it
//! ```
//!
//! The memory itself is touched by a [`MemoryGuard`], which the source brings along; here are numbers only.

use std::fmt;

use thiserror::Error;

use crate::allocator::Allocation;
use crate::units::{Bytes, GRANULE};

/// What a red zone is filled with: no zero, no small number, no text.
pub(crate) const RED_ZONE: u8 = 0xFA;
/// What a freed chunk is filled with.
pub(crate) const POISON: u8 = 0xFD;
/// Bytes that a request takes more in guard mode, for the least of both red zones.
pub(crate) const MARGINS: u64 = 2 * GRANULE;
/// The quarantine if nothing else is said: so much of the limit, and never more than so many bytes.
const QUARANTINE_SHARE: u64 = 8;
const MOST_QUARANTINE: u64 = 64 << 20;
/// How many allocations a report of leaks names.
const NAMED: usize = 5;

/// Touches the memory of a source on behalf of a pool in guard mode.
///
/// It gets spans of regions that are out, and touches nothing else: see [`RegionSource::guard`].
///
/// [`RegionSource::guard`]: crate::RegionSource::guard
pub trait MemoryGuard: fmt::Debug + Send + Sync {
    /// Writes `byte` to each of the `bytes` bytes from `address`.
    fn fill(&self, address: u64, bytes: u64, byte: u8);

    /// How far behind `address` lies the first of `bytes` bytes that is not `byte`; none if all are.
    fn first_other(&self, address: u64, bytes: u64, byte: u8) -> Option<u64>;

    /// The pool of that name is gone: its damage that nobody was told of, and what nobody can free any more. Does
    /// nothing unless it is overridden. It must not panic.
    fn last_words(&self, _pool: &str, _damages: &[Damage], _leaks: Option<&Leaks>) {}
}

/// Where memory was written to that was not to be written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DamagedPlace {
    /// In front of an allocation.
    Before,
    /// Past the last byte that was asked for.
    Behind,
    /// In an allocation that had been freed.
    Freed,
}

impl DamagedPlace {
    /// The word other programs see.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Before => "before",
            Self::Behind => "behind",
            Self::Freed => "freed",
        }
    }
}

/// Somebody wrote where nobody may: found in guard mode, after the fact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub struct Damage {
    /// Where it was written to.
    pub place: DamagedPlace,
    /// First byte of the allocation that it was written beside, or into after its free.
    pub address: u64,
    /// Bytes that were asked for.
    pub requested: u64,
    /// Number of that allocation.
    pub id: u64,
    /// The first damaged byte: its distance from `address`, negative in front of it.
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

/// The allocations that a pool still holds when nobody is left to free them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leaks {
    /// The pool's name.
    pub name: String,
    /// All of them, the largest first.
    pub allocations: Vec<Allocation>,
}

impl Leaks {
    /// None if there are no allocations.
    pub(crate) fn new(name: &str, mut allocations: Vec<Allocation>) -> Option<Self> {
        allocations.sort_unstable_by_key(|a| (std::cmp::Reverse(a.requested), a.id));
        (!allocations.is_empty()).then(|| Self { name: name.to_owned(), allocations })
    }

    /// Bytes asked for, over all of them.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.allocations.iter().map(|allocation| allocation.requested).sum()
    }
}

/// Fits a terminal: how many, how much, and the largest of them.
impl fmt::Display for Leaks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.allocations.len();
        let (noun, verb) = if count == 1 { ("allocation", "was") } else { ("allocations", "were") };
        let bytes = self.bytes();
        write!(f, "{}: {count} {noun} {verb} never freed, {bytes} bytes", self.name)?;
        if bytes >= 1024 {
            write!(f, " ({})", Bytes(bytes))?;
        }
        for Allocation { address, requested, id, .. } in self.allocations.iter().take(NAMED) {
            write!(f, "\n  allocation {id}: {requested} bytes at address {address:#x}")?;
        }
        match count.saturating_sub(NAMED) {
            0 => Ok(()),
            others => write!(f, "\n  and {others} more"),
        }
    }
}

/// Bytes of the quarantine of a pool of `limit` bytes, if nothing else is said.
pub(crate) fn default_quarantine(limit: u64) -> u64 {
    (limit / QUARANTINE_SHARE).min(MOST_QUARANTINE)
}

#[cfg(test)]
mod tests;

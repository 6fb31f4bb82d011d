//! A model of thread caches: which chunks are lent, where each of them is, and what the counters must show.
//!
//! A lent chunk is kept in the magazine of one cache, or is an allocation of a caller. It goes from one place to another
//! only by a decision, so that no two callers have it at a time and none is lost.

use std::collections::HashMap;

use allotment::{Allocation, Decision, Stats};

use crate::event::{AllocateWay, Answer, Call, FreeWay};
use crate::judge::{Judge, Known};

const GRANULE: u64 = 256;
const LARGEST: u64 = 32 << 10;

/// An allocation that a cache served, and that the allocator does not know.
#[derive(Debug)]
pub(crate) struct Served {
    pub(crate) address: u64,
    requested: u64,
    held: bool,
}

/// The lent chunks of a history.
#[derive(Debug, Default)]
pub(crate) struct Lending {
    /// By cache and size: the addresses of the kept chunks. The last was freed last.
    magazines: HashMap<(u64, u64), Vec<u64>>,
    /// By number.
    pub(crate) served: HashMap<u64, Served>,
    /// The size of each lent chunk, by address.
    lent: HashMap<u64, u64>,
    /// The cache that the pool locked last.
    locked: Option<u64>,
    /// The chunk that the last decision of the pool lent.
    last_lent: Option<u64>,
    /// Whether the peaks are those of before the last chunks that were lent.
    has_stale_peaks: bool,
}

/// Returns the size of the chunks that serve a request: 1 to 16 granules, or one of eight steps between powers of two.
fn class_size(bytes: u64) -> u64 {
    let mut step = GRANULE;
    while bytes > 16 * step {
        step *= 2;
    }
    bytes.next_multiple_of(step)
}

/// Returns the most chunks of a size that a cache keeps.
fn capacity(size: u64) -> usize {
    usize::try_from(((192 << 10) / size).min(64)).expect("a few")
}

impl Lending {
    pub(crate) fn is_empty(&self) -> bool {
        self.lent.is_empty()
    }

    pub(crate) fn is_lent(&self, address: u64) -> bool {
        self.lent.contains_key(&address)
    }

    /// Returns the number of the allocation in a lent chunk; `None` if a cache keeps it.
    pub(crate) fn served_at(&self, address: u64) -> Option<u64> {
        self.served.iter().find(|(_, served)| served.address == address).map(|(&id, _)| id)
    }

    pub(crate) fn lock(&mut self, cache: u64) {
        self.locked = Some(cache);
    }

    fn magazine(&mut self, cache: u64, size: u64) -> &mut Vec<u64> {
        self.magazines.entry((cache, size)).or_default()
    }

    fn locked_magazine(&mut self, size: u64) -> &mut Vec<u64> {
        let cache = self.locked.expect("a locked cache");
        self.magazine(cache, size)
    }

    fn keep(magazine: &mut Vec<u64>, size: u64, address: u64) {
        assert!(
            magazine.len() < capacity(size),
            "a cache keeps more than {} chunks of {size}",
            magazine.len()
        );
        magazine.push(address);
    }
}

impl Judge<'_> {
    /// Raises the peaks before the first decision of the pool that comes after a batch: a shadow sums up all chunks for
    /// that.
    pub(crate) fn end_lending(&mut self, next: Decision) {
        let continues = matches!(
            next,
            Decision::Lent { .. } | Decision::CacheServed { .. } | Decision::CacheFreed { .. }
        );
        if self.lending.has_stale_peaks && !continues {
            self.lending.has_stale_peaks = false;
            self.shadow.end_of_lending();
        }
        if !continues && !matches!(next, Decision::TakenBack { .. }) {
            self.lending.last_lent = None;
        }
    }

    pub(crate) fn lent(&mut self, address: u64, size: u64) {
        assert_eq!(size, class_size(size), "the size of a class");
        assert_eq!(self.shadow.lend(size), Some(address), "the best fit for a batch");
        assert!(self.lending.lent.insert(address, size).is_none(), "{address:#x} is lent twice");
        self.lending.has_stale_peaks = true;
        self.lending.last_lent = Some(address);
        Lending::keep(self.lending.locked_magazine(size), size, address);
    }

    pub(crate) fn taken_back(&mut self, address: u64) {
        let size = self.lending.lent.remove(&address).expect("a lent chunk");
        // The table of allocations may have no place for the chunk that was just lent.
        let has_no_place = self.lending.last_lent.take() == Some(address);
        let magazine = self.lending.locked_magazine(size);
        let place = if has_no_place { magazine.len() - 1 } else { 0 };
        let expected = magazine.get(place).copied();
        assert_eq!(expected, Some(address), "the chunk of this size that the cache has kept longest");
        magazine.remove(place);
        self.shadow.take_back(address);
    }

    pub(crate) fn withdrawn(&mut self, address: u64, id: u64) {
        let served = self.lending.served.remove(&id).expect("an allocation from a cache");
        assert_eq!(served.address, address, "the chunk of allocation {id}");
        assert!(self.lending.lent.remove(&address).is_some(), "a lent chunk");
        self.shadow.withdraw(address, id, served.requested);
        let Served { requested, held, .. } = served;
        *self.known_mut(id) = Known { address, requested, live: true, held, owner: None };
    }

    pub(crate) fn cache_served(&mut self, cache: u64, id: u64, event: usize, call: &Call) {
        let Call::Allocate { bytes, alignment, way, answer: Answer::Served(served), .. } = call else {
            panic!("allocation {id} of {call:?}")
        };
        assert!(!self.shadow.is_closed(), "an allocation from a closed pool");
        assert!(*bytes <= LARGEST && *alignment <= GRANULE, "not a request for a cache");
        let thread = self.order.thread_of(event);
        assert!(!self.owners.has_own(thread), "an allocation from a cache inside a scope");
        let size = class_size(*bytes);
        let address = self.lending.magazine(cache, size).pop().expect("a kept chunk");
        assert_eq!(
            *served,
            Allocation { address, size, requested: *bytes, id },
            "the chunk that was freed last"
        );
        let held = *way == AllocateWay::Held;
        let before = self.lending.served.insert(id, Served { address, requested: *bytes, held });
        assert!(before.is_none() && !self.has_known(id), "allocation {id} is served twice");
        self.served_in.insert(id, event);
        self.shadow.count_from_cache(*bytes);
    }

    pub(crate) fn cache_freed(&mut self, cache: u64, id: u64, event: usize, call: &Call) {
        let Call::Free { address, id: wanted, way, .. } = call else { panic!("free of {id} in {call:?}") };
        let served = self.lending.served.remove(&id).expect("an allocation from a cache");
        assert_eq!((served.address, id), (*address, *wanted), "another allocation is freed");
        assert_eq!(served.held, *way == FreeWay::Held, "a free of a held allocation");
        let size = self.lending.lent[address];
        Lending::keep(self.lending.magazine(cache, size), size, *address);
        self.freed_in.insert(id, event);
        self.frees += 1;
    }

    /// Returns the counters of this moment: what caches keep is free, and what they served counts as requested.
    #[expect(clippy::cast_precision_loss, reason = "a ratio for people")]
    pub(crate) fn stats(&self) -> Stats {
        let mut stats = self.shadow.stats();
        let Lending { lent, served, .. } = &self.lending;
        let in_callers_hands: u64 = served.values().map(|served| lent[&served.address]).sum();
        let requested: u64 = served.values().map(|served| served.requested).sum();
        let all: u64 = lent.values().sum();
        stats.thread_cached = all - in_callers_hands;
        stats.requested = stats.requested - all + requested;
        stats.in_use -= stats.thread_cached;
        stats.internal_fragmentation = stats.in_use - stats.requested;
        stats.free = stats.reserved - stats.in_use;
        stats.num_live -= (lent.len() - served.len()) as u64;
        let Stats { free, largest_free, .. } = stats;
        stats.fragmentation = if free == 0 { 0.0 } else { (free - largest_free) as f64 / free as f64 };
        stats
    }
}

//! The setup of a history: a source, the options of the pool, and its threads.

use std::time::Duration;

use allotment::source::{AddressSpace, Cap, Capped, FailingSource, RegionSource};
use allotment::{Options, Policy};

use crate::numbers::Numbers;
use crate::sources::{Descending, Scattered};

/// The threads of a history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Threads {
    /// All start at once, and rest now and then.
    Together(u64),
    /// One starts after the other, while the first are at work; the first ones end earlier.
    Late(u64),
    /// Hundreds of short ones, a few at a time.
    ForEachRequest { at_once: u64 },
}

/// A kind of source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Touching,
    Apart,
    Descending,
    Scattered,
    /// Grants at most this many bytes.
    Capped(u64),
    /// Declines about every third request.
    Declining,
}

/// One history, apart from what its threads do.
#[derive(Debug)]
pub(crate) struct Setup {
    pub(crate) seed: u64,
    pub(crate) options: Options,
    pub(crate) kind: Kind,
    pub(crate) threads: Threads,
    /// The calls of all threads together.
    pub(crate) calls: u64,
    /// The number of calls of a thread between two rests of all.
    pub(crate) rests_every: u64,
    /// A thread yields its core in every decision of this number, with the lock held; 0 for never.
    pub(crate) yields_in_every: u64,
    /// The most live allocations of a thread.
    pub(crate) most_live: usize,
    /// Whether threads open scopes and set tags.
    pub(crate) scopes: bool,
    /// Whether a thread may close the pool.
    pub(crate) closes: bool,
    /// Whether the clock is a shared counter, which orders the threads' reads of it.
    pub(crate) counts: bool,
}

impl Setup {
    /// Draws a setup with this many calls.
    pub(crate) fn new(seed: u64, calls: u64) -> Self {
        let mut random = Numbers::new(seed);
        let limit = (1 << (13 + random.below(14))) + random.below(1 << 13);
        let scopes = random.chance(30);
        let options = Options::new(limit)
            .growth(random.chance(75))
            .trim_on_oom(random.chance(75))
            .joins_regions([None, None, Some(true), Some(false)][random.place(4)])
            .policy(if random.chance(25) { Policy::Tight } else { Policy::TensorFlow })
            .wait(if random.chance(10) { Duration::from_micros(30) } else { Duration::ZERO })
            .owner_tags(scopes && random.chance(50))
            .thread_caches(random.chance(50));
        let at_once = 2 + random.below(7);
        let threads = match random.below(4) {
            0 | 1 => Threads::Together(at_once),
            2 => Threads::Late(at_once),
            _ => Threads::ForEachRequest { at_once },
        };
        let kind = match random.below(8) {
            0..3 => Kind::Touching,
            3 => Kind::Apart,
            4 => Kind::Descending,
            5 => Kind::Scattered,
            6 => Kind::Capped(limit / 8 * (1 + random.below(8))),
            _ => Kind::Declining,
        };
        Self {
            seed,
            options,
            kind,
            threads,
            calls,
            // A rest takes as long as hundreds of calls.
            rests_every: if random.chance(6) { 2 } else { 32 << random.below(8) },
            yields_in_every: [0, 0, 20, 200][random.place(4)],
            most_live: 1 + random.place(12),
            scopes,
            closes: random.chance(15),
            counts: random.chance(50),
        }
    }

    /// Returns whether the pool keeps caches for its threads.
    pub(crate) fn has_caches(&self) -> bool {
        self.options.thread_caches && !self.options.owner_tags
    }

    pub(crate) fn source(&self) -> Box<dyn RegionSource> {
        match self.kind {
            Kind::Touching => Box::new(AddressSpace::new(0)),
            Kind::Apart => Box::new(AddressSpace::new(256)),
            Kind::Descending => Box::new(Descending::new(0)),
            Kind::Scattered => Box::new(Scattered::new(self.seed)),
            Kind::Capped(bytes) => Box::new(Capped::new(AddressSpace::new(0), Cap::new(bytes))),
            Kind::Declining => {
                let mut random = Numbers::new(self.seed);
                Box::new(FailingSource::new(AddressSpace::new(0), move |_, _| random.chance(35)))
            }
        }
    }
}

//! Other allocators for comparison: one trait for their calls, one for playing whole scripts.
//!
//! Each allocator runs under its best conditions: those that write into the managed memory get an alignment of 16
//! bytes instead of 256, and only ours and TensorFlow's take a lock.
#![allow(dead_code, reason = "each benchmark takes its part")]

use std::time::{Duration, Instant};

use allotment::replay::Event;
use allotment::source::AddressSpace;
use allotment::{GRANULE, Options, Pool};
use buddy_system_allocator::FrameAllocator;

use crate::reference::{Events, Reference, Setup};

mod in_band;
mod tree_set;

use in_band::{System, Talc, Tlsf};
use tree_set::TreeSet;

/// More chunks than any script has; this allocator needs the number in advance.
const MOST_CHUNKS: u32 = 1 << 22;

/// An allocator under comparison.
pub(crate) trait Peer {
    /// The value that its free takes.
    type Block;

    /// Allocates at least `bytes` bytes; `None` if it refuses.
    fn allocate(&mut self, bytes: u64) -> Option<Self::Block>;

    fn free(&mut self, block: Self::Block);
}

/// Events in two forms: for our pool, and for TensorFlow's driver.
pub(crate) struct Script {
    events: Vec<Event>,
    theirs: Events,
    slots: usize,
}

impl Script {
    pub(crate) fn new(events: Vec<Event>) -> Self {
        let slot = |&(Event::Allocate { slot, .. } | Event::Free { slot }): &Event| slot as usize + 1;
        let slots = events.iter().map(slot).max().unwrap_or(0);
        Self { theirs: Events::new(&events), events, slots }
    }

    pub(crate) fn events(&self) -> &[Event] {
        &self.events
    }

    /// Returns the number of pairs of an allocation and a free, if all events are paired.
    pub(crate) fn pairs(&self) -> u32 {
        u32::try_from(self.events.len() / 2).expect("a count of pairs")
    }
}

/// An allocator and its live allocations. Slots persist between scripts.
pub(crate) trait Player {
    /// Plays a script and returns the elapsed time.
    ///
    /// # Panics
    /// If an allocation is refused.
    fn play(&mut self, script: &Script) -> Duration;

    /// Plays a script up to the first refusal; returns that event.
    fn play_until_refused(&mut self, script: &Script) -> Option<usize>;
}

/// An allocator by name.
pub(crate) struct Contender {
    pub(crate) name: &'static str,
    /// Whether it manages a fixed number of bytes.
    pub(crate) has_limit: bool,
    pub(crate) make: fn(u64) -> Box<dyn Player>,
}

/// The name of TensorFlow's allocator among the contenders.
pub(crate) const TENSORFLOW: &str = "TensorFlow";

/// The name of our pool by its blocks, which free themselves, among the contenders.
pub(crate) const BLOCKS: &str = "ours, `Block`";

/// Returns all contenders; without TensorFlow's allocator, and with a line that says so, where its driver is missing.
pub(crate) fn contenders() -> Vec<Contender> {
    let is_there = crate::table::is_there("TensorFlow's allocator", &crate::reference::availability());
    ALL.into_iter().filter(|contender| is_there || contender.name != TENSORFLOW).collect()
}

impl Contender {
    /// Creates one over `limit` bytes.
    pub(crate) fn make(&self, limit: u64) -> Box<dyn Player> {
        (self.make)(limit)
    }
}

/// Our pool, TensorFlow's allocator, and the others.
const ALL: [Contender; 10] = [
    Contender { name: "ours", has_limit: true, make: |limit| Box::new(Held::new(Ours::new(limit))) },
    Contender { name: BLOCKS, has_limit: true, make: |limit| Box::new(Held::new(Blocks::new(limit))) },
    Contender { name: TENSORFLOW, has_limit: true, make: |limit| Box::new(tensorflow(limit)) },
    Contender { name: "BTreeSet", has_limit: true, make: |limit| Box::new(Held::new(TreeSet::new(limit))) },
    Contender { name: "offset-allocator", has_limit: true, make: |limit| Box::new(Held::new(offset(limit))) },
    Contender { name: "rlsf", has_limit: true, make: |limit| Box::new(Held::new(Tlsf::new(limit))) },
    Contender { name: "talc", has_limit: true, make: |limit| Box::new(Held::new(Talc::new(limit))) },
    Contender { name: "buddy", has_limit: true, make: |limit| Box::new(Held::new(buddy(limit))) },
    Contender { name: "glibc", has_limit: false, make: |_| Box::new(Held::new(System(std::alloc::System))) },
    Contender {
        name: "mimalloc",
        has_limit: false,
        make: |_| Box::new(Held::new(System(mimalloc::MiMalloc))),
    },
];

/// An allocator with its slots.
pub(crate) struct Held<P: Peer> {
    pub(crate) peer: P,
    slots: Vec<Option<P::Block>>,
}

impl<P: Peer> Held<P> {
    pub(crate) fn new(peer: P) -> Self {
        Self { peer, slots: Vec::new() }
    }

    fn make_room(&mut self, script: &Script) {
        let slots = script.slots.max(self.slots.len());
        self.slots.resize_with(slots, || None);
    }

    /// Plays an event; returns whether it was served.
    #[inline]
    fn step(&mut self, event: Event) -> bool {
        match event {
            Event::Allocate { slot, bytes } => {
                let block = self.peer.allocate(bytes);
                let is_served = block.is_some();
                self.slots[slot as usize] = block;
                is_served
            }
            Event::Free { slot } => {
                let block = self.slots[slot as usize].take().expect("a script frees what it holds");
                self.peer.free(block);
                true
            }
        }
    }
}

impl<P: Peer> Player for Held<P> {
    fn play(&mut self, script: &Script) -> Duration {
        self.make_room(script);
        let start = Instant::now();
        for &event in &script.events {
            assert!(self.step(event), "the limit is meant to be ample");
        }
        start.elapsed()
    }

    fn play_until_refused(&mut self, script: &Script) -> Option<usize> {
        self.make_room(script);
        script.events.iter().position(|&event| !self.step(event))
    }
}

impl<P: Peer> Drop for Held<P> {
    fn drop(&mut self) {
        for block in self.slots.drain(..).flatten() {
            self.peer.free(block);
        }
    }
}

/// Our pool over made-up addresses, with lock, limit and all counters.
pub(crate) struct Ours(pub(crate) Pool);

impl Ours {
    pub(crate) fn new(limit: u64) -> Self {
        Self::with(Options::new(limit).trim_on_oom(false))
    }

    /// Creates one that splits off every remainder; by default remainders smaller than the request stay.
    pub(crate) fn splitting(limit: u64) -> Self {
        Self::with(Options::new(limit).trim_on_oom(false).fragmentation_fraction(f64::MIN_POSITIVE))
    }

    fn with(options: Options) -> Self {
        Self(Pool::new(AddressSpace::new(0), options).expect("options in range"))
    }
}

impl Peer for Ours {
    type Block = u64;

    fn allocate(&mut self, bytes: u64) -> Option<u64> {
        self.0.allocate(bytes).ok().map(|allocation| allocation.address)
    }

    fn free(&mut self, address: u64) {
        self.0.free(address).expect("a live allocation");
    }
}

/// Our pool by its blocks. They borrow it.
struct Blocks {
    pool: &'static Pool,
    owned: *mut Pool,
}

impl Blocks {
    fn new(limit: u64) -> Self {
        let owned = Box::into_raw(Box::new(Ours::new(limit).0));
        // SAFETY: it is not freed before `Blocks` is dropped, and `Held` drops its blocks first.
        Self { pool: unsafe { &*owned }, owned }
    }
}

impl Drop for Blocks {
    fn drop(&mut self) {
        // SAFETY: it came from `Box::into_raw`, and no block is left.
        drop(unsafe { Box::from_raw(self.owned) });
    }
}

impl Peer for Blocks {
    type Block = allotment::Block<&'static Pool>;

    fn allocate(&mut self, bytes: u64) -> Option<Self::Block> {
        self.pool.block(bytes).ok()
    }

    fn free(&mut self, block: Self::Block) {
        drop(block);
    }
}

pub(crate) fn tensorflow(limit: u64) -> Reference {
    Reference::new(&Setup { limit, joins: true, growth: true, ..Setup::NO_REFUSALS })
}

impl Player for Reference {
    /// A refusal here is a refusal of ours, too: both make the same decisions.
    fn play(&mut self, script: &Script) -> Duration {
        self.replay(&script.theirs)
    }

    fn play_until_refused(&mut self, script: &Script) -> Option<usize> {
        self.run(&script.theirs, None).iter().position(|step| step.offset < 0)
    }
}

/// It counts in 32-bit numbers, here of granules.
pub(crate) fn offset(limit: u64) -> offset_allocator::Allocator {
    let units = u32::try_from(limit / GRANULE).expect("a limit below 1 TiB");
    offset_allocator::Allocator::with_max_allocs(units, MOST_CHUNKS)
}

impl Peer for offset_allocator::Allocator {
    type Block = offset_allocator::Allocation;

    fn allocate(&mut self, bytes: u64) -> Option<Self::Block> {
        self.allocate(u32::try_from(bytes.div_ceil(GRANULE)).ok()?)
    }

    fn free(&mut self, block: Self::Block) {
        self.free(block);
    }
}

/// Its form for frames, here of a granule, keeps its bookkeeping beside the memory; the one for bytes walks a list of
/// free blocks on every free.
fn buddy(limit: u64) -> FrameAllocator {
    let mut frames = FrameAllocator::new();
    frames.add_frame(0, granules(limit));
    frames
}

impl Peer for FrameAllocator {
    /// First frame and number of frames.
    type Block = (usize, usize);

    fn allocate(&mut self, bytes: u64) -> Option<Self::Block> {
        let frames = granules(bytes);
        Some((self.alloc(frames)?, frames))
    }

    fn free(&mut self, (first, frames): Self::Block) {
        self.dealloc(first, frames);
    }
}

fn granules(bytes: u64) -> usize {
    usize::try_from(bytes.div_ceil(GRANULE)).expect("a machine of 64 bits")
}

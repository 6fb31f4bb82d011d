//! Allocators to stand beside ours: one trait for how each is asked, one for playing whole scripts.
//!
//! Each gets what suits it best: the ones that write into the memory they manage are asked for 16 bytes of
//! alignment, not for 256, and none but ours and TensorFlow's is behind a lock of the benchmark's making.
#![allow(dead_code, reason = "each benchmark takes its part")]

use std::time::{Duration, Instant};

use allotment::replay::Event;
use allotment::source::AddressSpace;
use allotment::{GRANULE, Options, Pool};
use buddy_system_allocator::FrameAllocator;

use crate::reference::{Events, Reference, Setup};

mod in_band;

use in_band::{System, Talc, Tlsf};

/// More chunks than any script here has; this peer wants to know before it starts.
const MOST_CHUNKS: u32 = 1 << 22;

/// An allocator that can be asked.
pub(crate) trait Peer {
    /// What it wants to have back.
    type Block: Copy;

    /// At least `bytes` bytes; none when it refuses.
    fn allocate(&mut self, bytes: u64) -> Option<Self::Block>;

    fn free(&mut self, block: Self::Block);
}

/// Events in both forms: ours, and that of TensorFlow's driver.
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

    /// Pairs of an allocation and a free, if every event is half of one.
    pub(crate) fn pairs(&self) -> u32 {
        u32::try_from(self.events.len() / 2).expect("a count of pairs")
    }
}

/// An allocator and what it has handed out. Slots stay held from one script to the next.
pub(crate) trait Player {
    /// # Panics
    /// When an allocation is refused.
    fn play(&mut self, script: &Script) -> Duration;

    /// Plays up to the first refusal and says which event that was.
    fn play_until_refused(&mut self, script: &Script) -> Option<usize>;
}

/// An allocator by name.
pub(crate) struct Contender {
    pub(crate) name: &'static str,
    /// Whether it manages a given number of bytes and no more.
    pub(crate) has_limit: bool,
    pub(crate) make: fn(u64) -> Box<dyn Player>,
}

impl Contender {
    /// A fresh one over `limit` bytes.
    pub(crate) fn make(&self, limit: u64) -> Box<dyn Player> {
        (self.make)(limit)
    }
}

/// Ours, TensorFlow's, and the rest.
pub(crate) const ALL: [Contender; 8] = [
    Contender { name: "ours", has_limit: true, make: |limit| Box::new(Held::new(Ours::new(limit))) },
    Contender { name: "TensorFlow", has_limit: true, make: |limit| Box::new(tensorflow(limit)) },
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

/// A peer with its slots.
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
        self.slots.resize(slots, None);
    }

    /// Says whether the event was served.
    #[inline]
    fn step(&mut self, event: Event) -> bool {
        match event {
            Event::Allocate { slot, bytes } => {
                let block = self.peer.allocate(bytes);
                self.slots[slot as usize] = block;
                block.is_some()
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

/// A pool of ours over made-up addresses, with lock, limit and all counters.
pub(crate) struct Ours(pub(crate) Pool);

impl Ours {
    pub(crate) fn new(limit: u64) -> Self {
        Self::with(Options { trim_on_oom: false, ..Options::new(limit) })
    }

    /// One that splits off every rest, however small; by itself it keeps one smaller than the request.
    pub(crate) fn splitting(limit: u64) -> Self {
        Self::with(Options {
            trim_on_oom: false,
            fragmentation_fraction: f64::MIN_POSITIVE,
            ..Options::new(limit)
        })
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

pub(crate) fn tensorflow(limit: u64) -> Reference {
    Reference::new(&Setup { limit, joins: true, growth: true, ..Setup::NO_REFUSALS })
}

impl Player for Reference {
    /// A refusal here would be one of ours, too: both decide alike.
    fn play(&mut self, script: &Script) -> Duration {
        self.replay(&script.theirs)
    }

    fn play_until_refused(&mut self, script: &Script) -> Option<usize> {
        self.run(&script.theirs, None).iter().position(|step| step.offset < 0)
    }
}

/// It counts in whole numbers of 32 bits, here of granules.
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

/// Its form for frames, here of a granule, keeps its books beside the memory; the one for bytes walks a list
/// of free blocks with every free.
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

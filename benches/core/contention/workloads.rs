//! What each thread does with the allocator: pairs, churn, or its part of recorded programs.

use std::sync::atomic::{AtomicU64, Ordering};

use allotment::replay::Event;

use crate::numbers::Numbers;
use crate::peers::Peer;
use crate::race::Turns;
use crate::traces::Trace;
use crate::waits::{Off, Stopwatch, Waits};

/// Pairs between two readings of the race's clock.
const PART: usize = 256;
const KIB: u64 = 1024;
/// The standing set of a thread in `churn`.
const STANDING: usize = 256;
/// The share of frees in `churn` that another thread does, in per cent.
const HANDED_ON: u64 = 25;
/// Cells for allocations that wait for the thread that frees them.
const CELLS: usize = 64;
/// Recorded programs that hold more are left out: TensorFlow's allocator would need a larger table.
const SMALL: u64 = 1 << 30;

/// One allocator with the cells through which its threads hand on allocations.
pub(crate) struct Place<P: Peer> {
    peer: P,
    cells: Vec<AtomicU64>,
}

impl<P: Peer> Place<P> {
    pub(crate) fn new(peer: P) -> Self {
        Self { peer, cells: (0..CELLS).map(|_| AtomicU64::new(0)).collect() }
    }
}

impl<P: Peer> Drop for Place<P> {
    fn drop(&mut self) {
        for cell in &self.cells {
            Block(cell.load(Ordering::Acquire)).free(&self.peer);
        }
    }
}

/// An allocation in one word: the size in bytes, less than 2^16, above the address; 0 for none.
#[derive(Clone, Copy)]
struct Block(u64);

impl Block {
    const NONE: Self = Self(0);

    #[inline]
    fn allocate(peer: &impl Peer, stopwatch: &mut impl Stopwatch, bytes: u64) -> Self {
        let address = stopwatch.time(|| peer.allocate(bytes));
        Self(bytes << 48 | address)
    }

    #[inline]
    fn free(self, peer: &impl Peer) {
        if self.0 != 0 {
            peer.free(self.0 & ((1 << 48) - 1), self.0 >> 48);
        }
    }
}

/// Allocates 1 KiB and frees it, over and over.
pub(crate) struct Pairs<'a, P: Peer, S> {
    place: &'a Place<P>,
    stopwatch: S,
}

impl<'a, P: Peer, S: Stopwatch> Pairs<'a, P, S> {
    pub(crate) fn new(place: &'a Place<P>, stopwatch: S) -> Self {
        Self { place, stopwatch }
    }
}

impl<P: Peer, S: Stopwatch> Turns for Pairs<'_, P, S> {
    fn run(&mut self) -> u64 {
        for _ in 0..PART {
            Block::allocate(&self.place.peer, &mut self.stopwatch, KIB).free(&self.place.peer);
        }
        PART as u64
    }

    fn begin(&mut self) {
        self.stopwatch.reset();
    }

    fn waits(&self) -> Option<&Waits> {
        self.stopwatch.waits()
    }
}

/// Replaces random allocations of a standing set by others of random sizes, 64 bytes to 32 KiB. A share of them is
/// handed to whichever thread comes next to a random cell, and that thread frees it.
pub(crate) struct Churn<'a, P: Peer, S> {
    place: &'a Place<P>,
    stopwatch: S,
    numbers: Numbers,
    standing: Vec<Block>,
}

impl<'a, P: Peer, S: Stopwatch> Churn<'a, P, S> {
    pub(crate) fn new(place: &'a Place<P>, stopwatch: S, index: usize) -> Self {
        let numbers = Numbers::one_of(20, index as u64);
        Self { place, stopwatch, numbers, standing: vec![Block::NONE; STANDING] }
    }
}

impl<P: Peer, S: Stopwatch> Turns for Churn<'_, P, S> {
    fn run(&mut self) -> u64 {
        let Self { place: Place { peer, cells }, stopwatch, numbers, standing } = self;
        for _ in 0..PART {
            let block = &mut standing[numbers.place(STANDING)];
            let mut freed = std::mem::replace(block, Block::NONE);
            if numbers.chance(HANDED_ON) {
                freed.0 = cells[numbers.place(CELLS)].swap(freed.0, Ordering::AcqRel);
            }
            freed.free(peer);
            let doubling = 1 << (6 + numbers.below(9));
            *block = Block::allocate(peer, stopwatch, doubling + numbers.below(doubling));
        }
        PART as u64
    }

    fn begin(&mut self) {
        self.stopwatch.reset();
    }

    fn waits(&self) -> Option<&Waits> {
        self.stopwatch.waits()
    }
}

impl<P: Peer, S> Drop for Churn<'_, P, S> {
    fn drop(&mut self) {
        for block in &self.standing {
            block.free(&self.place.peer);
        }
    }
}

/// Plays its part of recorded programs over and over.
pub(crate) struct Replay<'a, P: Peer, S> {
    part: Part<'a, P>,
    stopwatch: S,
}

impl<'a, P: Peer, S: Stopwatch> Replay<'a, P, S> {
    pub(crate) fn new(place: &'a Place<P>, stopwatch: S, events: &'a [Event]) -> Self {
        Self { part: Part::new(&place.peer, events), stopwatch }
    }
}

impl<P: Peer, S: Stopwatch> Turns for Replay<'_, P, S> {
    fn run(&mut self) -> u64 {
        for _ in 0..2 * PART {
            self.part.step(&mut self.stopwatch);
        }
        PART as u64
    }

    fn begin(&mut self) {
        self.stopwatch.reset();
    }

    fn waits(&self) -> Option<&Waits> {
        self.stopwatch.waits()
    }
}

/// Events that a thread plays in a circle, and what it holds.
struct Part<'a, P: Peer> {
    peer: &'a P,
    events: &'a [Event],
    next: usize,
    /// Address and size of each live allocation.
    held: Vec<(u64, u64)>,
}

impl<'a, P: Peer> Part<'a, P> {
    fn new(peer: &'a P, events: &'a [Event]) -> Self {
        let slot = |&(Event::Allocate { slot, .. } | Event::Free { slot }): &Event| slot as usize + 1;
        let slots = events.iter().map(slot).max().unwrap_or(0);
        Self { peer, events, next: 0, held: vec![(0, 0); slots] }
    }

    #[inline]
    fn step(&mut self, stopwatch: &mut impl Stopwatch) {
        match self.events[self.next] {
            Event::Allocate { slot, bytes } => {
                let address = stopwatch.time(|| self.peer.allocate(bytes));
                self.held[slot as usize] = (address, bytes);
            }
            Event::Free { slot } => {
                let (address, bytes) = self.held[slot as usize];
                self.peer.free(address, bytes);
            }
        }
        self.next = if self.next + 1 == self.events.len() { 0 } else { self.next + 1 };
    }
}

/// Plays to the end, where nothing is live.
impl<P: Peer> Drop for Part<'_, P> {
    fn drop(&mut self) {
        while self.next != 0 {
            self.step(&mut Off);
        }
    }
}

/// Splits recorded programs over threads: their allocations take turns, and a thread frees what it allocated. All
/// programs follow each other in each part, which ends with nothing live.
pub(crate) fn split(traces: &[Trace], threads: usize) -> Vec<Vec<Event>> {
    let mut parts = vec![Vec::new(); threads];
    for Trace { program, .. } in traces.iter().filter(|trace| trace.program.peak_live() < SMALL) {
        let mut owners = vec![None; program.slots()];
        let mut turn = (0..threads).cycle();
        for &event in program.events() {
            match event {
                // Not all allocators serve a request of no bytes.
                Event::Allocate { bytes: 0, .. } => {}
                Event::Allocate { slot, .. } => {
                    let thread = turn.next().expect("threads");
                    owners[slot as usize] = Some(thread);
                    parts[thread].push(event);
                }
                Event::Free { slot } => {
                    if let Some(thread) = owners[slot as usize].take() {
                        parts[thread].push(event);
                    }
                }
            }
        }
        for (slot, owner) in (0..).zip(owners) {
            if let Some(thread) = owner {
                parts[thread].push(Event::Free { slot });
            }
        }
    }
    parts
}

//! Pools that follow a plan: each request gets its planned place, or the best fit.
//!
//! The plan lists requests in their order. A request is taken for the next planned one of its size; where the program
//! departs from the plan, [`Follower::find`] says how it gets back. The place is only used if it is free, so that a wrong
//! guess costs memory at worst.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::num::NonZeroU64;

use super::{ChunkRequest, Tables};
use crate::bins::free_list::FreeChunk;
use crate::chunk::Handle;
use crate::plan::Plan;
use crate::policy::growth;
use crate::source::Grant;
use crate::units::round_up;

/// How many requests in a row tell a place in the plan.
const RUN: usize = 4;

/// How many planned requests are looked at for one that the program skipped to.
const AHEAD: usize = 16;

/// A plan, and where in it the program is.
#[derive(Debug)]
pub(crate) struct Follower {
    plan: Arc<Plan>,
    /// The chunk size of each planned request.
    sizes: Vec<u64>,
    /// The planned requests by a hash of the sizes of the last [`RUN`] ones, theirs included.
    runs: Vec<(u64, u32)>,
    /// The start of the arena; `None` while it is not reserved.
    arena: Option<u64>,
    /// The planned request that is expected next.
    next: usize,
    /// Another one that may be next: the program may have made a request that is not in the plan.
    other: Option<usize>,
    /// The chunk sizes of the last requests, the latest first; 0 for none.
    recent: [u64; RUN],
    /// The chunks in use by their address.
    live: BTreeMap<u64, Handle>,
    /// Requests that got their planned place.
    served: u64,
}

/// The planned request that a request is taken for.
#[derive(Debug, Clone, Copy)]
struct Found {
    planned: usize,
    other: Option<usize>,
}

impl Follower {
    fn new(plan: Arc<Plan>) -> Self {
        let sizes: Vec<u64> = plan.buffers().iter().map(|buffer| round_up(buffer.bytes)).collect();
        let count = sizes.len();
        // The plan is followed again and again, so that a run may cross its end.
        let run = |last: usize| -> [u64; RUN] {
            core::array::from_fn(|back| sizes[(last + count * RUN - back) % count])
        };
        let mut runs: Vec<_> = (0..).zip(0..count).map(|(number, last)| (hash(run(last)), number)).collect();
        runs.sort_unstable();
        Self {
            plan,
            sizes,
            runs,
            arena: None,
            next: 0,
            other: None,
            recent: [0; RUN],
            live: BTreeMap::new(),
            served: 0,
        }
    }

    /// Returns the planned request that a request for a chunk of `size` bytes is taken for:
    ///
    /// 1. the one that is expected next;
    /// 2. the one that was expected before the last skip;
    /// 3. the next one at which the last four requests have the sizes of the plan, wherever that is;
    /// 4. the next one of its size among the following sixteen: the program has skipped those before it.
    fn find(&self, size: u64) -> Option<Found> {
        let at = |planned: usize| Found { planned, other: None };
        if self.sizes[self.next] == size {
            return Some(at(self.next));
        }
        if let Some(other) = self.other
            && self.sizes[other] == size
        {
            return Some(at(other));
        }
        if let Some(planned) = self.find_run(size) {
            return Some(at(planned));
        }
        let count = self.sizes.len();
        let ahead = (self.next + 1..self.next + count.min(AHEAD + 1)).map(|planned| planned % count);
        ahead
            .into_iter()
            .find(|&planned| self.sizes[planned] == size)
            .map(|planned| Found { planned, other: Some(self.next) })
    }

    /// Returns the next planned request at which the plan has the sizes of the last requests and of this one.
    fn find_run(&self, size: u64) -> Option<usize> {
        let mut run = [size; RUN];
        run[1..].copy_from_slice(&self.recent[..RUN - 1]);
        let hash = hash(run);
        let all = &self.runs[self.runs.partition_point(|run| run.0 < hash)..];
        let all = &all[..all.partition_point(|run| run.0 == hash)];
        let next = u32::try_from(self.next).unwrap_or(u32::MAX);
        let after = all.partition_point(|run| run.1 < next);
        let &(_, number) = all.get(after).or(all.first())?;
        let planned = number as usize;
        // Two runs may have the same hash.
        (self.sizes[planned] == size).then_some(planned)
    }

    /// Notes that a request was served.
    fn note(&mut self, size: u64, found: Option<Found>) {
        self.recent.copy_within(..RUN - 1, 1);
        self.recent[0] = size;
        if let Some(Found { planned, other }) = found {
            self.next = (planned + 1) % self.sizes.len();
            self.other = other;
        }
    }
}

/// Returns a hash of the sizes of a run.
fn hash(run: [u64; RUN]) -> u64 {
    run.into_iter()
        .fold(0, |hash: u64, size| (hash.rotate_left(23) ^ size).wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

impl Tables {
    /// Makes the tables those of a pool that follows a plan.
    pub(crate) fn follow(&mut self, plan: &Arc<Plan>) {
        if plan.buffers().is_empty() {
            return;
        }
        self.following = Some(Follower::new(Arc::clone(plan)).into());
        self.largest_plain_alignment = 0;
        self.owners.look_at_every_free();
        // A second run would follow the plan, too.
        self.history.end();
    }

    /// Puts a request at its planned place, or else into the best fit. Returns the address and the size of the chunk.
    pub(super) fn take_planned(&mut self, request: ChunkRequest) -> Option<(u64, NonZeroU64)> {
        let size = request.rounded();
        let following = self.following.as_deref()?;
        let found = following.find(size);
        let place = found.and_then(|found| Some(following.arena? + following.plan.offsets()[found.planned]));
        let planned = place.and_then(|address| self.take_at(address, request));
        let taken = match planned {
            Some(taken) => taken,
            None if request.is_aligned() => self.take_aligned(request)?,
            None => self.take(request.bytes, request.needed)?,
        };
        let handle = self.live.find(&self.chunks, taken.0);
        if let (Some(following), Some(handle)) = (self.following.as_deref_mut(), handle) {
            following.live.insert(taken.0, handle);
            following.note(size, found);
            following.served += u64::from(planned.is_some());
        }
        Some(taken)
    }

    /// Puts a request at an address; `None`, without any change, if not all of its bytes there are free.
    fn take_at(&mut self, address: u64, request: ChunkRequest) -> Option<(u64, NonZeroU64)> {
        if !address.is_multiple_of(request.alignment) {
            return None;
        }
        let mut handle = self.free_chunk_around(address, request.rounded())?;
        let chunk = *self.chunks.get(handle);
        self.bins.remove(&mut self.chunks, handle, chunk.size);
        let (front, size) = (address - chunk.address, request.rounded());
        if front > 0 {
            // The front keeps the handle: it may be the first chunk of its region.
            let piece = self.chunks.split(handle, front, chunk.size - front);
            self.bins.insert(&mut self.chunks, handle, front);
            handle = piece;
        }
        let rest = chunk.size - front - size;
        if rest > 0 {
            let behind = self.chunks.split(handle, size, rest);
            self.bins.insert(&mut self.chunks, behind, rest);
        }
        self.hand_over(FreeChunk { size, address, handle }, request.bytes, size)
    }

    /// Returns the free chunk that has `size` bytes from an address on.
    fn free_chunk_around(&self, address: u64, size: u64) -> Option<Handle> {
        let before = self.following.as_deref()?.live.range(..=address).next_back();
        let behind = match before {
            Some((_, &handle)) if self.chunks.get(handle).end() > address => return None,
            Some((_, &handle)) => self.chunks.get(handle).next,
            None => None,
        };
        // No chunk in use may be before it in its region.
        let first = self.regions.first_chunk(address);
        [behind, first].into_iter().flatten().find(|&handle| {
            let chunk = self.chunks.get(handle);
            chunk.is_free() && chunk.address <= address && address + size <= chunk.end()
        })
    }

    /// Notes that a chunk is about to become free.
    pub(super) fn unfollow(&mut self, handle: Handle) {
        if let Some(following) = self.following.as_deref_mut() {
            following.live.remove(&self.chunks.get(handle).address);
        }
    }

    /// Plans the reservation of the arena for a request that no free chunk serves. `None` if there is one, if the request
    /// does not fit into it, or if the limit leaves no room.
    pub(crate) fn plan_arena(&self, needed: u64) -> Option<growth::Plan> {
        self.missing_arena(needed, self.counters.reserved())
            .and_then(|bytes| growth::Plan::arena(bytes, self.counters.reserved(), self.limit))
    }

    /// Returns the bytes of the arena if it is not reserved and serves a request.
    fn missing_arena(&self, needed: u64, reserved: u64) -> Option<u64> {
        let following = self.following.as_deref().filter(|following| following.arena.is_none())?;
        let bytes = following.plan.arena();
        (needed <= bytes && bytes <= self.limit - reserved).then_some(bytes)
    }

    /// Returns whether the arena would be reserved for a request and serve it, if the source grants up to `available`
    /// bytes.
    #[cfg(feature = "std")]
    pub(super) fn arena_serves(&self, needed: u64, reserved: u64, available: u64) -> bool {
        self.missing_arena(needed, reserved).is_some_and(|bytes| bytes <= available)
    }

    /// Returns the bytes of the arena if it would be reserved.
    #[cfg(feature = "std")]
    pub(super) fn servable_in_arena(&self, reserved: u64, available: u64) -> u64 {
        self.missing_arena(0, reserved).filter(|&bytes| bytes <= available).unwrap_or(0)
    }

    /// Notes where the arena is.
    pub(super) fn place_arena(&mut self, grant: Grant) {
        if let Some(following) = self.following.as_deref_mut() {
            following.arena = Some(grant.address);
        }
    }

    /// Returns whether a region is the arena.
    pub(super) fn is_arena(&self, span: Grant) -> bool {
        self.following.as_deref().is_some_and(|following| following.arena == Some(span.address))
    }

    /// Notes that regions are given back.
    pub(super) fn lose_arena(&mut self, gone: &[Grant]) {
        if let Some(following) = self.following.as_deref_mut()
            && let Some(arena) = following.arena
            && gone.iter().any(|span| span.address == arena)
        {
            following.arena = None;
        }
    }

    /// Returns how many requests got their planned place.
    pub(super) fn planned(&self) -> u64 {
        self.following.as_deref().map_or(0, |following| following.served)
    }

    /// Returns whether what a follower knows of chunks in use is right; true for pools without a plan.
    pub(super) fn follows_all_chunks(&self) -> bool {
        self.following.as_deref().is_none_or(|following| {
            following.live.len() == self.live.len()
                && following
                    .live
                    .iter()
                    .all(|(&address, &handle)| self.live.find(&self.chunks, address) == Some(handle))
        })
    }
}

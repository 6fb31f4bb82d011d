//! Guard mode of a pool: red zones, quarantine, damage and leak reports.
//!
//! Longer than 300 lines: red zones, quarantine and reports read the same records.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use super::Pool;
use super::state::State;
use crate::chunk::{Chunk, Handle};
use crate::error::{Shortage, Unusable};
use crate::guard::{Damage, DamagedPlace, Leaks, MemoryGuard, POISON, RED_ZONE, default_quarantine};
use crate::options::Options;
use crate::tables::free_target::FreeTarget;
use crate::tables::{Allocation, Tables, Tail};
use crate::units::{GRANULE, MAX_BYTES, align_up, round_up};

/// The guard-mode state of one pool.
#[derive(Debug)]
pub(super) struct Guarded {
    guard: Arc<dyn MemoryGuard>,
    /// Start of the chunk of each allocation, by the address that the caller has.
    chunks: HashMap<u64, u64>,
    /// Freed chunks, the oldest first.
    quarantine: VecDeque<Quarantined>,
    /// Bytes of the chunks in quarantine, at most `capacity`.
    bytes: u64,
    capacity: u64,
    leaks_reported: bool,
    /// Damage that no caller could receive yet, in order of detection.
    unreported: VecDeque<Damage>,
}

/// The result of a free.
pub(super) struct Freed {
    /// The damage to its red zones, if any.
    pub(super) damage: Option<Damage>,
}

/// A freed chunk filled with poison, and its former allocation.
#[derive(Debug)]
struct Quarantined {
    handle: Handle,
    start: u64,
    size: u64,
    former: Allocation,
}

impl Guarded {
    pub(super) fn new(guard: Arc<dyn MemoryGuard>, options: &Options) -> Self {
        Self {
            guard,
            chunks: HashMap::new(),
            quarantine: VecDeque::new(),
            bytes: 0,
            capacity: options.quarantine.unwrap_or_else(|| default_quarantine(options.limit)),
            leaks_reported: false,
            unreported: VecDeque::new(),
        }
    }

    /// Fills red zones around an allocation and returns it with the caller's address.
    fn add_red_zones(&mut self, allocation: Allocation, alignment: u64) -> Allocation {
        let Allocation { address: start, size, requested, id } = allocation;
        let address = align_up(start + GRANULE, alignment);
        self.guard.fill(start, address - start, RED_ZONE);
        self.fill_behind(address + requested, start + size);
        self.chunks.insert(address, start);
        // Only the requested bytes are usable.
        Allocation { address, size: requested, requested, id }
    }

    fn fill_behind(&self, from: u64, end: u64) {
        self.guard.fill(from, end - from, RED_ZONE);
    }

    /// Returns the damage before and behind an allocation.
    fn inspect(&self, chunk: &Chunk, former: Allocation) -> [Option<Damage>; 2] {
        let Allocation { address, requested, .. } = former;
        let before = self.first_damage(chunk.address, address, RED_ZONE, DamagedPlace::Before, former);
        let behind =
            self.first_damage(address + requested, chunk.end(), RED_ZONE, DamagedPlace::Behind, former);
        [before, behind]
    }

    /// Returns the first byte of a span that differs from the fill byte, as damage.
    fn first_damage(
        &self,
        start: u64,
        end: u64,
        byte: u8,
        place: DamagedPlace,
        of: Allocation,
    ) -> Option<Damage> {
        let first = start + self.guard.first_other(start, end - start, byte)?;
        let Allocation { address, requested, id, .. } = of;
        // Both addresses lie in one chunk and fit a signed integer.
        let offset = first.cast_signed() - address.cast_signed();
        Some(Damage { place, address, requested, id, offset })
    }

    /// Frees an allocation: moves it into quarantine, unless it is larger than that. Returns `None` if no allocation
    /// starts at `address`.
    fn free_at(
        &mut self,
        allocator: &mut Tables,
        address: u64,
        target: FreeTarget,
        capacity: u64,
    ) -> Option<Freed> {
        let &start = self.chunks.get(&address)?;
        let (handle, chunk) = allocator.quarantine(start, target)?;
        self.chunks.remove(&address);
        let former = former(&chunk, address);
        let [before, behind] = self.inspect(&chunk, former);
        if chunk.size > capacity {
            // Its poison would never be checked, and its pages may never have been written.
            allocator.release_from_quarantine(handle);
        } else {
            self.guard.fill(chunk.address, chunk.size, POISON);
            self.quarantine.push_back(Quarantined { handle, start, size: chunk.size, former });
            self.bytes += chunk.size;
            self.shrink_quarantine(allocator, capacity);
        }
        if before.is_some() {
            self.unreported.extend(behind);
        }
        Some(Freed { damage: before.or(behind) })
    }

    /// Checks and frees the oldest chunks in quarantine until at most `bytes` bytes remain.
    fn shrink_quarantine(&mut self, allocator: &mut Tables, bytes: u64) {
        while self.bytes > bytes
            && let Some(Quarantined { handle, start, size, former }) = self.quarantine.pop_front()
        {
            self.bytes -= size;
            self.unreported.extend(self.first_damage(
                start,
                start + size,
                POISON,
                DamagedPlace::Freed,
                former,
            ));
            allocator.release_from_quarantine(handle);
        }
    }

    /// Resizes an allocation and moves the red zone behind it. A chunk never gets shorter, so that the red zone covers
    /// what was the allocation's. Returns `None` if no allocation that `target` matches starts there.
    fn resize(
        &mut self,
        allocator: &mut Tables,
        address: u64,
        target: FreeTarget,
        bytes: u64,
    ) -> Option<Result<u64, Shortage>> {
        let &start = self.chunks.get(&address)?;
        let chunk = *allocator.chunk_at(start)?;
        let margins = address - start + GRANULE;
        let needed =
            bytes.checked_add(margins).filter(|&needed| needed <= MAX_BYTES).map_or(u64::MAX, round_up);
        let resized = allocator.resize(start, target, (bytes, needed), Tail::Keep)?;
        Some(match resized {
            Ok(size) => {
                let [_, behind] = self.inspect(&chunk, former(&chunk, address));
                self.unreported.extend(behind);
                self.fill_behind(address + bytes, start + size);
                Ok(bytes)
            }
            Err(Shortage::Neighbour { possible, .. }) => {
                Err(Shortage::Neighbour { size: chunk.requested, possible: possible - margins })
            }
            Err(Shortage::Scope { limit, .. }) => Err(Shortage::Scope { size: chunk.requested, limit }),
        })
    }

    /// Returns all live allocations with their chunks.
    fn live(&self, allocator: &Tables) -> Vec<(Allocation, Chunk)> {
        let held = |(&address, &start): (&u64, &u64)| {
            let chunk = *allocator.chunks.get(allocator.live.find(&allocator.chunks, start)?);
            Some((former(&chunk, address), chunk))
        };
        self.chunks.iter().filter_map(held).collect()
    }
}

/// Returns the allocation in a chunk as its caller knows it.
pub(super) fn former(chunk: &Chunk, address: u64) -> Allocation {
    Allocation { address, size: chunk.requested, requested: chunk.requested, id: chunk.number() }
}

impl State {
    /// Returns the allocation as its caller gets it, in guard mode with red zones around it, and records it.
    pub(super) fn hand_out(&mut self, allocation: Allocation, alignment: u64) -> Allocation {
        self.record_allocation(&allocation);
        match &mut self.guarded {
            Some(guarded) if allocation.id != 0 => guarded.add_red_zones(allocation, alignment),
            _ => allocation,
        }
    }

    /// Returns all live allocations by address.
    pub(super) fn live_allocations(&self) -> Vec<Allocation> {
        let allocator = &self.allocator;
        let runs = allocator.regions.iter().flat_map(|region| allocator.chunks.run(region.first));
        let live = runs.filter(|(_, chunk)| chunk.has_allocation());
        live.map(|(_, chunk)| former(chunk, chunk.address)).collect()
    }

    /// Frees the allocation at `address` if the target matches it; `None` otherwise.
    pub(super) fn free_at(&mut self, address: u64, target: FreeTarget) -> Option<Freed> {
        self.withdraw(address);
        let closed = self.is_closed();
        let recorded = self.recorded(address);
        let freed = match &mut self.guarded {
            None => self.allocator.free(address, target).map(|()| Freed { damage: None }),
            Some(guarded) => {
                // A closed pool releases its regions as soon as possible.
                let capacity = if closed { 0 } else { guarded.capacity };
                guarded.free_at(&mut self.allocator, address, target, capacity)
            }
        };
        if let (Some(recorded), Some(_)) = (recorded, &freed) {
            self.record_free(&recorded);
        }
        freed
    }

    /// Returns the start of the chunk of the allocation at the caller's `address`.
    pub(super) fn chunk_start(&self, address: u64) -> Option<u64> {
        match &self.guarded {
            None => Some(address),
            Some(guarded) => guarded.chunks.get(&address).copied(),
        }
    }

    /// Resizes the allocation at the caller's `address` if the target matches it; returns its usable bytes.
    pub(super) fn resize(
        &mut self,
        address: u64,
        target: FreeTarget,
        bytes: u64,
    ) -> Option<Result<u64, Shortage>> {
        let recorded = self.recorded(address);
        let resized = match &mut self.guarded {
            None => {
                let needed = if bytes <= MAX_BYTES { round_up(bytes) } else { u64::MAX };
                self.allocator.resize(address, target, (bytes, needed), Tail::Free)
            }
            Some(guarded) => guarded.resize(&mut self.allocator, address, target, bytes),
        };
        if let (Some(recorded), Some(Ok(size))) = (recorded, &resized) {
            self.record_free(&recorded);
            self.record_allocation(&Allocation { requested: bytes, size: *size, ..recorded });
        }
        resized
    }

    /// Returns the number of the allocation at the caller's `address`.
    pub(super) fn number_at(&self, address: u64) -> Option<u64> {
        Some(self.allocator.chunk_at(self.chunk_start(address)?)?.number())
    }

    /// Checks and frees all chunks in quarantine; returns whether there were any.
    pub(super) fn empty_quarantine(&mut self) -> bool {
        let Some(guarded) = &mut self.guarded else { return false };
        let any = !guarded.quarantine.is_empty();
        guarded.shrink_quarantine(&mut self.allocator, 0);
        any
    }

    /// Removes and returns the oldest unreported damage.
    pub(super) fn next_damage(&mut self) -> Option<Damage> {
        self.guarded.as_mut()?.unreported.pop_front()
    }

    /// Stores damage for the next call that can report it.
    pub(super) fn defer_damage(&mut self, damage: impl IntoIterator<Item = Damage>) {
        if let Some(guarded) = &mut self.guarded {
            guarded.unreported.extend(damage);
        }
    }
}

impl Pool {
    /// Checks the quarantine and all red zones; returns all unreported damage. Damage to live allocations is returned
    /// on each call until they are freed. Empty outside of guard mode.
    ///
    /// # Errors
    /// In a forked child.
    ///
    /// # Cost
    /// Linear in the number of chunks and in the bytes of quarantine and red zones, under the lock.
    pub fn inspect(&self) -> Result<Vec<Damage>, Unusable> {
        self.with_state(|state| {
            state.empty_quarantine();
            let Some(guarded) = &mut state.guarded else { return Vec::new() };
            let mut damages: Vec<_> = guarded.unreported.drain(..).collect();
            let mut live = guarded.live(&state.allocator);
            live.sort_unstable_by_key(|(allocation, _)| allocation.id);
            damages.extend(live.iter().flat_map(|(live, chunk)| guarded.inspect(chunk, *live)).flatten());
            damages
        })
    }

    /// Removes and returns the oldest unreported damage.
    ///
    /// Calls that allocate or free report damage as an error. This method is for the others: [`Pool::trim`],
    /// [`Pool::close`], and frees of finalisers.
    ///
    /// # Errors
    /// In a forked child.
    pub fn take_damage(&self) -> Result<Option<Damage>, Unusable> {
        if !self.options.guard {
            return Ok(None);
        }
        self.with_state(State::next_damage)
    }

    /// Stores damage that the caller cannot report, for the next call that can.
    pub(crate) fn defer_damage(&self, damage: Damage) {
        // In a forked child there is no next call.
        let _ = self.with_state(|state| state.defer_damage([damage]));
    }

    /// Returns the live allocations as leaks, once, at the end of a pool. `None` if there are none, and outside of
    /// guard mode.
    ///
    /// # Errors
    /// In a forked child.
    pub fn take_leaks(&self) -> Result<Option<Leaks>, Unusable> {
        self.with_state(|state| {
            let guarded = state.guarded.as_mut().filter(|guarded| !guarded.leaks_reported)?;
            let live = guarded.live(&state.allocator);
            let live = live.into_iter().map(|(allocation, _)| allocation).collect();
            let leaks = Leaks::new(&self.options.name, live)?;
            guarded.leaks_reported = true;
            Some(leaks)
        })
    }

    /// Reports unreported damage and leaks to the guard when the pool is dropped.
    pub(super) fn report_leaks(&self) {
        if !self.options.guard {
            return;
        }
        // Without the lock: the guard's report may be slow.
        let guard = self.with_state(|state| state.guarded.as_ref().map(|guarded| Arc::clone(&guarded.guard)));
        if let (Ok(Some(guard)), Ok(damages), Ok(leaks)) = (guard, self.inspect(), self.take_leaks()) {
            guard.report(&self.options.name, &damages, leaks.as_ref());
        }
    }
}

#[cfg(test)]
mod tests;

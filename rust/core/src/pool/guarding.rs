//! What a pool in guard mode knows besides its tables, and what it does to the memory.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use super::state::State;
use super::{Options, Pool};
use crate::allocator::{Allocation, Allocator};
use crate::chunk::{Chunk, Handle};
use crate::claim::Claim;
use crate::error::Unusable;
use crate::guard::{Damage, DamagedPlace, Leaks, MemoryGuard, POISON, RED_ZONE, default_quarantine};
use crate::units::{GRANULE, align_up};

/// Red zones and quarantine of one pool.
#[derive(Debug)]
pub(super) struct Guarded {
    guard: Arc<dyn MemoryGuard>,
    /// Where the chunk of each allocation starts, by the address that its caller has.
    chunks: HashMap<u64, u64>,
    /// What was freed, the longest ago first.
    quarantine: VecDeque<Quarantined>,
    /// Bytes of the chunks in quarantine, at most `capacity`.
    bytes: u64,
    capacity: u64,
    leaks_told: bool,
    /// What was found where nobody could be told, in that order.
    found: VecDeque<Damage>,
}

/// An allocation was taken back.
pub(super) struct TakenBack {
    /// The damage to its red zones, if any.
    pub(super) damage: Option<Damage>,
}

/// A freed chunk, all poison, and the allocation that it was.
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
            leaks_told: false,
            found: VecDeque::new(),
        }
    }

    /// Puts red zones around an allocation; returns it as its caller is to have it.
    fn surround(&mut self, allocation: Allocation, alignment: u64) -> Allocation {
        let Allocation { address: start, size, requested, id } = allocation;
        let address = align_up(start + GRANULE, alignment);
        self.guard.fill(start, address - start, RED_ZONE);
        self.fill_behind(address + requested, start + size);
        self.chunks.insert(address, start);
        // All that may be used is what was asked for.
        Allocation { address, size: requested, requested, id }
    }

    fn fill_behind(&self, from: u64, end: u64) {
        self.guard.fill(from, end - from, RED_ZONE);
    }

    /// What is wrong in front of an allocation, and behind it.
    fn inspect(&self, chunk: &Chunk, former: Allocation) -> [Option<Damage>; 2] {
        let Allocation { address, requested, .. } = former;
        let before = self.look(chunk.address, address, RED_ZONE, DamagedPlace::Before, former);
        let behind = self.look(address + requested, chunk.end(), RED_ZONE, DamagedPlace::Behind, former);
        [before, behind]
    }

    /// The damage in a span that ought to be all one byte.
    fn look(&self, start: u64, end: u64, byte: u8, place: DamagedPlace, of: Allocation) -> Option<Damage> {
        let first = start + self.guard.first_other(start, end - start, byte)?;
        let Allocation { address, requested, id, .. } = of;
        // Both lie in one chunk, and no address is above what a signed number holds.
        let offset = first.cast_signed() - address.cast_signed();
        Some(Damage { place, address, requested, id, offset })
    }

    /// Takes an allocation back: into quarantine, unless that cannot hold it. None if there is none at `address`.
    fn take_back(
        &mut self,
        allocator: &mut Allocator,
        address: u64,
        claim: Claim,
        capacity: u64,
    ) -> Option<TakenBack> {
        let &start = self.chunks.get(&address)?;
        let (handle, chunk) = allocator.quarantine(start, claim)?;
        self.chunks.remove(&address);
        let former = former(&chunk, address);
        let [before, behind] = self.inspect(&chunk, former);
        if chunk.size > capacity {
            // Nothing will look at poison there, and the pages may never have been written to.
            allocator.release_from_quarantine(handle);
        } else {
            self.guard.fill(chunk.address, chunk.size, POISON);
            self.quarantine.push_back(Quarantined { handle, start, size: chunk.size, former });
            self.bytes += chunk.size;
            self.shrink_quarantine(allocator, capacity);
        }
        if before.is_some() {
            self.found.extend(behind);
        }
        Some(TakenBack { damage: before.or(behind) })
    }

    /// Lets go what has been in quarantine longest, until no more than `bytes` bytes are; looks at it first.
    fn shrink_quarantine(&mut self, allocator: &mut Allocator, bytes: u64) {
        while self.bytes > bytes
            && let Some(Quarantined { handle, start, size, former }) = self.quarantine.pop_front()
        {
            self.bytes -= size;
            self.found.extend(self.look(start, start + size, POISON, DamagedPlace::Freed, former));
            allocator.release_from_quarantine(handle);
        }
    }

    fn resize_in_place(&mut self, allocator: &mut Allocator, address: u64, bytes: u64) -> Option<u64> {
        let &start = self.chunks.get(&address)?;
        let handle = allocator.live.find(&allocator.chunks, start)?;
        let chunk = *allocator.chunks.get(handle);
        let room = chunk.end() - GRANULE - address;
        if bytes > room {
            return Some(room);
        }
        // Less than that where a cap would be broken: nothing changed then.
        let usable = allocator.resize_in_place(start, bytes)?.min(room);
        if usable >= bytes {
            let [_, behind] = self.inspect(&chunk, former(&chunk, address));
            self.found.extend(behind);
            self.fill_behind(address + bytes, chunk.end());
        }
        Some(usable)
    }

    /// Every allocation that is held, with its chunk.
    fn live(&self, allocator: &Allocator) -> Vec<(Allocation, Chunk)> {
        let held = |(&address, &start): (&u64, &u64)| {
            let chunk = *allocator.chunks.get(allocator.live.find(&allocator.chunks, start)?);
            Some((former(&chunk, address), chunk))
        };
        self.chunks.iter().filter_map(held).collect()
    }
}

/// The allocation in a chunk, as its caller has it.
fn former(chunk: &Chunk, address: u64) -> Allocation {
    Allocation { address, size: chunk.requested, requested: chunk.requested, id: chunk.number() }
}

impl State {
    /// Makes an allocation what its caller is to have: with red zones around it in guard mode, else as it is.
    pub(super) fn surround(&mut self, allocation: Allocation, alignment: u64) -> Allocation {
        match &mut self.guarded {
            Some(guarded) if allocation.id != 0 => guarded.surround(allocation, alignment),
            _ => allocation,
        }
    }

    /// Takes back what is allocated at `address`, if the claim is good for it. None if not.
    pub(super) fn take_back(&mut self, address: u64, claim: Claim) -> Option<TakenBack> {
        let closed = self.is_closed();
        match &mut self.guarded {
            None => self.allocator.free(address, claim).map(|()| TakenBack { damage: None }),
            Some(guarded) => {
                // The regions of a closed pool go back as soon as they can.
                let capacity = if closed { 0 } else { guarded.capacity };
                guarded.take_back(&mut self.allocator, address, claim, capacity)
            }
        }
    }

    /// Where the chunk of the allocation starts that its caller has at `address`.
    pub(super) fn start_of(&self, address: u64) -> Option<u64> {
        match &self.guarded {
            None => Some(address),
            Some(guarded) => guarded.chunks.get(&address).copied(),
        }
    }

    pub(super) fn resize_in_place(&mut self, address: u64, bytes: u64) -> Option<u64> {
        match &mut self.guarded {
            None => self.allocator.resize_in_place(address, bytes),
            Some(guarded) => guarded.resize_in_place(&mut self.allocator, address, bytes),
        }
    }

    /// Makes everything in quarantine free; says whether there was anything.
    pub(super) fn empty_quarantine(&mut self) -> bool {
        let Some(guarded) = &mut self.guarded else { return false };
        let any = !guarded.quarantine.is_empty();
        guarded.shrink_quarantine(&mut self.allocator, 0);
        any
    }

    /// The damage that was found longest ago and is told by this.
    pub(super) fn next_damage(&mut self) -> Option<Damage> {
        self.guarded.as_mut()?.found.pop_front()
    }

    /// Keeps damage for the next call that can tell of it.
    pub(super) fn keep_damage(&mut self, damage: impl IntoIterator<Item = Damage>) {
        if let Some(guarded) = &mut self.guarded {
            guarded.found.extend(damage);
        }
    }
}

impl Pool {
    /// Looks at everything in quarantine and at every red zone. Returns all damage that was not told yet, that to
    /// live allocations each time until they are freed. Nothing outside of guard mode.
    ///
    /// # Errors
    /// In a forked child.
    ///
    /// # Cost
    /// Linear in the chunks and in the bytes of quarantine and red zones, under the lock.
    pub fn inspect(&self) -> Result<Vec<Damage>, Unusable> {
        self.with_state(|state| {
            state.empty_quarantine();
            let Some(guarded) = &mut state.guarded else { return Vec::new() };
            let mut damages: Vec<_> = guarded.found.drain(..).collect();
            let mut live = guarded.live(&state.allocator);
            live.sort_unstable_by_key(|(allocation, _)| allocation.id);
            damages.extend(live.iter().flat_map(|(live, chunk)| guarded.inspect(chunk, *live)).flatten());
            damages
        })
    }

    /// The damage found longest ago that was not told yet; it is now.
    ///
    /// Calls that allocate or free tell of it by themselves, as an error. This is for the others: [`Pool::trim`],
    /// [`Pool::close`], and whatever finalisers free.
    ///
    /// # Errors
    /// In a forked child.
    pub fn take_damage(&self) -> Result<Option<Damage>, Unusable> {
        if !self.options.guard {
            return Ok(None);
        }
        self.with_state(State::next_damage)
    }

    /// Keeps damage that the caller was told of and cannot pass on, for the next call that can.
    pub fn keep_damage(&self, damage: Damage) {
        // In a forked child there is no next call.
        let _ = self.with_state(|state| state.keep_damage([damage]));
    }

    /// What is still allocated, as leaks: told once, when nobody is left to free it. None if nothing is, and outside
    /// of guard mode.
    ///
    /// # Errors
    /// In a forked child.
    pub fn take_leaks(&self) -> Result<Option<Leaks>, Unusable> {
        self.with_state(|state| {
            let guarded = state.guarded.as_mut().filter(|guarded| !guarded.leaks_told)?;
            let live = guarded.live(&state.allocator);
            let live = live.into_iter().map(|(allocation, _)| allocation).collect();
            let leaks = Leaks::new(&self.options.name, live)?;
            guarded.leaks_told = true;
            Some(leaks)
        })
    }

    /// Tells the guard what nobody else was told, when the pool goes.
    pub(super) fn say_last_words(&self) {
        if !self.options.guard {
            return;
        }
        // Without the lock: the guard may take its time over words.
        let guard = self.with_state(|state| state.guarded.as_ref().map(|guarded| Arc::clone(&guarded.guard)));
        if let (Ok(Some(guard)), Ok(damages), Ok(leaks)) = (guard, self.inspect(), self.take_leaks()) {
            guard.last_words(&self.options.name, &damages, leaks.as_ref());
        }
    }
}

#[cfg(test)]
mod tests;

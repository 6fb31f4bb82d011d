//! A recorded program: its events, read from columns of numbers and checked.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use thiserror::Error;

use crate::units::round_up;

/// The most a recorded program may ask for at once, in bytes: more than any machine can address.
pub const MAX_EVENT_BYTES: i64 = 1 << 57;

/// One step of a recorded program. A slot holds one allocation at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// Allocate into a slot.
    Allocate {
        /// Where to keep it.
        slot: u32,
        /// Bytes asked for.
        bytes: u64,
    },
    /// Free what a slot holds.
    Free {
        /// Where it was kept.
        slot: u32,
    },
}

/// A recorded program that makes sense: every free has its allocation.
#[derive(Debug, Clone, Default)]
pub struct Program {
    events: Vec<Event>,
    slots: usize,
    peak_live: u64,
    peak_in_granules: u64,
}

/// Why columns of numbers are no program. Events count from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ProgramError {
    /// Columns of different length.
    #[error("the columns differ in length: op has {ops} events, id {ids}, size {sizes}")]
    Lengths {
        /// Length of the column of kinds.
        ops: usize,
        /// Length of the column of names.
        ids: usize,
        /// Length of the column of sizes.
        sizes: usize,
    },
    /// A kind that is neither.
    #[error("event {event}: op {op} is neither 1 (allocate) nor 2 (free)")]
    Kind {
        /// Where.
        event: usize,
        /// The kind.
        op: i64,
    },
    /// Negative, or more than any machine can address.
    #[error("event {event}: size {size} is not between 0 and {MAX_EVENT_BYTES} bytes")]
    Size {
        /// Where.
        event: usize,
        /// The size.
        size: i64,
    },
    /// More bytes live at once than can be counted.
    #[error("event {event}: more than {} bytes live at once", crate::MAX_BYTES)]
    Live {
        /// Where.
        event: usize,
    },
    /// A name that is in use already.
    #[error("event {event}: id {id} is allocated again before it is freed")]
    AllocatedTwice {
        /// Where.
        event: usize,
        /// The name.
        id: i64,
    },
    /// A free of what was freed before.
    #[error("event {event}: id {id} is freed twice")]
    FreedTwice {
        /// Where.
        event: usize,
        /// The name.
        id: i64,
    },
    /// A free of what was never allocated.
    #[error("event {event}: id {id} is freed but was never allocated")]
    NeverAllocated {
        /// Where.
        event: usize,
        /// The name.
        id: i64,
    },
    /// A free that disagrees with its allocation.
    #[error("event {event}: id {id} is freed with size {freed}, but was allocated with {allocated}")]
    SizeDiffers {
        /// Where.
        event: usize,
        /// The name.
        id: i64,
        /// Bytes allocated.
        allocated: u64,
        /// Bytes the free speaks of.
        freed: i64,
    },
}

impl Program {
    /// Reads three columns of one number an event: kind (1 allocates, 2 frees), name of the allocation, bytes.
    ///
    /// A name may be used again after its free.
    ///
    /// # Errors
    /// At the first event that makes no sense.
    pub fn from_columns(ops: &[i64], ids: &[i64], sizes: &[i64]) -> Result<Self, ProgramError> {
        if ops.len() != ids.len() || ids.len() != sizes.len() {
            return Err(ProgramError::Lengths { ops: ops.len(), ids: ids.len(), sizes: sizes.len() });
        }
        let mut reader = Reader::default();
        for (event, ((&op, &id), &size)) in ops.iter().zip(ids).zip(sizes).enumerate() {
            let bytes = u64::try_from(size).ok().filter(|_| size <= MAX_EVENT_BYTES);
            let bytes = bytes.ok_or(ProgramError::Size { event, size })?;
            match op {
                1 => reader.allocate(event, id, bytes)?,
                2 => reader.free(event, id, bytes, &ids[..event])?,
                _ => return Err(ProgramError::Kind { event, op }),
            }
        }
        Ok(reader.program)
    }

    /// The events, in order.
    #[must_use]
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// The most slots in use at once; slots are numbered below it.
    #[must_use]
    pub fn slots(&self) -> usize {
        self.slots
    }

    /// The most bytes live at once, as requested.
    #[must_use]
    pub fn peak_live(&self) -> u64 {
        self.peak_live
    }

    /// The most bytes live at once, each request in whole granules: no pool with a smaller limit serves the program.
    #[must_use]
    pub fn peak_in_granules(&self) -> u64 {
        self.peak_in_granules
    }
}

/// Gives names slots while reading.
#[derive(Default)]
struct Reader {
    program: Program,
    live: HashMap<i64, (u32, u64)>,
    vacant: Vec<u32>,
    live_bytes: u64,
    live_in_granules: u64,
}

impl Reader {
    fn allocate(&mut self, event: usize, id: i64, bytes: u64) -> Result<(), ProgramError> {
        let Entry::Vacant(entry) = self.live.entry(id) else {
            return Err(ProgramError::AllocatedTwice { event, id });
        };
        let slot = if let Some(slot) = self.vacant.pop() {
            slot
        } else {
            self.program.slots += 1;
            u32::try_from(self.program.slots - 1).map_err(|_| ProgramError::Live { event })?
        };
        entry.insert((slot, bytes));
        self.live_bytes += bytes;
        if self.live_bytes > crate::MAX_BYTES {
            return Err(ProgramError::Live { event });
        }
        self.live_in_granules += round_up(bytes);
        self.program.peak_live = self.program.peak_live.max(self.live_bytes);
        self.program.peak_in_granules = self.program.peak_in_granules.max(self.live_in_granules);
        self.program.events.push(Event::Allocate { slot, bytes });
        Ok(())
    }

    fn free(&mut self, event: usize, id: i64, bytes: u64, before: &[i64]) -> Result<(), ProgramError> {
        let Some((slot, allocated)) = self.live.remove(&id) else {
            return Err(if before.contains(&id) {
                ProgramError::FreedTwice { event, id }
            } else {
                ProgramError::NeverAllocated { event, id }
            });
        };
        if bytes != allocated {
            let freed = bytes.cast_signed();
            return Err(ProgramError::SizeDiffers { event, id, allocated, freed });
        }
        self.vacant.push(slot);
        self.live_bytes -= bytes;
        self.live_in_granules -= round_up(bytes);
        self.program.events.push(Event::Free { slot });
        Ok(())
    }
}

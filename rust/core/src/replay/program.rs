//! Recorded programs: events read from columns of numbers and validated.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use thiserror::Error;

use crate::plan::Buffer;
use crate::units::round_up;

/// The largest request of a recorded program in bytes: more than any machine can address.
pub const MAX_EVENT_BYTES: i64 = 1 << 57;

/// One event of a recorded program. A slot holds one allocation at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(not(feature = "_exhaustive"), non_exhaustive)]
pub enum Event {
    /// Allocate into a slot.
    Allocate {
        /// The slot.
        slot: u32,
        /// Requested bytes.
        bytes: u64,
    },
    /// Free the allocation in a slot.
    Free {
        /// The slot.
        slot: u32,
    },
}

/// A valid recorded program: every free has its allocation.
#[derive(Debug, Clone, Default)]
pub struct Program {
    events: Vec<Event>,
    slots: usize,
    peak_live: u64,
    peak_in_granules: u64,
}

/// Why columns of numbers are not a valid program. Events count from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ProgramError {
    /// The columns differ in length.
    #[error("the columns differ in length: op has {ops} events, id {ids}, size {sizes}")]
    Lengths {
        /// Length of the column of kinds.
        ops: usize,
        /// Length of the column of ids.
        ids: usize,
        /// Length of the column of sizes.
        sizes: usize,
    },
    /// The kind is neither an allocation nor a free.
    #[error("event {event}: op {op} is neither 1 (allocate) nor 2 (free)")]
    Kind {
        /// The event.
        event: usize,
        /// The kind.
        op: i64,
    },
    /// The size is negative or larger than any machine can address.
    #[error("event {event}: size {size} is not between 0 and {MAX_EVENT_BYTES} bytes")]
    Size {
        /// The event.
        event: usize,
        /// The size.
        size: i64,
    },
    /// The live bytes overflow the supported range.
    #[error("event {event}: more than {} bytes live at once", crate::MAX_BYTES)]
    Live {
        /// The event.
        event: usize,
    },
    /// An id is allocated again before it is freed.
    #[error("event {event}: id {id} is allocated again before it is freed")]
    AllocatedTwice {
        /// The event.
        event: usize,
        /// The id.
        id: i64,
    },
    /// An id is freed twice.
    #[error("event {event}: id {id} is freed twice")]
    FreedTwice {
        /// The event.
        event: usize,
        /// The id.
        id: i64,
    },
    /// An id is freed that was never allocated.
    #[error("event {event}: id {id} is freed but was never allocated")]
    NeverAllocated {
        /// The event.
        event: usize,
        /// The id.
        id: i64,
    },
    /// The sizes of a free and its allocation differ.
    #[error("event {event}: id {id} is freed with size {freed}, but was allocated with {allocated}")]
    SizeDiffers {
        /// The event.
        event: usize,
        /// The id.
        id: i64,
        /// Size of the allocation in bytes.
        allocated: u64,
        /// Size given by the free.
        freed: i64,
    },
}

impl Program {
    /// Reads three columns with one number per event: kind (1 allocates, 2 frees), id of the allocation, bytes.
    ///
    /// An id may be reused after its free.
    ///
    /// # Errors
    /// At the first invalid event.
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

    /// Returns the events in order.
    #[must_use]
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// Returns each block with more than zero bytes as a buffer to plan, in the order of the requests. It lives from its
    /// event to that of its free, or to the end of the program.
    #[must_use]
    pub fn buffers(&self) -> Vec<Buffer> {
        let end = self.events.len() as u64;
        let mut buffers: Vec<Buffer> = Vec::new();
        let mut in_slot = vec![None; self.slots];
        for (time, event) in (0..).zip(&self.events) {
            match *event {
                Event::Allocate { slot, bytes } => {
                    in_slot[slot as usize] = (bytes > 0).then_some(buffers.len());
                    buffers.extend((bytes > 0).then_some(Buffer { bytes, start: time, end }));
                }
                Event::Free { slot } => {
                    if let Some(buffer) = in_slot[slot as usize] {
                        buffers[buffer].end = time;
                    }
                }
            }
        }
        buffers
    }

    /// Returns the most slots in use at once; slots are numbered below it.
    #[must_use]
    pub fn slots(&self) -> usize {
        self.slots
    }

    /// Returns the high-water mark of live requested bytes.
    #[must_use]
    pub fn peak_live(&self) -> u64 {
        self.peak_live
    }

    /// Returns the high-water mark of live bytes, each request rounded up to granules: no pool with a lower limit
    /// serves the program.
    #[must_use]
    pub fn peak_in_granules(&self) -> u64 {
        self.peak_in_granules
    }

    /// Returns the most pages that live blocks can touch at once, wherever they lie: one more for each block than it is
    /// long.
    pub(super) fn most_pages(&self, page_size: u64) -> u64 {
        let mut pages_of = vec![0; self.slots];
        let (mut live, mut most) = (0_u64, 0);
        for event in &self.events {
            match *event {
                Event::Allocate { slot, bytes } => {
                    let pages = if bytes == 0 { 0 } else { round_up(bytes).div_ceil(page_size) + 1 };
                    pages_of[slot as usize] = pages;
                    live += pages;
                    most = most.max(live);
                }
                Event::Free { slot } => live -= pages_of[slot as usize],
            }
        }
        most
    }
}

/// Assigns slots to ids while reading.
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

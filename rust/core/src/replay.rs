//! Plays a recorded program into a pool: where everything lands, what is refused, how long it takes.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::time::{Duration, Instant};

use thiserror::Error;

use crate::error::{AllocError, OptionsError};
use crate::pool::{Options, Pool};
use crate::source::AddressSpace;
use crate::stats::Stats;
use crate::units::ratio;

/// The most a recorded program may ask for at once, in bytes: more than any machine can address.
pub const MAX_EVENT_BYTES: i64 = 1 << 57;

/// The limits that [`min_limit`] tries are multiples of this, in bytes.
pub const LIMIT_STEP: u64 = 64 << 10;

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
}

/// Gives names slots while reading.
#[derive(Default)]
struct Reader {
    program: Program,
    live: HashMap<i64, (u32, u64)>,
    vacant: Vec<u32>,
    live_bytes: u64,
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
        self.program.peak_live = self.program.peak_live.max(self.live_bytes);
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
        self.program.events.push(Event::Free { slot });
        Ok(())
    }
}

/// What came of a replay.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outcome {
    /// Requests that were refused.
    pub refused: u64,
    /// The event of the first refusal, counted from 0.
    pub first_refused: Option<usize>,
    /// Time in the loop of allocations and frees alone.
    pub elapsed: Duration,
    /// The pool's counters at the end.
    pub stats: Stats,
}

impl Outcome {
    /// Nanoseconds an event for a program of `events` events, 0 for none.
    #[must_use]
    pub fn nanoseconds_per(&self, events: usize) -> f64 {
        let nanoseconds = u64::try_from(self.elapsed.as_nanos()).unwrap_or(u64::MAX);
        ratio(nanoseconds, events as u64)
    }
}

/// Why a replay could not be done.
#[derive(Debug, Clone, Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// The pool's options are out of range.
    #[error(transparent)]
    Options(#[from] OptionsError),
    /// Not even the largest limit serves the program.
    #[error("no limit up to {} bytes serves the program", crate::MAX_BYTES)]
    NoLimit,
    /// The caller did not want to wait any longer.
    #[error("the search was interrupted")]
    Interrupted,
    /// Something other than a refusal.
    #[error(transparent)]
    Alloc(AllocError),
}

/// Plays a program into a fresh pool on made-up addresses whose regions lie `gap` bytes apart.
///
/// With `offsets`, one number an event: the distance from the first region's start, -1 for a refusal, for
/// zero bytes, and for the free of either; a free repeats what it frees.
///
/// # Errors
/// When the options are out of range.
///
/// # Panics
/// When `offsets` is shorter than the program, or `gap` is not a multiple of the granule.
pub fn replay(
    program: &Program,
    options: &Options,
    gap: u64,
    offsets: Option<&mut [i64]>,
) -> Result<Outcome, ReplayError> {
    let pool = Pool::new(AddressSpace::new(gap), options.clone())?;
    match offsets {
        None => play(&pool, program, |_, _| {}),
        Some(offsets) => play(&pool, program, |event, address| {
            let offset = address.checked_sub(AddressSpace::START);
            offsets[event] = offset.map_or(-1, u64::cast_signed);
        }),
    }
    .map_err(ReplayError::Alloc)
}

/// Plays a program into a pool of any source; `each` gets the event's number and address, 0 for none.
///
/// # Errors
/// When the pool fails in another way than by refusing.
pub fn play(pool: &Pool, program: &Program, mut each: impl FnMut(usize, u64)) -> Result<Outcome, AllocError> {
    let mut addresses = vec![0_u64; program.slots];
    let mut refused = 0;
    let mut first_refused = None;
    let start = Instant::now();
    for (number, &event) in program.events.iter().enumerate() {
        match event {
            Event::Allocate { slot, bytes } => {
                let address = match pool.allocate(bytes) {
                    Ok(allocation) => allocation.address,
                    Err(AllocError::OutOfMemory(_)) => {
                        refused += 1;
                        first_refused = first_refused.or(Some(number));
                        0
                    }
                    Err(other) => return Err(other),
                };
                addresses[slot as usize] = address;
                each(number, address);
            }
            Event::Free { slot } => {
                let address = addresses[slot as usize];
                each(number, address);
                // The program frees only what it allocated, and nobody else has this pool's addresses.
                let _ = pool.free(address);
            }
        }
    }
    let elapsed = start.elapsed();
    Ok(Outcome { refused, first_refused, elapsed, stats: pool.stats()? })
}

/// The smallest limit, a multiple of [`LIMIT_STEP`], under which [`replay`] refuses nothing; see [`min_limit`].
///
/// Before each replay `go_on` is asked whether to.
///
/// # Errors
/// When the options, their limit apart, are out of range, when no limit is enough, or when it is to stop.
pub fn min_limit_of(
    program: &Program,
    options: &Options,
    gap: u64,
    mut go_on: impl FnMut() -> bool,
) -> Result<u64, ReplayError> {
    let found = min_limit(program.peak_live, |limit| {
        if !go_on() {
            return Err(ReplayError::Interrupted);
        }
        // A limit of nothing is no option of a pool; it serves whoever asks for nothing.
        if limit == 0 {
            return Ok(program.peak_live == 0);
        }
        let options = Options { limit, ..options.clone() };
        Ok(replay(program, &options, gap, None)?.refused == 0)
    })?;
    found.ok_or(ReplayError::NoLimit)
}

/// The smallest multiple of [`LIMIT_STEP`] that `fits`, by bisection between the peak of live bytes (rounded
/// down) and eight times that; further up where requests are so small that even that is too little. None if
/// the largest limit is too little.
///
/// # Errors
/// The first error of `fits`.
pub fn min_limit<E>(peak_live: u64, mut fits: impl FnMut(u64) -> Result<bool, E>) -> Result<Option<u64>, E> {
    const LARGEST: u64 = crate::MAX_BYTES / LIMIT_STEP;
    let mut low = peak_live / LIMIT_STEP;
    let mut high = (low * 8).clamp(64, LARGEST);
    while !fits(high * LIMIT_STEP)? {
        if high == LARGEST {
            return Ok(None);
        }
        low = high + 1;
        high = (high * 2).min(LARGEST);
    }
    while low < high {
        let middle = low.midpoint(high);
        if fits(middle * LIMIT_STEP)? {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    Ok(Some(low * LIMIT_STEP))
}

#[cfg(test)]
mod tests;

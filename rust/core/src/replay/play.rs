//! One replay: where each block lies, what is refused, how long it takes.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use thiserror::Error;

use super::limits::MAX_GRANULARITY;
use super::program::{Event, Program};
use crate::allocator::Allocation;
use crate::error::{AllocError, OptionsError};
use crate::pool::{Options, Pool};
use crate::source::AddressSpace;
use crate::stats::Stats;
use crate::units::ratio;

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
    /// The limits to try are multiples of a number that is out of range.
    #[error(
        "granularity must be a multiple of {} bytes up to {MAX_GRANULARITY}, not {granularity}",
        crate::GRANULE
    )]
    Granularity {
        /// The number, in bytes.
        granularity: u64,
    },
    /// The caller stopped the search.
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
pub fn play(pool: &Pool, program: &Program, each: impl FnMut(usize, u64)) -> Result<Outcome, AllocError> {
    let mut counting = Counting { each, refused: 0, first_refused: None };
    let start = Instant::now();
    let _ = run(pool, program, &mut counting)?;
    let elapsed = start.elapsed();
    let Counting { refused, first_refused, .. } = counting;
    Ok(Outcome { refused, first_refused, elapsed, stats: pool.stats()? })
}

/// Sees each event of a replay, and may end it.
pub(super) trait Watch {
    /// The pool served a request, of zero bytes with address 0.
    fn allocated(&mut self, event: usize, allocation: &Allocation) -> ControlFlow<()>;
    /// The pool refused a request.
    fn refused(&mut self, event: usize) -> ControlFlow<()>;
    /// The pool got a block back; address 0 for a request of zero bytes, or a refused one.
    fn freed(&mut self, event: usize, address: u64);
}

/// Plays a program into a pool, to its end or as long as `watch` lets it go on.
pub(super) fn run(
    pool: &Pool,
    program: &Program,
    watch: &mut impl Watch,
) -> Result<ControlFlow<()>, AllocError> {
    let mut addresses = vec![0_u64; program.slots()];
    for (number, &event) in program.events().iter().enumerate() {
        match event {
            Event::Allocate { slot, bytes } => {
                let (address, flow) = match pool.allocate(bytes) {
                    Ok(allocation) => (allocation.address, watch.allocated(number, &allocation)),
                    Err(AllocError::OutOfMemory(_)) => (0, watch.refused(number)),
                    Err(other) => return Err(other),
                };
                addresses[slot as usize] = address;
                if flow.is_break() {
                    return Ok(flow);
                }
            }
            Event::Free { slot } => {
                let address = addresses[slot as usize];
                // The program frees only what it allocated, and no other thread has this pool's addresses.
                let _ = pool.free(address);
                watch.freed(number, address);
            }
        }
    }
    Ok(ControlFlow::Continue(()))
}

/// Counts refusals and passes each event on.
struct Counting<F> {
    each: F,
    refused: u64,
    first_refused: Option<usize>,
}

impl<F: FnMut(usize, u64)> Watch for Counting<F> {
    fn allocated(&mut self, event: usize, allocation: &Allocation) -> ControlFlow<()> {
        (self.each)(event, allocation.address);
        ControlFlow::Continue(())
    }

    fn refused(&mut self, event: usize) -> ControlFlow<()> {
        self.refused += 1;
        self.first_refused = self.first_refused.or(Some(event));
        (self.each)(event, 0);
        ControlFlow::Continue(())
    }

    fn freed(&mut self, event: usize, address: u64) {
        (self.each)(event, address);
    }
}

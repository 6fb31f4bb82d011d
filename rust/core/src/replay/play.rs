//! One replay: the offset of each block, the refusals, and the elapsed time.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use thiserror::Error;

use super::limits::MAX_GRANULARITY;
use super::program::{Event, Program};
use crate::error::{AllocError, OptionsError};
use crate::options::Options;
use crate::pool::Pool;
use crate::source::AddressSpace;
use crate::stats::Stats;
use crate::tables::Allocation;

/// The result of a replay.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(not(feature = "_exhaustive"), non_exhaustive)]
pub struct Outcome {
    /// Number of refused requests.
    pub refused: u64,
    /// The event of the first refusal, counted from 0.
    pub first_refused: Option<usize>,
    /// Time of the loop over the events alone.
    pub elapsed: Duration,
    /// The pool's counters at the end.
    pub stats: Stats,
}

/// Why a replay failed.
#[derive(Debug, Clone, Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// The pool's options are out of range.
    #[error(transparent)]
    Options(#[from] OptionsError),
    /// Even the largest limit does not serve the program.
    #[error("no limit up to {} bytes serves the program", crate::MAX_BYTES)]
    NoLimit,
    /// The granularity of the limits is out of range.
    #[error(
        "granularity must be a multiple of {} bytes up to {MAX_GRANULARITY}, not {granularity}",
        crate::GRANULE
    )]
    Granularity {
        /// The granularity in bytes.
        granularity: u64,
    },
    /// The caller stopped the search.
    #[error("the search was interrupted")]
    Interrupted,
    /// The pool failed otherwise than by a refusal.
    #[error(transparent)]
    Alloc(AllocError),
}

/// Replays a program in a new pool on made-up addresses whose regions lie `gap` bytes apart.
///
/// `offsets` receives one number per event: the distance from the first region's start, or -1 for a refusal, for zero
/// bytes, and for the free of either. A free repeats the offset of its allocation.
///
/// # Errors
/// If the options are out of range.
///
/// # Panics
/// If `offsets` is shorter than the program, or if `gap` is not a multiple of the granule.
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

/// Replays a program in a pool of any source; calls `each` with the number and address of each event, 0 for none.
///
/// # Errors
/// If the pool fails otherwise than by a refusal.
pub fn play(pool: &Pool, program: &Program, each: impl FnMut(usize, u64)) -> Result<Outcome, AllocError> {
    let mut counting = Counting { each, refused: 0, first_refused: None };
    let start = Instant::now();
    let _ = run(pool, program, &mut counting)?;
    let elapsed = start.elapsed();
    let Counting { refused, first_refused, .. } = counting;
    Ok(Outcome { refused, first_refused, elapsed, stats: pool.stats()? })
}

/// Receives each event of a replay and may end the replay.
pub(super) trait ReplayObserver {
    /// The pool served a request; the address is 0 for zero bytes.
    fn allocated(&mut self, event: usize, allocation: &Allocation) -> ControlFlow<()>;
    /// The pool refused a request.
    fn refused(&mut self, event: usize) -> ControlFlow<()>;
    /// The pool freed a block; the address is 0 for zero bytes and for a refused request.
    fn freed(&mut self, event: usize, address: u64);
}

/// Replays a program in a pool to its end, or until `observer` ends it.
pub(super) fn run(
    pool: &Pool,
    program: &Program,
    observer: &mut impl ReplayObserver,
) -> Result<ControlFlow<()>, AllocError> {
    let mut addresses = vec![0_u64; program.slots()];
    for (number, &event) in program.events().iter().enumerate() {
        match event {
            Event::Allocate { slot, bytes } => {
                let (address, flow) = match pool.allocate(bytes) {
                    Ok(allocation) => (allocation.address, observer.allocated(number, &allocation)),
                    Err(AllocError::OutOfMemory(_)) => (0, observer.refused(number)),
                    Err(other) => return Err(other),
                };
                addresses[slot as usize] = address;
                if flow.is_break() {
                    return Ok(flow);
                }
            }
            Event::Free { slot } => {
                let address = addresses[slot as usize];
                // Cannot fail: the program frees only its own allocations, and no other thread knows their addresses.
                let _ = pool.free(address);
                observer.freed(number, address);
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

impl<F: FnMut(usize, u64)> ReplayObserver for Counting<F> {
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

//! A replay in the model.

use std::time::{Duration, Instant};

use super::{CachingAllocator, CachingOptions};
use crate::replay::program::{Event, Program};

/// The result of a replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(not(feature = "_exhaustive"), non_exhaustive)]
pub struct CachingOutcome {
    /// Number of refused requests.
    pub refused: u64,
    /// The event of the first refusal, counted from 0.
    pub first_refused: Option<usize>,
    /// The most bytes of all segments at once.
    pub peak_reserved: u64,
    /// The most bytes of all blocks in use at once.
    pub peak_in_use: u64,
    /// Bytes of all segments at the end.
    pub reserved: u64,
    /// Number of segments at the end; of an expandable one, of its mapped ranges.
    pub segments: usize,
    /// Time of the loop over the events alone.
    pub elapsed: Duration,
}

/// Replays a program; `streams` has the stream of each event, or is empty for one stream.
#[must_use]
pub fn replay_caching(program: &Program, streams: &[i64], options: CachingOptions) -> CachingOutcome {
    let mut model = CachingAllocator::new(options);
    let mut addresses = vec![None; program.slots()];
    let (mut refused, mut first_refused) = (0, None);
    let start = Instant::now();
    for (number, &event) in program.events().iter().enumerate() {
        match event {
            // PyTorch has no block for zero bytes.
            Event::Allocate { slot, bytes: 0 } => addresses[slot as usize] = None,
            Event::Allocate { slot, bytes } => {
                let address = model.allocate(bytes, streams.get(number).copied().unwrap_or(0));
                addresses[slot as usize] = address;
                if address.is_none() {
                    refused += 1;
                    first_refused = first_refused.or(Some(number));
                }
            }
            Event::Free { slot } => {
                if let Some(address) = addresses[slot as usize] {
                    model.free(address);
                }
            }
        }
    }
    CachingOutcome {
        refused,
        first_refused,
        peak_reserved: model.peak_reserved,
        peak_in_use: model.peak_in_use,
        reserved: model.reserved,
        segments: model.segments.len() + model.mapped_ranges(),
        elapsed: start.elapsed(),
    }
}

//! Replays of recorded programs: the offset of each block, the refusals, and the limits that suffice.
//!
//! [`replay`] plays a [`Program`] at one limit. [`find_limits`] finds the smallest limit that serves it, and a limit
//! from which on all limits are safe: best fit is not monotone, so one limit may serve a program while a larger one
//! refuses.

mod caching;
mod known;
mod limits;
mod picture;
mod play;
mod probe;
mod program;
mod search;
mod slack;

pub use caching::{CachingAllocator, CachingOptions, CachingOutcome, replay_caching};
pub use limits::{LIMIT_STEP, Limits, Progress, Search, find_limits};
pub use picture::{BlockSpan, Detail, Picture, Point, Shade, picture};
pub use play::{Outcome, ReplayError, play, replay};
pub use program::{Event, MAX_EVENT_BYTES, Program, ProgramError};

#[cfg(test)]
mod tests;

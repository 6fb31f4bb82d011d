//! Plays recorded programs into pools: where each block lies, what is refused, which limits are enough.
//!
//! [`replay`] plays a [`Program`] at one limit. [`find_limits`] finds the smallest limit that serves it, and one
//! from which on limits are safe: best fit is not monotone, so a limit may serve while a larger one refuses.

mod known;
mod limits;
mod play;
mod probe;
mod program;
mod search;
mod slack;

pub use limits::{LIMIT_STEP, Limits, Progress, Search, find_limits};
pub use play::{Outcome, ReplayError, play, replay};
pub use program::{Event, MAX_EVENT_BYTES, Program, ProgramError};

#[cfg(test)]
mod tests;

//! What the threads of a pool agree through.
//!
//! A [`Mutex`] that costs next to nothing while one thread uses it alone; a [`Bell`] that wakes who waits; a
//! [`Mailbox`] for what could not wait; a [`Turn`], for one thread at a time and known to its holder; a
//! [`PerProcess`] value, of which a forked child has its own. Nothing here knows of memory. Built with `--cfg loom`, all
//! of it runs in loom, and so does what is built on it.

mod bell;
mod biased;
mod mailbox;
mod mutex;
mod per_process;
mod primitives;
mod thread;
mod turn;

pub use bell::Bell;
pub use mailbox::Mailbox;
pub use mutex::{Broken, Guard, Mutex};
pub use per_process::{PerProcess, entered_child, generation};
pub use turn::{Inside, Turn, TurnGuard};

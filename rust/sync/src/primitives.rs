//! What this crate is built from: the machine's, or loom's in its place.

#[cfg(not(loom))]
mod barrier;
#[cfg(not(loom))]
mod machine;
#[cfg(loom)]
mod modelled;
#[cfg(not(loom))]
mod thread;

#[cfg(not(loom))]
pub(crate) use machine::*;
#[cfg(loom)]
pub(crate) use modelled::*;

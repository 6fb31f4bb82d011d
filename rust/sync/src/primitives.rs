//! The primitives that this crate builds on: native ones, or loom's under `--cfg loom`.

#[cfg(not(loom))]
mod barrier;
#[cfg(loom)]
mod loom;
#[cfg(not(loom))]
mod native;
#[cfg(not(loom))]
mod thread;

#[cfg(loom)]
pub use self::loom::starve_at_once;
#[cfg(loom)]
pub(crate) use self::loom::*;
#[cfg(not(loom))]
pub(crate) use native::*;

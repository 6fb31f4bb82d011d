//! What pools report: snapshots, the reasons of refusals, and what would make a refused request succeed.

pub(crate) mod advice;
pub(crate) mod details;
pub(crate) mod history;
#[cfg(feature = "std")]
pub(crate) mod kept;
pub(crate) mod out_of_memory;
#[cfg(feature = "std")]
pub(crate) mod rerun;
pub(crate) mod snapshot;

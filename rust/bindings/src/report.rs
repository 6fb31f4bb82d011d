//! What pools report, as classes of Python.

pub(crate) mod advice;
pub(crate) mod explanation;
mod fields;
pub(crate) mod snapshot;
pub(crate) mod stats;

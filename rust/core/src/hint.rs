//! What the compiler is told of how often a way is gone.

/// This way is seldom gone: whatever leads here is laid out beside the ways of most.
#[cold]
#[inline]
pub(crate) const fn cold_path() {}

//! Branch hints for the compiler.

/// Marks the enclosing branch as unlikely: the compiler lays it out away from the likely path.
#[cold]
#[inline]
pub(crate) const fn cold_path() {}

//! Fork support: in a forked child, a thread that no longer exists may hold a pool's lock for ever.

pub(crate) use allotment_sync::generation;

/// Marks this process as a forked child for all existing pools.
///
/// Call it in the child before any use of a pool. From then on those pools return
/// [`Unusable::Forked`](crate::Unusable::Forked) from every call and release nothing; pools created afterwards work.
/// Memory that the parent wrote stays readable.
pub fn entered_child() {
    allotment_sync::entered_child();
}

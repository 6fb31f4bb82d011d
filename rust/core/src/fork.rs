//! Forked processes: a pool's lock may be held for ever by a thread that the child does not have.

pub(crate) use allotment_sync::generation;

/// Tells every pool made so far that this process is a forked child.
///
/// Call it in the child, before it uses a pool. From then on those pools refuse every call with
/// [`Unusable::Forked`](crate::Unusable::Forked) and give nothing back; pools made afterwards work. Memory
/// that the parent had written stays readable.
pub fn entered_child() {
    allotment_sync::entered_child();
}

//! Numbers of threads, cheap to ask for and never used twice.

use std::cell::Cell;
// Not loom's: that a number is new needs no model.
use std::sync::atomic::{AtomicU64, Ordering};

/// From one number to the next: the bits below are for whoever stores one.
pub(crate) const STEP: u64 = 8;

#[cfg(not(loom))]
thread_local! {
    static NUMBER: Cell<u64> = const { Cell::new(0) };
}
#[cfg(loom)]
loom::thread_local! {
    static NUMBER: Cell<u64> = Cell::new(0);
}

/// This thread's number, or 0 while it has none.
#[inline]
pub(crate) fn number_if_any() -> u64 {
    NUMBER.with(Cell::get)
}

/// Gives this thread another number: in a forked child, where it is another thread with the same memory.
pub fn renumber_thread() {
    NUMBER.with(|number| number.set(0));
}

/// This thread's number, a multiple of [`STEP`] above 0.
pub(crate) fn number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(STEP);
    NUMBER.with(|number| {
        if number.get() == 0 {
            number.set(NEXT.fetch_add(STEP, Ordering::Relaxed));
        }
        number.get()
    })
}

//! Loom's primitives, for tests that try every interleaving.

use std::cell::Cell;
use std::time::Duration;

use loom::cell::{MutPtr, UnsafeCell};
use loom::sync::atomic::fence;

pub(crate) use loom::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering,
};
pub(crate) use loom::sync::{Condvar, Mutex, MutexGuard};

pub(crate) fn init_barrier() {}

pub(crate) fn light_is_enough() -> bool {
    true
}

/// A full barrier: loom has no barrier that acts on other threads, and full barriers on both sides are as good.
pub(crate) fn light() {
    fence(Ordering::SeqCst);
}

pub(crate) use light as light_or_full;

pub(crate) fn heavy() -> bool {
    fence(Ordering::SeqCst);
    true
}

loom::thread_local! {
    static NUMBER: Cell<u64> = Cell::new(0);
}

/// Returns a thread-local counter value that is never reused.
pub(crate) fn this_thread() -> u64 {
    static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(8);
    NUMBER.with(|number| {
        if number.get() == 0 {
            number.set(NEXT.fetch_add(8, Ordering::Relaxed));
        }
        number.get()
    })
}

/// Does nothing: loom's threads pause wherever that makes a difference.
pub(crate) fn pause(_nanoseconds: u64) {}

std::thread_local! {
    /// Whether a waiting thread starves at once. All threads of a model run on one thread of the system.
    static STARVES_AT_ONCE: Cell<bool> = const { Cell::new(false) };
}

/// Decides for the model that the calling thread runs whether a waiting thread starves at once, or never.
pub fn starve_at_once(at_once: bool) {
    STARVES_AT_ONCE.set(at_once);
}

/// The time since a thread began to wait. No time passes in loom.
pub(crate) struct Waited;

#[expect(clippy::unused_self, reason = "as the machine's")]
impl Waited {
    pub(crate) fn from_now() -> Self {
        Self
    }

    pub(crate) fn is_over(&self, nanoseconds: u64) -> bool {
        nanoseconds == 0 || STARVES_AT_ONCE.get()
    }

    pub(crate) fn rest_of(&self, nanoseconds: u64) -> Duration {
        Duration::from_nanos(nanoseconds)
    }
}

/// A cell that reports two concurrent accesses.
pub(crate) struct TrackedCell<T>(UnsafeCell<T>);

/// The time span of one access to the cell.
pub(crate) type Access<T> = MutPtr<T>;

impl<T> TrackedCell<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(UnsafeCell::new(value))
    }

    pub(crate) fn access(&self) -> Access<T> {
        self.0.get_mut()
    }

    /// Returns the value for the span of an access.
    ///
    /// # Safety
    /// No other reference to the value is alive.
    #[expect(clippy::mut_from_ref, clippy::unused_self, reason = "as the machine's")]
    pub(crate) unsafe fn value<'a>(&'a self, access: &'a Access<T>) -> &'a mut T {
        // SAFETY: guaranteed by the caller.
        unsafe { access.deref() }
    }
}

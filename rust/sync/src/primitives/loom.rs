//! Loom's primitives, for tests that try every interleaving.

use std::cell::Cell;

use loom::cell::{MutPtr, UnsafeCell};
use loom::sync::atomic::fence;

pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
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

pub(crate) fn heavy() {
    fence(Ordering::SeqCst);
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

pub(crate) fn back_off(_times: u32) {
    loom::thread::yield_now();
}

/// A lock built from loom's atomics, with no guarantee beyond mutual exclusion; loom cannot see into `parking_lot`.
pub(crate) struct InnerLock {
    taken: AtomicBool,
    asleep: Mutex<()>,
    left: Condvar,
}

impl InnerLock {
    pub(crate) fn new() -> Self {
        Self { taken: AtomicBool::new(false), asleep: Mutex::new(()), left: Condvar::new() }
    }

    pub(crate) fn lock(&self) {
        let mut asleep = self.asleep();
        while !self.try_lock() {
            asleep = self.left.wait(asleep).expect("a sleeper cannot panic");
        }
    }

    pub(crate) fn try_lock(&self) -> bool {
        self.taken.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Releases the lock.
    ///
    /// # Safety
    /// The calling thread holds the lock.
    pub(crate) unsafe fn unlock(&self) {
        self.taken.store(false, Ordering::Release);
        drop(self.asleep());
        self.left.notify_one();
    }

    fn asleep(&self) -> MutexGuard<'_, ()> {
        self.asleep.lock().expect("a sleeper cannot panic")
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

//! Loom's.

use std::cell::Cell;

use loom::cell::{MutPtr, UnsafeCell};
use loom::sync::atomic::fence;

pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
pub(crate) use loom::sync::{Condvar, Mutex, MutexGuard};

pub(crate) fn prepare() {}

pub(crate) fn light_is_enough() -> bool {
    true
}

/// Loom knows no barrier that works on other threads; an ordinary one on either side is as good.
pub(crate) fn light() {
    fence(Ordering::SeqCst);
}

pub(crate) use light as lightest;

pub(crate) fn heavy() {
    fence(Ordering::SeqCst);
}

loom::thread_local! {
    static NUMBER: Cell<u64> = Cell::new(0);
}

/// Counted, and never used twice.
pub(crate) fn this_thread() -> u64 {
    static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(8);
    NUMBER.with(|number| {
        if number.get() == 0 {
            number.set(NEXT.fetch_add(8, Ordering::Relaxed));
        }
        number.get()
    })
}

pub(crate) fn give_way(_times: u32) {
    loom::thread::yield_now();
}

/// A lock that promises no more than it must, in place of one that loom cannot see into.
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

    /// # Safety
    /// This thread has the lock.
    pub(crate) unsafe fn unlock(&self) {
        self.taken.store(false, Ordering::Release);
        drop(self.asleep());
        self.left.notify_one();
    }

    fn asleep(&self) -> MutexGuard<'_, ()> {
        self.asleep.lock().expect("a sleeper cannot panic")
    }
}

/// A cell that complains when two look into it at once.
pub(crate) struct WatchedCell<T>(UnsafeCell<T>);

/// From when to when somebody looks into the cell.
pub(crate) type Access<T> = MutPtr<T>;

impl<T> WatchedCell<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(UnsafeCell::new(value))
    }

    pub(crate) fn access(&self) -> Access<T> {
        self.0.get_mut()
    }

    /// # Safety
    /// No other reference to the value is alive.
    #[expect(clippy::mut_from_ref, clippy::unused_self, reason = "as the machine's")]
    pub(crate) unsafe fn value<'a>(&'a self, access: &'a Access<T>) -> &'a mut T {
        // SAFETY: the caller vouches for it.
        unsafe { access.deref() }
    }
}

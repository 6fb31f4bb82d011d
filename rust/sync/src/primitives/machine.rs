//! The machine's.

use std::cell::UnsafeCell;
use std::hint::spin_loop;
use std::marker::PhantomData;
use std::time::Duration;

use parking_lot::lock_api::RawMutex as _;

pub(crate) use super::barrier::{heavy, light, light_is_enough, lightest, prepare};
pub(crate) use super::thread::this_thread;
pub(crate) use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
pub(crate) use std::sync::{Condvar, Mutex, MutexGuard};

/// A lock that sleeps where others hold it.
pub(crate) struct InnerLock(parking_lot::RawMutex);

impl InnerLock {
    pub(crate) fn new() -> Self {
        Self(parking_lot::RawMutex::INIT)
    }

    pub(crate) fn lock(&self) {
        self.0.lock();
    }

    pub(crate) fn try_lock(&self) -> bool {
        self.0.try_lock()
    }

    /// # Safety
    /// This thread has the lock.
    pub(crate) unsafe fn unlock(&self) {
        // SAFETY: the caller vouches for it.
        unsafe { self.0.unlock() };
    }
}

/// A cell that loom would watch.
pub(crate) struct WatchedCell<T>(UnsafeCell<T>);

/// From when to when somebody looks into the cell.
pub(crate) struct Access<T>(PhantomData<*mut T>);

impl<T> WatchedCell<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(UnsafeCell::new(value))
    }

    #[inline]
    #[expect(clippy::unused_self, reason = "what loom must know")]
    pub(crate) fn access(&self) -> Access<T> {
        Access(PhantomData)
    }

    /// # Safety
    /// No other reference to the value is alive.
    #[inline]
    #[expect(clippy::mut_from_ref, reason = "the caller vouches for it")]
    pub(crate) unsafe fn value(&self, _access: &Access<T>) -> &mut T {
        // SAFETY: the caller vouches for it.
        unsafe { &mut *self.0.get() }
    }
}

/// Lets other threads go on; the more often it did not help, the longer.
pub(crate) fn give_way(times: u32) {
    match times {
        0..16 => spin_loop(),
        16..64 => std::thread::yield_now(),
        // Whoever is waited for walks a long list, or is not on a processor.
        _ => std::thread::sleep(Duration::from_micros(50)),
    }
}

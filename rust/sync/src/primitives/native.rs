//! The primitives of the operating system and of `parking_lot`.

use std::cell::UnsafeCell;
use std::hint::spin_loop;
use std::marker::PhantomData;
use std::time::Duration;

use parking_lot::lock_api::RawMutex as _;

pub(crate) use super::barrier::{heavy, init_barrier, light, light_is_enough, light_or_full};
pub(crate) use super::thread::this_thread;
pub(crate) use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
pub(crate) use std::sync::{Condvar, Mutex, MutexGuard};

/// The lock behind the bias: a mutex that blocks under contention.
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

    /// Releases the lock.
    ///
    /// # Safety
    /// The calling thread holds the lock.
    pub(crate) unsafe fn unlock(&self) {
        // SAFETY: guaranteed by the caller.
        unsafe { self.0.unlock() };
    }
}

/// An `UnsafeCell`; loom's counterpart tracks its accesses.
pub(crate) struct TrackedCell<T>(UnsafeCell<T>);

/// The time span of one access to the cell.
pub(crate) struct Access<T>(PhantomData<*mut T>);

impl<T> TrackedCell<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(UnsafeCell::new(value))
    }

    #[inline]
    #[expect(clippy::unused_self, reason = "what loom must know")]
    pub(crate) fn access(&self) -> Access<T> {
        Access(PhantomData)
    }

    /// Returns the value for the span of an access.
    ///
    /// # Safety
    /// No other reference to the value is alive.
    #[inline]
    #[expect(clippy::mut_from_ref, reason = "the caller vouches for it")]
    pub(crate) unsafe fn value(&self, _access: &Access<T>) -> &mut T {
        // SAFETY: guaranteed by the caller.
        unsafe { &mut *self.0.get() }
    }
}

/// Spins, yields or sleeps, depending on the number of failed attempts.
pub(crate) fn back_off(times: u32) {
    match times {
        0..16 => spin_loop(),
        16..64 => std::thread::yield_now(),
        // The lock holder walks a long list, or the scheduler has preempted it.
        _ => std::thread::sleep(Duration::from_micros(50)),
    }
}

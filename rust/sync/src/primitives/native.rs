//! The primitives of the operating system.

use std::cell::UnsafeCell;
use std::hint::spin_loop;
use std::marker::PhantomData;
use std::time::{Duration, Instant};

pub(crate) use super::barrier::{heavy, init_barrier, light, light_is_enough, light_or_full};
pub(crate) use super::thread::this_thread;
pub(crate) use std::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering,
};
pub(crate) use std::sync::{Condvar, Mutex, MutexGuard};

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

/// Spins for about this many nanoseconds.
pub(crate) fn pause(nanoseconds: u64) {
    let waited = Waited::from_now();
    loop {
        spin_loop();
        if waited.is_over(nanoseconds) {
            return;
        }
    }
}

/// The time since a thread began to wait.
pub(crate) struct Waited(Instant);

impl Waited {
    pub(crate) fn from_now() -> Self {
        Self(Instant::now())
    }

    /// Returns whether that many nanoseconds have passed.
    pub(crate) fn is_over(&self, nanoseconds: u64) -> bool {
        self.0.elapsed().as_nanos() >= u128::from(nanoseconds)
    }

    /// Returns how much of a number of nanoseconds is left since the start; all of it if nothing is left.
    pub(crate) fn rest_of(&self, nanoseconds: u64) -> Duration {
        let all = Duration::from_nanos(nanoseconds);
        all.checked_sub(self.0.elapsed()).filter(|rest| !rest.is_zero()).unwrap_or(all)
    }
}

//! Per-process values: a forked child gets its own value.
//!
//! A forked child gets a copy of all memory but none of the other threads. A lock that another thread held at the
//! fork stays locked in the child for ever. Each process therefore uses its own value. The child's value hangs off
//! its parent's, and the child never reads the parent's.

// Uses std's atomics, not loom's: loom does not model processes.
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

/// The number of forks between the first process and this one, as reported by [`entered_child`].
static GENERATION: AtomicU64 = AtomicU64::new(0);

/// Returns the number of forks between the first process and this one, as reported by [`entered_child`].
#[inline]
pub fn generation() -> u64 {
    GENERATION.load(Ordering::Relaxed)
}

/// Marks this process as a forked child. Takes no lock and allocates nothing.
pub fn entered_child() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
    // A new number makes the child's only thread a non-owner of every biased lock of the parent, so it takes the slow
    // path.
    crate::thread::renumber_thread();
}

/// A static value with one instance for each process.
#[derive(Debug)]
pub struct PerProcess<T: 'static> {
    value: T,
    make: fn() -> T,
    /// The instance of the child process; null until its first use.
    child: AtomicPtr<Self>,
}

impl<T> PerProcess<T> {
    /// Creates the instance of the first process; `make` creates the instance of a forked child.
    pub const fn new(first: T, make: fn() -> T) -> Self {
        Self { value: first, make, child: AtomicPtr::new(std::ptr::null_mut()) }
    }

    /// Returns the instance of this process, and creates it on the first call in a child.
    pub fn get(&'static self) -> &'static T {
        let mut at = self;
        for _ in 0..generation() {
            at = at.child_value();
        }
        &at.value
    }

    /// Returns the child's instance, and creates it on the first call.
    ///
    /// Takes no lock: a thread that does not exist in the child may have held it at the fork.
    fn child_value(&'static self) -> &'static Self {
        let found = self.child.load(Ordering::Acquire);
        // SAFETY: the pointer is null or was leaked below, and a leaked instance is never changed or freed.
        if let Some(found) = unsafe { found.as_ref() } {
            return found;
        }
        let made = Box::into_raw(Box::new(Self::new((self.make)(), self.make)));
        match self.child.compare_exchange(found, made, Ordering::AcqRel, Ordering::Acquire) {
            // SAFETY: the instance was leaked above.
            Ok(_) => unsafe { &*made },
            Err(earlier) => {
                // SAFETY: no other thread has seen this instance.
                drop(unsafe { Box::from_raw(made) });
                // SAFETY: another thread leaked this instance, as above.
                unsafe { &*earlier }
            }
        }
    }
}

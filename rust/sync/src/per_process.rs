//! A value of which every process has its own, a forked child as well.
//!
//! A child gets a copy of all memory and none of the other threads: a lock that one of them held stays locked for ever.
//! So a child uses a value of its own, behind its parent's, and never looks at that one.

// Not loom's: that a process is another one in a forked child needs no model.
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

/// How many forks lie between the first process and this one, as far as it was told.
static GENERATION: AtomicU64 = AtomicU64::new(0);

/// How many forks lie between the first process and this one, as far as it was told.
#[inline]
pub fn generation() -> u64 {
    GENERATION.load(Ordering::Relaxed)
}

/// Tells this process that it is a forked child. Takes no lock, and allocates nothing.
pub fn entered_child() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
    // The child's one thread owns none of the locks of its parent, so it does not get in without looking.
    crate::thread::renumber_thread();
}

/// A value for each process: for statics, whose values live as long as the process.
#[derive(Debug)]
pub struct PerProcess<T: 'static> {
    value: T,
    make: fn() -> T,
    /// That of a child of this process, null until it is asked for.
    child: AtomicPtr<Self>,
}

impl<T> PerProcess<T> {
    /// The value of the first process, and what makes that of a forked child.
    pub const fn new(first: T, make: fn() -> T) -> Self {
        Self { value: first, make, child: AtomicPtr::new(std::ptr::null_mut()) }
    }

    /// The value of this process; a child's is made at the first call.
    pub fn get(&'static self) -> &'static T {
        let mut at = self;
        for _ in 0..generation() {
            at = at.of_child();
        }
        &at.value
    }

    /// Without a lock: a thread that the child does not have may have been here when it forked.
    fn of_child(&'static self) -> &'static Self {
        let found = self.child.load(Ordering::Acquire);
        // SAFETY: null, or what was leaked below, which is never changed or freed.
        if let Some(found) = unsafe { found.as_ref() } {
            return found;
        }
        let made = Box::into_raw(Box::new(Self::new((self.make)(), self.make)));
        match self.child.compare_exchange(found, made, Ordering::AcqRel, Ordering::Acquire) {
            // SAFETY: leaked a moment ago.
            Ok(_) => unsafe { &*made },
            Err(earlier) => {
                // SAFETY: no other thread knows of this one.
                drop(unsafe { Box::from_raw(made) });
                // SAFETY: leaked by another thread, as above.
                unsafe { &*earlier }
            }
        }
    }
}

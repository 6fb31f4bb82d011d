//! An asymmetric pair of memory barriers: the frequent one is free.
//!
//! If one thread calls [`light`] and another calls [`heavy`], one of the calls comes first, and everything before it
//! is visible after the other. On Linux the heavy barrier is `membarrier(2)`, which executes a full barrier on every
//! running thread of the process. Where `membarrier` does not work, an ordinary full barrier must replace the light
//! one.
//!
//! A filter of system calls may forbid `membarrier` at any time, to all threads or to one. The first thread that
//! notices tells the others; each new lock looks.

use std::sync::atomic::{AtomicU8, Ordering, compiler_fence, fence};

/// What [`heavy`] does: one of the following.
static REACH: AtomicU8 = AtomicU8::new(THIS_THREAD);

/// It acts on the calling thread alone: the process is not registered for `membarrier`.
const THIS_THREAD: u8 = 0;
/// It acts on all threads.
const ALL_THREADS: u8 = 1;
/// It acted on all threads until a thread was forbidden to call `membarrier`.
const FORBIDDEN: u8 = 2;

/// Registers the process for `membarrier`, if the system has it; looks whether it still works if it is registered.
pub(crate) fn init_barrier() {
    match REACH.load(Ordering::Relaxed) {
        THIS_THREAD if system::register() => REACH.store(ALL_THREADS, Ordering::Relaxed),
        ALL_THREADS => _ = heavy(),
        _ => {}
    }
}

/// Returns whether [`light`] suffices. The answer may be stale, once `membarrier` is forbidden.
#[inline]
pub(crate) fn light_is_enough() -> bool {
    REACH.load(Ordering::Relaxed) == ALL_THREADS
}

/// The barrier of the frequent side: a compiler barrier.
#[inline]
pub(crate) fn light() {
    compiler_fence(Ordering::SeqCst);
}

/// The light barrier where it suffices, a full barrier elsewhere.
#[inline]
pub(crate) fn light_or_full() {
    if light_is_enough() { light() } else { fence(Ordering::SeqCst) }
}

/// The barrier of the rare side: acts on all threads. Returns false if it acted on this one alone, as the system has
/// forbidden `membarrier` since the registration.
pub(crate) fn heavy() -> bool {
    fence(Ordering::SeqCst);
    if REACH.load(Ordering::Relaxed) == THIS_THREAD {
        return true;
    }
    let reaches_all = system::reach_all();
    if !reaches_all {
        REACH.store(FORBIDDEN, Ordering::Relaxed);
    }
    reaches_all
}

#[cfg(target_os = "linux")]
mod system {
    use rustix::thread::{MembarrierCommand, membarrier};

    pub(super) fn register() -> bool {
        membarrier(MembarrierCommand::RegisterPrivateExpedited).is_ok()
    }

    pub(super) fn reach_all() -> bool {
        membarrier(MembarrierCommand::PrivateExpedited).is_ok()
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    pub(super) fn register() -> bool {
        false
    }

    pub(super) fn reach_all() -> bool {
        false
    }
}

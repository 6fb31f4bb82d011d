//! An asymmetric pair of memory barriers: the frequent one is free.
//!
//! If one thread calls [`light`] and another calls [`heavy`], one of the calls comes first, and everything before it
//! is visible after the other. On Linux the heavy barrier is `membarrier(2)`, which executes a full barrier on every
//! running thread of the process. Where `membarrier` does not work, an ordinary full barrier must replace the light
//! one.

use std::sync::atomic::{AtomicBool, Ordering, compiler_fence, fence};

/// Whether [`heavy`] acts on all threads.
static REACHES_ALL: AtomicBool = AtomicBool::new(false);

/// Registers the process for `membarrier`, if the system has it.
pub(crate) fn init_barrier() {
    if !light_is_enough() && system::register() {
        REACHES_ALL.store(true, Ordering::Relaxed);
    }
}

/// Returns whether [`light`] suffices. Once true it stays true.
#[inline]
pub(crate) fn light_is_enough() -> bool {
    REACHES_ALL.load(Ordering::Relaxed)
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
    !light_is_enough() || system::reach_all()
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

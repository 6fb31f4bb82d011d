//! A pair of memory barriers of which the common one costs nothing.
//!
//! Of two threads where one calls [`light`] and the other [`heavy`], one comes first, and what it did before is
//! known to the other after. On Linux the heavy one is `membarrier(2)`, which has every running thread of the
//! process do a full barrier. Where that does not work, an ordinary full barrier must stand for the light one.

use std::sync::atomic::{AtomicBool, Ordering, compiler_fence, fence};

/// Whether [`heavy`] reaches all threads.
static REACHES_ALL: AtomicBool = AtomicBool::new(false);

/// Finds out what the machine has.
pub(crate) fn prepare() {
    if !light_is_enough() && system::register() {
        REACHES_ALL.store(true, Ordering::Relaxed);
    }
}

/// Whether [`light`] may be used. Once true it stays so.
#[inline]
pub(crate) fn light_is_enough() -> bool {
    REACHES_ALL.load(Ordering::Relaxed)
}

/// The barrier of the thread that comes often.
#[inline]
pub(crate) fn light() {
    compiler_fence(Ordering::SeqCst);
}

/// The light barrier where that is enough, and a full one elsewhere.
#[inline]
pub(crate) fn lightest() {
    if light_is_enough() { light() } else { fence(Ordering::SeqCst) }
}

/// The barrier of the thread that comes seldom.
pub(crate) fn heavy() {
    fence(Ordering::SeqCst);
    if light_is_enough() && !system::reach_all() {
        // The process has forbidden itself the call since. No processor holds a store back for so long.
        std::thread::sleep(std::time::Duration::from_millis(10));
        fence(Ordering::SeqCst);
    }
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

//! A lock biased towards the thread that uses it most.
//!
//! A thread that takes the lock repeatedly becomes its **owner**. The owner locks with one store and one load; an
//! atomic read-modify-write instruction would cost more than most critical sections of a pool. Another thread takes
//! an inner lock, revokes the ownership, and waits until the owner has left its critical section. A thread that then
//! takes the lock often enough in a row becomes the next owner. Each change of owner raises the number of
//! acquisitions that the next change needs.
//!
//! ```text
//! owner    busy = true ─ light barrier ─ still the owner? ─ critical section ─ busy = false
//! another  inner lock ─ revoke owner ─ heavy barrier ─ busy is false? ─ critical section ─ inner unlock
//! ```
//!
//! One of the two barriers comes first: either the owner sees the revocation, or the other thread sees that the owner
//! is busy. The heavy barrier acts on every thread of the process, so the light one costs nothing.
//!
//! The scheduler may stop an owner between its first check and its store for any time. That store must not hit the
//! flag of a later owner, so each owner has a flag of its own for the life of the lock. There are [`SLOTS`] flags;
//! after that many owners the lock stays unbiased.

use crate::primitives::{
    AtomicBool, AtomicU32, AtomicU64, InnerLock, Ordering, back_off, heavy, init_barrier, light,
    light_is_enough,
};
use crate::thread;

/// The number of threads that can own a lock during its life.
const SLOTS: usize = 4;
/// Bit of [`BiasedLock::owner`]: another thread revokes the ownership, and the owner must not enter again.
const REVOKING: u64 = 4;

// The slot index and the revocation bit fit below a thread number.
const _: () = assert!(SLOTS as u64 <= REVOKING && 2 * REVOKING <= thread::STEP);

/// Value of [`BiasedLock::owner`] without an owner; differs from every thread number.
const NO_OWNER: u64 = REVOKING;
/// Consecutive acquisitions after which a later thread becomes the owner. The first thread becomes it at once.
const BIAS_THRESHOLD: u32 = if cfg!(loom) { 2 } else { 256 };
/// Upper bound of the threshold: this many acquisitions pay for a change of owner.
const MAX_BIAS_THRESHOLD: u32 = 8_192;

pub(crate) struct BiasedLock {
    /// The owner's thread number, its slot in the lowest bits, and perhaps [`REVOKING`]. Written under the inner
    /// lock.
    owner: AtomicU64,
    /// For each slot: whether its thread is in the critical section or about to check its ownership.
    busy: [AtomicBool; SLOTS],
    /// Whether the thread in the critical section holds the inner lock. Written inside the critical section.
    through_inner: AtomicBool,
    inner: InnerLock,
    acquisitions: Acquisitions,
}

/// The index of an owner's `busy` flag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Slot(usize);

/// The history of acquisitions. Guarded by the inner lock.
struct Acquisitions {
    /// The thread of each slot; 0 while unassigned.
    slots: [AtomicU64; SLOTS],
    last: AtomicU64,
    consecutive: AtomicU32,
    bias_threshold: AtomicU32,
}

impl BiasedLock {
    pub(crate) fn new() -> Self {
        init_barrier();
        let acquisitions = Acquisitions {
            slots: [(); SLOTS].map(|()| AtomicU64::new(0)),
            last: AtomicU64::new(0),
            consecutive: AtomicU32::new(0),
            bias_threshold: AtomicU32::new(1),
        };
        Self {
            owner: AtomicU64::new(NO_OWNER),
            busy: [(); SLOTS].map(|()| AtomicBool::new(false)),
            through_inner: AtomicBool::new(false),
            inner: InnerLock::new(),
            acquisitions,
        }
    }

    #[inline]
    pub(crate) fn lock(&self) {
        if self.try_lock_as_owner().is_none() {
            self.lock_through_inner();
        }
    }

    /// Takes the lock if no thread holds it, the calling thread included.
    #[inline]
    pub(crate) fn try_lock(&self) -> bool {
        self.try_lock_as_owner().is_some() || self.try_lock_through_inner()
    }

    /// Releases the lock.
    ///
    /// # Safety
    /// The calling thread holds the lock.
    #[inline]
    pub(crate) unsafe fn unlock(&self) {
        if self.through_inner.load(Ordering::Relaxed) {
            self.through_inner.store(false, Ordering::Relaxed);
            // SAFETY: this thread is in the critical section and holds the inner lock.
            unsafe { self.inner.unlock() };
        } else {
            // A revoking thread waits for this store, so the slot has not changed.
            self.unlock_as_owner(Slot(slot_in(self.owner.load(Ordering::Relaxed))));
        }
    }

    /// Takes the lock if the calling thread owns it and is not in the critical section.
    #[inline]
    pub(crate) fn try_lock_as_owner(&self) -> Option<Slot> {
        let me = thread::number();
        // Only the slot index is left if this thread is the owner and no thread revokes that.
        let slot = self.owner.load(Ordering::Relaxed) ^ me;
        if slot >= REVOKING {
            return None;
        }
        let busy = &self.busy[slot_in(slot)];
        if busy.load(Ordering::Relaxed) {
            return None;
        }
        busy.store(true, Ordering::Relaxed);
        light();
        // No acquire ordering needed: every critical section since this thread became the owner was its own.
        if self.owner.load(Ordering::Relaxed) ^ me == slot {
            return Some(Slot(slot_in(slot)));
        }
        busy.store(false, Ordering::Release);
        None
    }

    /// Releases the lock that [`BiasedLock::try_lock_as_owner`] took.
    #[inline]
    pub(crate) fn unlock_as_owner(&self, slot: Slot) {
        self.busy[slot.0].store(false, Ordering::Release);
    }

    /// Makes the lock unbiased for good. The caller must not hold the lock.
    #[cold]
    pub(crate) fn disable_bias(&self) {
        self.lock_inner();
        for slot in &self.acquisitions.slots {
            slot.store(NO_OWNER, Ordering::Relaxed);
        }
        // SAFETY: this thread has just taken it.
        unsafe { self.inner.unlock() };
    }

    #[cold]
    fn lock_through_inner(&self) {
        self.lock_inner();
        self.finish_lock();
    }

    /// Takes the inner lock and waits until the owner has left the critical section.
    fn lock_inner(&self) {
        self.inner.lock();
        let mut times = 0;
        while !self.try_revoke_owner() {
            back_off(times);
            times = times.saturating_add(1);
        }
    }

    #[cold]
    fn try_lock_through_inner(&self) -> bool {
        while self.inner.try_lock() {
            if self.try_revoke_owner() {
                self.finish_lock();
                return true;
            }
            // SAFETY: this thread has just taken it.
            unsafe { self.inner.unlock() };
            // The owner may have left and failed to re-enter while this thread held the inner lock. Of two concurrent
            // attempts one must succeed.
            heavy();
            if self.busy[slot_in(self.owner.load(Ordering::Relaxed))].load(Ordering::Relaxed) {
                return false;
            }
        }
        false
    }

    /// Revokes the ownership under the inner lock; returns whether the owner is outside the critical section.
    fn try_revoke_owner(&self) -> bool {
        let owner = self.owner.load(Ordering::Relaxed);
        if owner == NO_OWNER {
            return true;
        }
        if owner & REVOKING == 0 {
            self.owner.store(owner | REVOKING, Ordering::Relaxed);
            heavy();
        }
        let outside = !self.busy[slot_in(owner)].load(Ordering::Acquire);
        if outside {
            self.owner.store(NO_OWNER, Ordering::Relaxed);
        }
        outside
    }

    /// Enters the critical section: with the inner lock, or as the new owner without it.
    fn finish_lock(&self) {
        if let Some(slot) = self.acquisitions.record_acquisition(thread::number()) {
            self.busy[slot].store(true, Ordering::Relaxed);
            self.owner.store(thread::number() | slot as u64, Ordering::Relaxed);
            // SAFETY: the caller took the inner lock on this thread.
            unsafe { self.inner.unlock() };
        } else {
            self.through_inner.store(true, Ordering::Relaxed);
        }
    }
}

impl Acquisitions {
    /// Records an acquisition; returns a slot if the thread becomes the owner.
    fn record_acquisition(&self, thread: u64) -> Option<usize> {
        let same_thread = self.last.load(Ordering::Relaxed) == thread;
        let consecutive =
            if same_thread { self.consecutive.load(Ordering::Relaxed).saturating_add(1) } else { 1 };
        self.last.store(thread, Ordering::Relaxed);
        self.consecutive.store(consecutive, Ordering::Relaxed);
        let bias_threshold = self.bias_threshold.load(Ordering::Relaxed);
        if consecutive < bias_threshold || !light_is_enough() {
            return None;
        }
        let belongs = |slot: &AtomicU64| [0, thread].contains(&slot.load(Ordering::Relaxed));
        let slot = self.slots.iter().position(belongs)?;
        self.slots[slot].store(thread, Ordering::Relaxed);
        self.bias_threshold.store(
            bias_threshold.saturating_mul(2).clamp(BIAS_THRESHOLD, MAX_BIAS_THRESHOLD),
            Ordering::Relaxed,
        );
        Some(slot)
    }
}

/// Returns the slot index in an owner word.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "two bits")]
fn slot_in(owner: u64) -> usize {
    (owner % SLOTS as u64) as usize
}

//! A lock that leans towards the thread that uses it.
//!
//! While one thread takes the lock again and again, that thread **owns** it, and taking it is a store and a
//! load: no atomic instruction, which costs more than most of what a pool does under the lock. Another thread
//! goes through an inner lock, ends the ownership, and waits for the owner to be outside. A thread that then
//! takes it often enough in a row becomes the owner; each change of owner makes the next take longer.
//!
//! ```text
//! owner    busy = true ─ light barrier ─ owner still me? ─ inside ─ busy = false
//! another  inner lock ─ owner = me no more ─ heavy barrier ─ busy is false? ─ inside ─ inner unlock
//! ```
//!
//! Of the two barriers one comes first: either the owner sees that it owns the lock no more, or the other sees
//! that the owner is busy. The heavy one works in every thread of the process, so the light one costs nothing.
//!
//! An owner may be stopped between its first look and its store for as long as it likes, and what it then
//! writes to must not be the flag of a later owner. So each owner has a flag to itself for as long as the lock
//! lives. There are [`SLOTS`] of them; a lock that more threads have had to themselves stays a plain one.

use crate::primitives::{
    AtomicBool, AtomicU32, AtomicU64, InnerLock, Ordering, give_way, heavy, light, light_is_enough, prepare,
};
use crate::thread;

/// Threads that can come to own a lock during its life.
const SLOTS: usize = 4;
/// A bit of [`BiasedLock::owner`]: somebody waits for the owner to leave, and it must not come back.
const ENDING: u64 = 4;

// A slot and the bit above it fit below a thread's number.
const _: () = assert!(SLOTS as u64 <= ENDING && 2 * ENDING <= thread::STEP);

/// No owner: no thread's number.
const NOBODY: u64 = ENDING;
/// So often in a row must a later owner have taken the lock; whoever comes first owns it at once.
const PATIENCE: u32 = if cfg!(loom) { 2 } else { 256 };
/// And never more often than this: by then the next change of owner is paid for.
const MOST_PATIENCE: u32 = 8_192;

pub(crate) struct BiasedLock {
    /// The owner's number, its slot in the lowest bits, and perhaps [`ENDING`]. Written with the inner lock
    /// held.
    owner: AtomicU64,
    /// Whether the owner of each slot is inside, or about to look whether it may be.
    busy: [AtomicBool; SLOTS],
    /// Whether whoever is inside holds the inner lock. Written from inside.
    through_inner: AtomicBool,
    inner: InnerLock,
    history: History,
}

/// Where an owner notes that it is inside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Slot(usize);

/// Who took the lock so far. Behind the inner lock.
struct History {
    /// The thread that each slot belongs to; 0 for none yet.
    slots: [AtomicU64; SLOTS],
    last: AtomicU64,
    in_a_row: AtomicU32,
    patience: AtomicU32,
}

impl BiasedLock {
    pub(crate) fn new() -> Self {
        prepare();
        let history = History {
            slots: [(); SLOTS].map(|()| AtomicU64::new(0)),
            last: AtomicU64::new(0),
            in_a_row: AtomicU32::new(0),
            patience: AtomicU32::new(1),
        };
        Self {
            owner: AtomicU64::new(NOBODY),
            busy: [(); SLOTS].map(|()| AtomicBool::new(false)),
            through_inner: AtomicBool::new(false),
            inner: InnerLock::new(),
            history,
        }
    }

    #[inline]
    pub(crate) fn lock(&self) {
        if self.enter_as_owner().is_none() {
            self.lock_through_inner();
        }
    }

    /// Takes the lock if nobody has it, this thread included.
    #[inline]
    pub(crate) fn try_lock(&self) -> bool {
        self.enter_as_owner().is_some() || self.try_lock_through_inner()
    }

    /// # Safety
    /// This thread has the lock.
    #[inline]
    pub(crate) unsafe fn unlock(&self) {
        if self.through_inner.load(Ordering::Relaxed) {
            self.through_inner.store(false, Ordering::Relaxed);
            // SAFETY: this thread is inside and came through the inner lock.
            unsafe { self.inner.unlock() };
        } else {
            // Whoever ends the ownership waits for this, so the slot is still the one.
            self.leave_as_owner(Slot(slot_in(self.owner.load(Ordering::Relaxed))));
        }
    }

    /// Takes the lock if this thread owns it and is not inside.
    #[inline]
    pub(crate) fn enter_as_owner(&self) -> Option<Slot> {
        let me = thread::number();
        // The slot alone is left if this thread is the owner and nobody is ending that.
        let slot = self.owner.load(Ordering::Relaxed) ^ me;
        if slot >= ENDING {
            return None;
        }
        let busy = &self.busy[slot_in(slot)];
        if busy.load(Ordering::Relaxed) {
            return None;
        }
        busy.store(true, Ordering::Relaxed);
        light();
        // All that was done inside since this thread became the owner, it did itself.
        if self.owner.load(Ordering::Relaxed) ^ me == slot {
            return Some(Slot(slot_in(slot)));
        }
        busy.store(false, Ordering::Release);
        None
    }

    /// Leaves the lock that [`BiasedLock::enter_as_owner`] took.
    #[inline]
    pub(crate) fn leave_as_owner(&self, slot: Slot) {
        self.busy[slot.0].store(false, Ordering::Release);
    }

    /// Lets nobody own the lock any more. Not from inside.
    #[cold]
    pub(crate) fn disown(&self) {
        self.lock_inner();
        for slot in &self.history.slots {
            slot.store(NOBODY, Ordering::Relaxed);
        }
        // SAFETY: this thread has just taken it.
        unsafe { self.inner.unlock() };
    }

    #[cold]
    fn lock_through_inner(&self) {
        self.lock_inner();
        self.come_in();
    }

    /// Takes the inner lock and waits for the owner to be outside.
    fn lock_inner(&self) {
        self.inner.lock();
        let mut times = 0;
        while !self.end_ownership() {
            give_way(times);
            times = times.saturating_add(1);
        }
    }

    #[cold]
    fn try_lock_through_inner(&self) -> bool {
        while self.inner.try_lock() {
            if self.end_ownership() {
                self.come_in();
                return true;
            }
            // SAFETY: this thread has just taken it.
            unsafe { self.inner.unlock() };
            // The owner may have left and tried again while the inner lock was taken. Of two that try, one must
            // not fail for nothing.
            heavy();
            if self.busy[slot_in(self.owner.load(Ordering::Relaxed))].load(Ordering::Relaxed) {
                return false;
            }
        }
        false
    }

    /// Ends the ownership, with the inner lock held; says whether the owner is outside.
    fn end_ownership(&self) -> bool {
        let owner = self.owner.load(Ordering::Relaxed);
        if owner == NOBODY {
            return true;
        }
        if owner & ENDING == 0 {
            self.owner.store(owner | ENDING, Ordering::Relaxed);
            heavy();
        }
        let outside = !self.busy[slot_in(owner)].load(Ordering::Acquire);
        if outside {
            self.owner.store(NOBODY, Ordering::Relaxed);
        }
        outside
    }

    /// Goes inside with the inner lock, or as the new owner without it.
    fn come_in(&self) {
        if let Some(slot) = self.history.slot_for(thread::number()) {
            self.busy[slot].store(true, Ordering::Relaxed);
            self.owner.store(thread::number() | slot as u64, Ordering::Relaxed);
            // SAFETY: the caller took it for this thread.
            unsafe { self.inner.unlock() };
        } else {
            self.through_inner.store(true, Ordering::Relaxed);
        }
    }
}

impl History {
    /// Notes that a thread took the lock; a slot if that thread is to own it from now on.
    fn slot_for(&self, thread: u64) -> Option<usize> {
        let came_again = self.last.load(Ordering::Relaxed) == thread;
        let in_a_row = if came_again { self.in_a_row.load(Ordering::Relaxed).saturating_add(1) } else { 1 };
        self.last.store(thread, Ordering::Relaxed);
        self.in_a_row.store(in_a_row, Ordering::Relaxed);
        let patience = self.patience.load(Ordering::Relaxed);
        if in_a_row < patience || !light_is_enough() {
            return None;
        }
        let belongs = |slot: &AtomicU64| [0, thread].contains(&slot.load(Ordering::Relaxed));
        let slot = self.slots.iter().position(belongs)?;
        self.slots[slot].store(thread, Ordering::Relaxed);
        self.patience.store(patience.saturating_mul(2).clamp(PATIENCE, MOST_PATIENCE), Ordering::Relaxed);
        Some(slot)
    }
}

/// The slot in an owner's word.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "two bits")]
fn slot_in(owner: u64) -> usize {
    (owner % SLOTS as u64) as usize
}

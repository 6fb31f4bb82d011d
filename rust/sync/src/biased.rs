//! A lock biased towards the thread that uses it most.
//!
//! A thread that takes the lock repeatedly becomes its **owner**. The owner locks with one store and one load; an
//! atomic read-modify-write instruction would cost more than most critical sections of a pool. Another thread takes
//! an inner lock and revokes the ownership: the owner resigns when it next takes the lock, or the other thread sees
//! that it is outside. A thread that then takes the lock often enough in a row becomes the next owner.
//!
//! ```text
//! owner    inside = lock ─ light barrier ─ still the owner? ─ critical section ─ inside = none
//! another  inner lock ─ owner = none ─ has the owner resigned? ─ yes ────────────────────┐
//!                                         └ no: heavy barrier ─ is the owner inside? ─ no ┴ critical section
//! ```
//!
//! One of the two barriers comes first: either the owner sees the revocation, or the other thread sees that the owner
//! is inside. The heavy barrier acts on every thread of the process, so the light one costs nothing.
//!
//! Threads that share a lock in earnest own it in turns: an owner at work keeps the lock for a slice of time before
//! another thread revokes it, so that most critical sections cost what they cost alone.
//!
//! Longer than 300 lines: each step of the owner answers one of the revoking thread, and both are read together.

use std::ptr::null_mut;
use std::sync::PoisonError;
use std::time::Duration;

use crate::inner_lock::InnerLock;
use crate::owner_record::OwnerRecord;
use crate::primitives::{
    AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Condvar, Mutex, Ordering, Waited, heavy, light,
    light_is_enough, pause,
};
use crate::thread;

/// The fewest consecutive acquisitions after which a thread becomes the owner; the first thread becomes it at once.
const MIN_THRESHOLD: u32 = if cfg!(loom) { 2 } else { 8 };
/// The fewest after a revocation that needed a heavy barrier.
const BARRIER_THRESHOLD: u32 = if cfg!(loom) { 2 } else { 256 };
/// The most: this many acquisitions pay for a heavy barrier.
const MAX_THRESHOLD: u32 = if cfg!(loom) { 2 } else { 1_024 };

/// An owner at work keeps the lock for this many nanoseconds after another thread asked for it.
const SLICE: u64 = if cfg!(loom) { 0 } else { 10_000 };
/// The nanoseconds between two times that the other thread looks whether the owner is at work.
const LOOK_INTERVAL: u64 = 3_000;
/// An owner at work resigns within this many looks; a heavy barrier takes about as long.
const LOOKS_FOR_RESIGNATION: u32 = if cfg!(loom) { 1 } else { 10 };
/// An owner that is inside leaves within this many looks, each twice as late as the one before, or another thread
/// sleeps: 50 µs.
const LOOKS_FOR_DEPARTURE: u32 = if cfg!(loom) { 1 } else { 10 };
/// The longest sleep without a look.
const MAX_SLEEP: Duration = Duration::from_millis(2);

pub(crate) struct BiasedLock {
    /// The record of the owner; null without one. Written under the inner lock.
    owner: AtomicPtr<OwnerRecord>,
    /// The record of an owner that lost the lock and may still be inside; null otherwise. Set under the inner lock.
    revoked: AtomicPtr<OwnerRecord>,
    inner: InnerLock,
    acquisitions: Acquisitions,
    departure: Departure,
}

/// How a thread holds the lock.
#[derive(Clone, Copy)]
pub(crate) enum Hold {
    /// As the owner, with this record.
    AsOwner(&'static OwnerRecord),
    /// With the inner lock.
    ThroughInner,
}

/// The history of acquisitions. Guarded by the inner lock.
struct Acquisitions {
    /// The number of the last thread.
    last: AtomicU64,
    consecutive: AtomicU32,
    /// The number of consecutive acquisitions that makes an owner.
    threshold: AtomicU32,
    /// Whether no thread may become the owner any more.
    unbiased: AtomicBool,
}

/// The condition on which a thread waits for an owner that stays inside for long.
struct Departure {
    awaited: AtomicBool,
    mutex: Mutex<()>,
    happened: Condvar,
}

/// The heavy barrier failed: the system has forbidden it since the lock was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NoBarrier;

impl BiasedLock {
    pub(crate) fn new() -> Self {
        Self {
            owner: AtomicPtr::default(),
            revoked: AtomicPtr::default(),
            inner: InnerLock::new(),
            acquisitions: Acquisitions {
                last: AtomicU64::new(0),
                consecutive: AtomicU32::new(0),
                threshold: AtomicU32::new(1),
                unbiased: AtomicBool::new(false),
            },
            departure: Departure {
                awaited: AtomicBool::new(false),
                mutex: Mutex::new(()),
                happened: Condvar::new(),
            },
        }
    }

    #[inline]
    pub(crate) fn lock(&self) -> Result<Hold, NoBarrier> {
        match self.try_lock_as_owner() {
            Some(record) => Ok(Hold::AsOwner(record)),
            None => self.lock_through_inner(),
        }
    }

    /// Takes the lock if no thread holds it, the calling thread included.
    #[inline]
    pub(crate) fn try_lock(&self) -> Option<Hold> {
        match self.try_lock_as_owner() {
            Some(record) => Some(Hold::AsOwner(record)),
            None => self.try_lock_through_inner(),
        }
    }

    /// Releases the lock.
    ///
    /// # Safety
    /// The calling thread holds the lock in this way.
    #[inline]
    pub(crate) unsafe fn unlock(&self, hold: Hold) {
        match hold {
            Hold::AsOwner(record) => self.unlock_as_owner(record),
            // SAFETY: guaranteed by the caller.
            Hold::ThroughInner => unsafe { self.inner.unlock() },
        }
    }

    /// Takes the lock if the calling thread owns it and is inside no lock as its owner.
    #[inline(always)]
    pub(crate) fn try_lock_as_owner(&self) -> Option<&'static OwnerRecord> {
        let owner = self.owner.load(Ordering::Acquire);
        // SAFETY: null, or a record, and those are never freed.
        let record = unsafe { owner.as_ref() }?;
        if !record.is_mine() || !record.is_outside_all() {
            return None;
        }
        record.enter(self.address());
        light();
        // No acquire ordering needed: every critical section since this thread became the owner was its own.
        if self.owner.load(Ordering::Relaxed) == owner {
            return Some(record);
        }
        self.leave_at_once(record);
        None
    }

    /// Leaves after a failed attempt. Another thread may have seen this one inside and wait for its departure; and of
    /// two concurrent attempts one must succeed.
    #[cold]
    fn leave_at_once(&self, record: &OwnerRecord) {
        record.leave();
        light();
        self.departure.announce();
    }

    /// Releases the lock that [`BiasedLock::try_lock_as_owner`] took.
    #[inline(always)]
    pub(crate) fn unlock_as_owner(&self, record: &'static OwnerRecord) {
        record.leave();
        light();
        if self.owner.load(Ordering::Relaxed).is_null() {
            self.departure.announce();
        }
    }

    /// Lets no thread become the owner any more. The caller holds the lock, or no other thread has it yet.
    pub(crate) fn forbid_owners(&self) {
        self.acquisitions.unbiased.store(true, Ordering::Relaxed);
    }

    /// Takes the lock from its owner, which no other thread can be inside of.
    pub(crate) fn forget_owner(&mut self) {
        self.owner.store(null_mut(), Ordering::Relaxed);
        self.revoked.store(null_mut(), Ordering::Relaxed);
    }

    /// Takes the lock from its owner. The caller must not hold the lock.
    #[cold]
    pub(crate) fn remove_owner(&self) {
        self.inner.lock();
        if self.revoke().is_ok() {
            self.await_departure();
        }
        // SAFETY: this thread has just taken it.
        unsafe { self.inner.unlock() };
    }

    #[cold]
    fn lock_through_inner(&self) -> Result<Hold, NoBarrier> {
        if self.acquisitions.unbiased.load(Ordering::Relaxed) {
            self.inner.lock();
            if self.has_no_owner() {
                return Ok(Hold::ThroughInner);
            }
            // SAFETY: this thread has just taken it.
            unsafe { self.inner.unlock() };
        }
        if let Some(record) = self.try_inherit() {
            return Ok(Hold::AsOwner(record));
        }
        self.resign();
        self.inner.lock();
        self.let_owner_work();
        if let Err(error) = self.revoke() {
            // SAFETY: this thread has just taken it.
            unsafe { self.inner.unlock() };
            return Err(error);
        }
        self.await_departure();
        Ok(self.finish_lock())
    }

    #[cold]
    fn try_lock_through_inner(&self) -> Option<Hold> {
        if let Some(record) = self.try_inherit() {
            return Some(Hold::AsOwner(record));
        }
        self.resign();
        while self.inner.try_lock() {
            if !self.is_owner_inside() && self.revoke().is_ok() && !self.is_owner_inside() {
                self.revoked.store(null_mut(), Ordering::Relaxed);
                return Some(self.finish_lock());
            }
            // SAFETY: this thread has just taken it.
            unsafe { self.inner.unlock() };
            // The owner may have left and failed to enter again while this thread held the inner lock.
            if !heavy() || self.is_owner_inside() {
                return None;
            }
        }
        None
    }

    /// Takes the lock of an owner that has ended, if the calling thread inherits its record.
    fn try_inherit(&self) -> Option<&'static OwnerRecord> {
        // SAFETY: null, or a record, and those are never freed.
        let owner = unsafe { self.owner.load(Ordering::Acquire).as_ref() }?;
        if !owner.is_unused() {
            return None;
        }
        OwnerRecord::of_this_thread()?;
        self.try_lock_as_owner()
    }

    /// Gives up the ownership that another thread revokes, if the calling thread had it. It is outside then.
    fn resign(&self) {
        let revoked = self.revoked.load(Ordering::Acquire);
        // SAFETY: null, or a record, and those are never freed.
        if let Some(record) = unsafe { revoked.as_ref() }
            && record.is_mine()
            && !record.is_inside(self.address())
        {
            // Acquire: from here on this thread sees that it is not the owner, and cannot enter again as such.
            let _ = self.revoked.compare_exchange(revoked, null_mut(), Ordering::AcqRel, Ordering::Relaxed);
        }
    }

    /// Lets an owner at work keep the lock for a slice of time.
    fn let_owner_work(&self) {
        // SAFETY: null, or a record, and those are never freed.
        let Some(record) = (unsafe { self.owner.load(Ordering::Relaxed).as_ref() }) else { return };
        let waited = Waited::from_now();
        let is_at_work = || {
            (0..4).any(|_| {
                pause(0);
                record.is_inside(self.address())
            })
        };
        while !waited.is_over(SLICE) && is_at_work() {
            pause(LOOK_INTERVAL);
        }
    }

    /// Takes the ownership away, under the inner lock. Afterwards the owner is outside and stays there, or
    /// [`BiasedLock::is_owner_inside`] says that it is inside.
    fn revoke(&self) -> Result<(), NoBarrier> {
        let owner = self.owner.load(Ordering::Relaxed);
        if owner.is_null() {
            return Ok(());
        }
        self.owner.store(null_mut(), Ordering::Relaxed);
        self.revoked.store(owner, Ordering::Release);
        // SAFETY: not null, and records are never freed.
        if unsafe { &*owner }.is_mine() {
            return Ok(());
        }
        let has_resigned = || self.revoked.load(Ordering::Acquire).is_null();
        for _ in 0..LOOKS_FOR_RESIGNATION {
            if has_resigned() {
                self.acquisitions.note_resignation();
                return Ok(());
            }
            pause(0);
        }
        self.acquisitions.note_barrier();
        if heavy()
            || self.revoked.compare_exchange(owner, null_mut(), Ordering::AcqRel, Ordering::Acquire).is_err()
        {
            return Ok(());
        }
        // Without the barrier nothing tells whether the owner is inside. It stays the owner.
        self.owner.store(owner, Ordering::Release);
        Err(NoBarrier)
    }

    /// Returns whether the lock has no owner, and none that may still be inside. The caller holds the inner lock.
    fn has_no_owner(&self) -> bool {
        self.owner.load(Ordering::Relaxed).is_null() && self.revoked.load(Ordering::Acquire).is_null()
    }

    /// Returns whether the owner, or the one that loses the lock, is inside.
    fn is_owner_inside(&self) -> bool {
        [&self.owner, &self.revoked].into_iter().any(|record| {
            // SAFETY: null, or a record, and those are never freed.
            unsafe { record.load(Ordering::Acquire).as_ref() }
                .is_some_and(|record| record.is_inside(self.address()))
        })
    }

    /// Waits, under the inner lock, until the owner that lost the lock is outside.
    fn await_departure(&self) {
        if self.revoked.load(Ordering::Acquire).is_null() {
            return;
        }
        for times in 0..LOOKS_FOR_DEPARTURE {
            if !self.is_owner_inside() {
                break;
            }
            pause(50 << times);
        }
        if self.is_owner_inside() {
            self.departure.wait_while(|| self.is_owner_inside());
        }
        self.revoked.store(null_mut(), Ordering::Relaxed);
    }

    /// Enters the critical section: with the inner lock, or as the new owner without it.
    fn finish_lock(&self) -> Hold {
        if self.acquisitions.makes_owner(thread::number())
            && let Some(record) = OwnerRecord::of_this_thread()
        {
            record.enter(self.address());
            self.owner.store(std::ptr::from_ref(record).cast_mut(), Ordering::Release);
            // SAFETY: the caller took the inner lock on this thread.
            unsafe { self.inner.unlock() };
            Hold::AsOwner(record)
        } else {
            Hold::ThroughInner
        }
    }

    fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }
}

impl Acquisitions {
    /// Records an acquisition; returns whether the thread shall be the owner.
    fn makes_owner(&self, thread: u64) -> bool {
        let same_thread = self.last.load(Ordering::Relaxed) == thread;
        let consecutive =
            if same_thread { self.consecutive.load(Ordering::Relaxed).saturating_add(1) } else { 1 };
        self.last.store(thread, Ordering::Relaxed);
        self.consecutive.store(consecutive, Ordering::Relaxed);
        consecutive >= self.threshold.load(Ordering::Relaxed)
            && !self.unbiased.load(Ordering::Relaxed)
            && light_is_enough()
    }

    /// Notes that an owner resigned: changes of the owner are cheap.
    fn note_resignation(&self) {
        self.set_threshold(self.threshold.load(Ordering::Relaxed) / 2);
    }

    /// Notes that a heavy barrier was needed, as the owner did not use the lock.
    fn note_barrier(&self) {
        self.set_threshold(self.threshold.load(Ordering::Relaxed).saturating_mul(2).max(BARRIER_THRESHOLD));
    }

    fn set_threshold(&self, threshold: u32) {
        self.threshold.store(threshold.clamp(MIN_THRESHOLD, MAX_THRESHOLD), Ordering::Relaxed);
    }
}

impl Departure {
    /// Sleeps while `is_inside`.
    #[cold]
    fn wait_while(&self, is_inside: impl Fn() -> bool) {
        let mut guard = self.mutex.lock().unwrap_or_else(PoisonError::into_inner);
        self.awaited.store(true, Ordering::Relaxed);
        // Either the owner sees that its departure is awaited, or it is seen outside. Should the barrier fail, the
        // wait ends in time.
        heavy();
        while is_inside() {
            guard = self.happened.wait_timeout(guard, MAX_SLEEP).unwrap_or_else(PoisonError::into_inner).0;
        }
        self.awaited.store(false, Ordering::Relaxed);
    }

    #[cold]
    fn announce(&self) {
        if self.awaited.load(Ordering::Relaxed) {
            drop(self.mutex.lock());
            self.happened.notify_one();
        }
    }
}

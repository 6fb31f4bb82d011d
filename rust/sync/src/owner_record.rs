//! The record of a thread that owns locks: which of its locks it is inside.
//!
//! A record is never freed. When its thread ends, the next thread that needs a record gets it, and with it the locks
//! that the ended thread owned. So any number of threads may own a lock in its life, and a store of a thread that the
//! scheduler stopped for long hits its own record and no other thread's.

use crate::primitives::{AtomicU64, AtomicUsize, Ordering};
use crate::thread;

/// Which lock a thread is inside as its owner. Aligned to two cache lines, which processors fetch together.
#[repr(align(128))]
pub(crate) struct OwnerRecord {
    /// The number of the thread that uses the record; 0 while none does. Written by that thread.
    thread: AtomicU64,
    /// The address of the lock that the thread is inside or about to enter as its owner; 0 for none.
    inside: AtomicUsize,
}

impl OwnerRecord {
    fn new() -> Self {
        Self { thread: AtomicU64::new(0), inside: AtomicUsize::new(0) }
    }

    /// Returns the calling thread's record, for a lock that it shall own; `None` if the thread is about to end, or is
    /// inside a lock as its owner.
    pub(crate) fn of_this_thread() -> Option<&'static Self> {
        let me = thread::number();
        let record = storage::record(|record| record.thread.load(Ordering::Relaxed) == me)?;
        record.thread.store(me, Ordering::Relaxed);
        (record.inside.load(Ordering::Relaxed) == 0).then_some(record)
    }

    /// Returns whether the calling thread uses this record.
    #[inline]
    pub(crate) fn is_mine(&self) -> bool {
        self.thread.load(Ordering::Relaxed) == thread::number()
    }

    /// Returns whether the record's thread has ended. The answer may be stale.
    pub(crate) fn is_unused(&self) -> bool {
        self.thread.load(Ordering::Relaxed) == 0
    }

    /// Returns whether the record's thread is inside no lock as its owner; exact for the thread itself.
    #[inline]
    pub(crate) fn is_outside_all(&self) -> bool {
        self.inside.load(Ordering::Relaxed) == 0
    }

    /// Returns whether the thread is inside the lock at this address. If not, all that it did inside is visible.
    #[inline]
    pub(crate) fn is_inside(&self, lock: usize) -> bool {
        self.inside.load(Ordering::Acquire) == lock
    }

    /// Notes that the thread enters the lock at this address. For the thread itself.
    #[inline]
    pub(crate) fn enter(&self, lock: usize) {
        self.inside.store(lock, Ordering::Relaxed);
    }

    /// Notes that the thread has left the lock. For the thread itself.
    #[inline]
    pub(crate) fn leave(&self) {
        self.inside.store(0, Ordering::Release);
    }
}

/// Records of real threads: an ended thread's record goes to the next thread that needs one.
#[cfg(not(loom))]
mod storage {
    use std::cell::Cell;
    use std::sync::{Mutex, MutexGuard, PoisonError};

    use super::OwnerRecord;
    use crate::per_process::PerProcess;
    use crate::primitives::Ordering;

    type Records = Mutex<Vec<&'static OwnerRecord>>;

    /// Records without a thread. A forked child has its own: a thread of the parent may have held the mutex.
    static UNUSED: PerProcess<Records> = PerProcess::new(Mutex::new(Vec::new()), || Mutex::new(Vec::new()));

    thread_local! {
        static MINE: Mine = const { Mine(Cell::new(None)) };
    }

    struct Mine(Cell<Option<&'static OwnerRecord>>);

    /// Returns this thread's record: the one it has if that `is_mine`, or another.
    pub(super) fn record(is_mine: impl Fn(&OwnerRecord) -> bool) -> Option<&'static OwnerRecord> {
        MINE.try_with(|mine| {
            // In a forked child the thread's record is still the owner of the parent's locks, so it gets another.
            let record = mine.0.get().filter(|record| is_mine(record)).unwrap_or_else(take);
            mine.0.set(Some(record));
            record
        })
        .ok()
    }

    fn take() -> &'static OwnerRecord {
        unused().pop().unwrap_or_else(|| Box::leak(Box::new(OwnerRecord::new())))
    }

    fn unused() -> MutexGuard<'static, Vec<&'static OwnerRecord>> {
        // A panic leaves a push complete or not done, so poisoning is ignored.
        UNUSED.get().lock().unwrap_or_else(PoisonError::into_inner)
    }

    impl Drop for Mine {
        fn drop(&mut self) {
            // A thread that ends inside a lock, as it forgot the guard, keeps the lock for ever.
            if let Some(record) = self.0.get().filter(|record| record.is_mine() && record.is_outside_all()) {
                record.thread.store(0, Ordering::Relaxed);
                unused().push(record);
            }
        }
    }
}

/// Records of loom's threads, which the next execution must not see. They leak.
#[cfg(loom)]
mod storage {
    use std::cell::Cell;

    use super::OwnerRecord;

    loom::thread_local! {
        static MINE: Cell<Option<&'static OwnerRecord>> = Cell::new(None);
    }

    pub(super) fn record(_is_mine: impl Fn(&OwnerRecord) -> bool) -> Option<&'static OwnerRecord> {
        MINE.with(|mine| {
            let record = mine.get().unwrap_or_else(|| Box::leak(Box::new(OwnerRecord::new())));
            mine.set(Some(record));
            Some(record)
        })
    }
}

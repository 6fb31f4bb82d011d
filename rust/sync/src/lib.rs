//! Synchronization primitives of the allotment pools.
//!
//! - [`Mutex`]: a biased mutex, nearly free while one thread uses it alone.
//! - [`EventCount`]: blocks threads until a change, without missed wakeups.
//! - [`DeferredQueue`]: holds operations that could not take the lock.
//! - [`SourceLock`]: a mutex that reports reentry as an error.
//! - [`PerProcess`]: a static value with an instance for each process, forked children included.
//! - [`ThreadSlots`]: a value for each thread, which the next thread inherits.
//! - [`EntryTable`]: entries that are found and removed without a lock.
//! - [`Clock`]: times of operations that are shorter than a reading of the system's clock.
//!
//! The crate knows nothing of memory allocation. With `--cfg loom` all of it runs in loom, and so does the code above
//! it.

mod biased;
mod clock;
mod deferred_queue;
mod entry_table;
mod event_count;
mod inner_lock;
mod mutex;
mod owner_record;
mod per_process;
mod primitives;
mod source_lock;
mod thread;
mod thread_slots;

pub use clock::Clock;
pub use deferred_queue::DeferredQueue;
pub use entry_table::{Entry, EntryTable, Found, Place};
pub use event_count::EventCount;
pub use mutex::{LockError, Mutex, MutexGuard};
pub use per_process::{PerProcess, entered_child, generation};
#[cfg(loom)]
pub use primitives::starve_at_once;
pub use source_lock::{SourceLock, SourceLockGuard, WouldDeadlock};
pub use thread_slots::ThreadSlots;

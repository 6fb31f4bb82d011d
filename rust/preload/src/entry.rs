//! Entering and leaving the pool: a fork waits until no thread is inside, so that the child's copy of it is whole.
//!
//! What the pool itself allocates comes from the real allocator. That includes what a system library allocates for it,
//! which calls this library's `malloc`: the thread is known to be inside then.

use std::cell::{Cell, UnsafeCell};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::{journal, report, statistics};

static GATE: RwLock<()> = RwLock::new(());

thread_local! {
    static IS_INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// The gate while a thread forks.
struct Closed(UnsafeCell<Option<RwLockWriteGuard<'static, ()>>>);

// SAFETY: only the thread that forks touches it, while it has the gate for itself.
unsafe impl Sync for Closed {}

static CLOSED: Closed = Closed(UnsafeCell::new(None));

/// Returns whether this thread is inside the pool, or forks.
pub(crate) fn is_inside() -> bool {
    IS_INSIDE.get()
}

/// This thread is inside the pool.
pub(crate) struct Inside {
    gate: Option<RwLockReadGuard<'static, ()>>,
}

impl Inside {
    /// Enters the pool. In a thread that forks the gate is closed, by itself.
    pub(crate) fn enter() -> Self {
        if IS_INSIDE.replace(true) {
            return Self { gate: None };
        }
        Self { gate: Some(GATE.read().unwrap_or_else(PoisonError::into_inner)) }
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        if self.gate.is_some() {
            IS_INSIDE.set(false);
        }
    }
}

/// This thread is inside the pool, and no other thread is.
pub(crate) struct Alone {
    _gate: RwLockWriteGuard<'static, ()>,
}

impl Alone {
    /// Waits until no thread is inside the pool, and enters it. The calling thread is not inside.
    pub(crate) fn enter() -> Self {
        let gate = GATE.write().unwrap_or_else(PoisonError::into_inner);
        IS_INSIDE.set(true);
        Self { _gate: gate }
    }
}

impl Drop for Alone {
    fn drop(&mut self) {
        IS_INSIDE.set(false);
    }
}

/// Registers what happens at a fork.
pub(crate) fn register_fork_handlers() {
    // SAFETY: the functions stay, as this library is never unloaded.
    unsafe { libc::pthread_atfork(Some(before_fork), Some(in_parent), Some(in_child)) };
}

extern "C" fn before_fork() {
    let closed = GATE.write().unwrap_or_else(PoisonError::into_inner);
    // From here on large requests of this thread, from other handlers, go to the real allocator.
    IS_INSIDE.set(true);
    // SAFETY: this thread has the gate for itself.
    unsafe { *CLOSED.0.get() = Some(closed) };
}

extern "C" fn in_parent() {
    open();
}

extern "C" fn in_child() {
    journal::leave_to_parent();
    statistics::leave_to_parent();
    report::begin_child();
    // The pool needs nothing: no thread was inside, so that the child's copy is whole, and its memory is the child's own.
    open();
}

fn open() {
    IS_INSIDE.set(false);
    // SAFETY: this thread has had the gate for itself since before the fork.
    drop(unsafe { (*CLOSED.0.get()).take() });
}

//! A mailbox: what one thread could not do now, left for whoever comes next.

use std::sync::PoisonError;

use crate::primitives::{AtomicBool, Mutex, MutexGuard, Ordering, heavy, light, prepare};

/// A queue of things left. Its own lock is held for a push or a swap and nothing else.
///
/// For a thread that finds a door closed: it pushes, and tries the door once more. Whoever opens the door looks
/// here afterwards. One of the two then sees the other.
#[derive(Debug)]
pub struct Mailbox<T> {
    letters: Mutex<Vec<T>>,
    /// False only if there is nothing in it, so that the common case costs one load.
    some: AtomicBool,
}

impl<T> Mailbox<T> {
    /// An empty mailbox.
    #[must_use]
    pub fn new() -> Self {
        prepare();
        Self { letters: Mutex::new(Vec::new()), some: AtomicBool::new(false) }
    }

    /// Leaves something.
    pub fn push(&self, letter: T) {
        let mut letters = self.letters();
        letters.push(letter);
        self.some.store(true, Ordering::Release);
        drop(letters);
        heavy();
    }

    /// Whether nothing was left by anybody who found closed what this thread has opened since.
    #[inline]
    pub fn is_empty(&self) -> bool {
        light();
        !self.some.load(Ordering::Acquire)
    }

    /// Takes everything out.
    pub fn take(&self) -> Vec<T> {
        let mut letters = self.letters();
        self.some.store(false, Ordering::Release);
        std::mem::take(&mut letters)
    }

    fn letters(&self) -> MutexGuard<'_, Vec<T>> {
        // A push is whole or not there.
        self.letters.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Default for Mailbox<T> {
    fn default() -> Self {
        Self::new()
    }
}

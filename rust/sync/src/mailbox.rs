//! A mailbox: what one thread could not do now, left for whoever comes next.

use std::sync::PoisonError;

use crate::primitives::{AtomicU8, Mutex, MutexGuard, Ordering, heavy, light, lightest, prepare};

/// There may be letters.
const LETTERS: u8 = 1;
/// A notice is up.
const NOTICE: u8 = 2;

/// A queue of things left. Its own lock is held for a push or a swap and nothing else.
///
/// For a thread that finds a door closed: it pushes, and tries the door once more. Whoever opens the door looks
/// here afterwards. One of the two then sees the other. Besides there is room for a notice, so that one look
/// says whether there is anything to think of.
#[derive(Debug)]
pub struct Mailbox<T> {
    letters: Mutex<Vec<T>>,
    signs: AtomicU8,
}

impl<T> Mailbox<T> {
    /// An empty mailbox.
    #[must_use]
    pub fn new() -> Self {
        prepare();
        Self { letters: Mutex::new(Vec::new()), signs: AtomicU8::new(0) }
    }

    /// Leaves something.
    pub fn push(&self, letter: T) {
        let mut letters = self.letters();
        letters.push(letter);
        self.signs.fetch_or(LETTERS, Ordering::Release);
        drop(letters);
        heavy();
    }

    /// Whether nothing was left by anybody who found closed what this thread has opened since.
    #[inline]
    pub fn is_empty(&self) -> bool {
        lightest();
        self.has_no_letter()
    }

    /// The same for a thread that has just left a lock as its owner: nobody owns one where the light barrier is not
    /// enough.
    #[inline]
    pub fn is_empty_to_owner(&self) -> bool {
        light();
        self.has_no_letter()
    }

    /// Whether there is neither letter nor notice, as far as this thread knows.
    #[inline]
    pub fn is_bare(&self) -> bool {
        self.signs.load(Ordering::Relaxed) == 0
    }

    /// Takes everything out.
    pub fn take(&self) -> Vec<T> {
        let mut letters = self.letters();
        self.signs.fetch_and(!LETTERS, Ordering::Release);
        std::mem::take(&mut letters)
    }

    /// Puts the notice up, or takes it down.
    pub fn set_notice(&self, up: bool) {
        if up {
            self.signs.fetch_or(NOTICE, Ordering::Relaxed);
        } else {
            self.signs.fetch_and(!NOTICE, Ordering::Relaxed);
        }
    }

    #[inline]
    fn has_no_letter(&self) -> bool {
        self.signs.load(Ordering::Acquire) & LETTERS == 0
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

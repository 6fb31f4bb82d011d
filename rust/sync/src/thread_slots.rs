//! A table of fixed size with a value for each thread that claims one.
//!
//! The value of a thread that has ended stays, and the next thread that claims one may get it: so the value is behind a
//! [`Mutex`], which is nearly free for the one thread that uses it.

use std::sync::{Arc, OnceLock, Weak};

use crate::mutex::Mutex;
use crate::primitives::{AtomicU64, Ordering};
use crate::thread;

/// The most threads that have a value at the same time.
const SLOTS: usize = if cfg!(loom) { 2 } else { 256 };
/// The slots that a thread looks at, from the one that its number gives.
const PROBES: usize = if cfg!(loom) { SLOTS } else { 8 };

/// No thread has had the slot. Threads have multiples of 8 as numbers.
const VACANT: u64 = 0;
/// The slot's thread has ended.
const ENDED: u64 = 1;

/// A value for each of up to 256 threads.
#[derive(Debug)]
pub struct ThreadSlots<T> {
    /// The number of the thread of each slot.
    threads: [AtomicU64; SLOTS],
    values: [OnceLock<Box<Mutex<T>>>; SLOTS],
}

impl<T: Default + Send + 'static> ThreadSlots<T> {
    /// Creates a table without values.
    #[must_use]
    pub fn new() -> Self {
        Self {
            threads: std::array::from_fn(|_| AtomicU64::new(VACANT)),
            values: std::array::from_fn(|_| OnceLock::new()),
        }
    }

    /// Returns the value of the calling thread; `None` if it has claimed none.
    #[inline]
    pub fn mine(&self) -> Option<&Mutex<T>> {
        let me = thread::number();
        let at = probes(me).find(|&at| self.threads[at].load(Ordering::Relaxed) == me)?;
        self.values[at].get().map(|value| &**value)
    }

    /// Gives the calling thread a value until it ends: a default one, or that of a thread that has ended. Returns the
    /// one that it has if there is one; `None` if no slot is left for it, or if the thread is about to end.
    pub fn claim(self: &Arc<Self>) -> Option<&Mutex<T>> {
        if let Some(mine) = self.mine() {
            return Some(mine);
        }
        let me = thread::number();
        let at = probes(me).find(|&at| {
            let before = self.threads[at].load(Ordering::Relaxed);
            before <= ENDED
                && self.threads[at].compare_exchange(before, me, Ordering::AcqRel, Ordering::Relaxed).is_ok()
        })?;
        let value = self.values[at].get_or_init(|| Box::new(Mutex::new(T::default())));
        let slots: Weak<dyn Slots> = Arc::<Self>::downgrade(self);
        if ends::register(Claim { slots, at, thread: me }) {
            return Some(value);
        }
        self.end(at, me);
        None
    }

    /// Returns whether a slot is left that [`ThreadSlots::claim`] may give to the calling thread. The answer may be
    /// stale.
    pub fn may_claim(&self) -> bool {
        probes(thread::number()).any(|at| self.threads[at].load(Ordering::Relaxed) <= ENDED)
    }

    /// Returns all values, each with whether its thread has ended.
    pub fn all(&self) -> impl Iterator<Item = (&Mutex<T>, bool)> {
        self.threads.iter().zip(&self.values).filter_map(|(thread, value)| {
            let has_ended = thread.load(Ordering::Acquire) == ENDED;
            value.get().map(|value| (&**value, has_ended))
        })
    }
}

impl<T: Default + Send + 'static> Default for ThreadSlots<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// The slots to look at for a thread, in order.
#[inline]
fn probes(thread: u64) -> impl Iterator<Item = usize> {
    // Loom must see the same accesses in each execution, and its numbers differ.
    let hash = if cfg!(loom) { 0 } else { thread.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56 };
    let first = usize::try_from(hash).unwrap_or(0);
    (0..PROBES).map(move |probe| (first + probe) % SLOTS)
}

/// Any table of slots.
trait Slots {
    /// Notes that a thread has ended.
    fn end(&self, at: usize, thread: u64);
}

impl<T> Slots for ThreadSlots<T> {
    fn end(&self, at: usize, thread: u64) {
        let _ = self.threads[at].compare_exchange(thread, ENDED, Ordering::Release, Ordering::Relaxed);
    }
}

/// A slot that the calling thread has.
struct Claim {
    slots: Weak<dyn Slots>,
    at: usize,
    thread: u64,
}

/// The slots of a thread; dropped when it ends.
struct Claims(std::cell::RefCell<Vec<Claim>>);

impl Drop for Claims {
    fn drop(&mut self) {
        for Claim { slots, at, thread } in self.0.get_mut().drain(..) {
            if let Some(slots) = slots.upgrade() {
                slots.end(at, thread);
            }
        }
    }
}

mod ends {
    use super::{Claim, Claims};

    #[cfg(not(loom))]
    use std::thread_local;

    #[cfg(loom)]
    use loom::thread_local;

    thread_local! {
        static CLAIMS: Claims = Claims(std::cell::RefCell::default());
    }

    /// Frees the slot when the calling thread ends; returns false if it is too late for that.
    pub(super) fn register(claim: Claim) -> bool {
        CLAIMS
            .try_with(|claims| {
                let mut claims = claims.0.borrow_mut();
                claims.retain(|claim| claim.slots.strong_count() > 0);
                claims.push(claim);
            })
            .is_ok()
    }
}

//! Numbers of threads, cheap to ask for: no two threads that are there at a time have the same.
//!
//! A later thread may get the number of one that has ended, and is not told from it then. That is enough for a lock:
//! whoever has ended is not inside, and all it did is known to the later one.

// Not loom's: that a number is another in a forked child needs no model.
use std::sync::atomic::{AtomicU64, Ordering};

use crate::primitives::this_thread;

/// Numbers are multiples of this: the bits below are for whoever stores one.
pub(crate) const STEP: u64 = 8;

/// How many forks lie behind this process, above the bits that tell threads apart.
static FORKS: AtomicU64 = AtomicU64::new(0);
const FORK: u64 = 1 << 48;

/// This thread's number, a multiple of [`STEP`] above 0.
#[inline(always)]
pub(crate) fn number() -> u64 {
    this_thread() ^ FORKS.load(Ordering::Relaxed)
}

/// Gives this thread another number: in a forked child, where it is another thread with the same memory.
pub(crate) fn renumber_thread() {
    FORKS.fetch_add(FORK, Ordering::Relaxed);
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::Barrier;
    use std::thread;

    use super::{FORK, STEP, number};

    #[test]
    fn threads_that_are_there_at_a_time_have_numbers_of_their_own() {
        let all_there = Barrier::new(8);
        let of_a_thread = || {
            let mine = number();
            all_there.wait();
            assert_eq!(number(), mine);
            mine
        };
        let mut numbers = thread::scope(|threads| {
            let them: Vec<_> = (0..8).map(|_| threads.spawn(of_a_thread)).collect();
            them.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
        });
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), 8);
        assert!(numbers.iter().all(|number| *number > 0 && number % STEP == 0 && *number < FORK));
    }
}

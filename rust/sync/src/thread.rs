//! Cheap thread numbers, unique among the threads that run at the same time.
//!
//! A new thread may reuse the number of a thread that has ended.

// Uses std's atomics, not loom's: loom does not model processes.
use std::sync::atomic::{AtomicU64, Ordering};

use crate::primitives::this_thread;

/// The number of forks before this process, in the bits above those that distinguish threads.
static FORKS: AtomicU64 = AtomicU64::new(0);
const FORK: u64 = 1 << 48;

/// Returns the number of the calling thread: above 0.
#[inline(always)]
pub(crate) fn number() -> u64 {
    this_thread() ^ FORKS.load(Ordering::Relaxed)
}

/// Changes the number of every thread: a forked child's thread must not own the parent's locks.
pub(crate) fn renumber_thread() {
    FORKS.fetch_add(FORK, Ordering::Relaxed);
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::Barrier;
    use std::thread;

    use super::{FORK, number};

    #[test]
    fn concurrent_threads_have_distinct_numbers() {
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
        assert!(numbers.iter().all(|number| (1..FORK).contains(number)));
    }
}

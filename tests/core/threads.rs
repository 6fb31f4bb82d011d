//! One pool and many threads: no address is allocated twice, and no thread waits in vain.

#[path = "threads/caches.rs"]
mod caches;
#[path = "threads/closing.rs"]
mod closing;
#[path = "threads/contention.rs"]
mod contention;
#[path = "threads/crowd.rs"]
mod crowd;
#[path = "threads/deferred.rs"]
mod deferred;
#[path = "threads/inside.rs"]
mod inside;
#[allow(dead_code, reason = "the model test uses the rest")]
#[path = "../support/numbers.rs"]
mod numbers;
#[path = "threads/slow.rs"]
mod slow;
#[path = "threads/waiting.rs"]
mod waiting;

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use allotment::source::{AddressSpace, Grant, RegionSource, ReserveError};
use allotment::{Pool, Stats};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// Longer than any test here, unless it hangs.
const FOREVER: Duration = Duration::from_secs(20);

/// Runs `work` in a thread of its own and fails if it hangs.
fn ends<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    ends_within(FOREVER, work)
}

/// Does the same for longer work.
fn ends_within<T: Send + 'static>(deadline: Duration, work: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, is_done) = channel();
    let thread = thread::spawn(move || drop(done.send(work())));
    match is_done.recv_timeout(deadline) {
        Ok(result) => result,
        Err(RecvTimeoutError::Timeout) => panic!("it has stopped: a deadlock"),
        Err(RecvTimeoutError::Disconnected) => match thread.join() {
            Err(panic) => std::panic::resume_unwind(panic),
            Ok(()) => unreachable!("a thread that ends well says so"),
        },
    }
}

/// Checks the invariants that hold at every moment.
fn observe(pool: &Pool) -> Stats {
    let stats = pool.stats().expect("this process");
    assert!(stats.requested <= stats.in_use && stats.in_use <= stats.reserved, "{stats:?}");
    assert!(stats.reserved <= stats.limit && stats.peak_reserved <= stats.limit, "{stats:?}");
    assert!(stats.requested <= stats.peak_requested && stats.in_use <= stats.peak_in_use, "{stats:?}");
    assert!(stats.reserved <= stats.peak_reserved && stats.largest_free <= stats.free, "{stats:?}");
    stats
}

/// A source that reports each request and answers on command.
struct Gated {
    upstream: AddressSpace,
    asked: Sender<()>,
    /// The answer to the next call: grant, or decline. A closed channel grants.
    answer: Receiver<bool>,
}

/// The controlling side of a [`Gated`] source.
struct Gate {
    is_asked: Receiver<()>,
    answer: Sender<bool>,
}

fn gated() -> (Gated, Gate) {
    let ((asked, is_asked), (answer, answers)) = (channel(), channel());
    (Gated { upstream: AddressSpace::new(256), asked, answer: answers }, Gate { is_asked, answer })
}

impl Gate {
    /// Waits until the source is called.
    fn wait(&self) {
        self.is_asked.recv_timeout(FOREVER).expect("the source is asked");
    }

    fn grant(&self) {
        self.answer.send(true).expect("the source is there");
    }

    fn decline(&self) {
        self.answer.send(false).expect("the source is there");
    }
}

impl RegionSource for Gated {
    fn reserve(&mut self, bytes: u64, alignment: u64) -> Result<Grant, ReserveError> {
        let _ = self.asked.send(());
        if self.answer.recv().unwrap_or(true) {
            self.upstream.reserve(bytes, alignment)
        } else {
            Err(ReserveError::Declined)
        }
    }

    fn release(&mut self, region: Grant) {
        let _ = self.asked.send(());
        let _ = self.answer.recv();
        self.upstream.release(region);
    }
}

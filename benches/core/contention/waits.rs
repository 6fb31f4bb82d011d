//! How long single allocations take, with and without the time that the scheduler kept the thread off its core.
//!
//! Linux counts for each thread how long it waited for a core although it could run. An allocation that took some
//! microseconds is followed by a look at that count: the thread's share in it is the scheduler's, not the lock's. A
//! thread that holds the lock may be kept off its core, too; that is the lock's share in the waits of the others.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::Instant;

use hdrhistogram::Histogram;

/// Nanoseconds from which on the scheduler is asked. A switch of threads takes longer.
const SLOW: u64 = 2_000;
/// The longest time that is recorded, in nanoseconds.
const MOST: u64 = 60_000_000_000;

/// The clock of a workload: around each allocation, or none.
pub(crate) trait Stopwatch: Send {
    /// Runs `allocate`, and may record how long it took.
    fn time<T>(&mut self, allocate: impl FnOnce() -> T) -> T;

    /// Forgets all records.
    fn reset(&mut self) {}

    /// Returns the records, if there are any.
    fn waits(&self) -> Option<&Waits> {
        None
    }
}

/// Records nothing.
pub(crate) struct Off;

impl Stopwatch for Off {
    #[inline(always)]
    fn time<T>(&mut self, allocate: impl FnOnce() -> T) -> T {
        allocate()
    }
}

/// The waits of one thread, or of several.
pub(crate) struct Waits {
    /// Nanoseconds of each allocation.
    pub(crate) all: Histogram<u64>,
    /// The same without the time that the thread waited for a core.
    pub(crate) running: Histogram<u64>,
    scheduler: Scheduler,
    last: Instant,
}

impl Waits {
    /// Creates the records of the calling thread.
    pub(crate) fn new() -> Self {
        Self {
            all: histogram(),
            running: histogram(),
            scheduler: Scheduler::of_this_thread(),
            last: Instant::now(),
        }
    }

    #[cold]
    fn delay(&mut self) -> u64 {
        let delay = self.scheduler.delay();
        // Reading the count is no wait of the workload.
        self.last = Instant::now();
        delay
    }
}

impl Stopwatch for Waits {
    #[inline]
    fn time<T>(&mut self, allocate: impl FnOnce() -> T) -> T {
        let mut start = Instant::now();
        if nanoseconds(self.last, start) > SLOW {
            // The thread was off its core between two allocations, which belongs to neither.
            self.delay();
            start = self.last;
        }
        let result = allocate();
        self.last = Instant::now();
        let took = nanoseconds(start, self.last);
        let delay = if took > SLOW { self.delay() } else { 0 };
        self.all.saturating_record(took);
        self.running.saturating_record(took.saturating_sub(delay));
        result
    }

    fn reset(&mut self) {
        self.all.reset();
        self.running.reset();
    }

    fn waits(&self) -> Option<&Waits> {
        Some(self)
    }
}

pub(crate) fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, MOST, 3).expect("bounds in range")
}

/// The time that a thread waited for a core although it could run.
struct Scheduler {
    /// Nanoseconds on a core, nanoseconds of waiting for one, and switches; absent where the kernel does not count.
    counts: Option<File>,
    before: u64,
}

impl Scheduler {
    fn of_this_thread() -> Self {
        let mut scheduler = Self { counts: File::open("/proc/thread-self/schedstat").ok(), before: 0 };
        scheduler.delay();
        scheduler
    }

    /// Returns the nanoseconds since the last call.
    fn delay(&mut self) -> u64 {
        let now = self.counts.as_ref().and_then(waited).unwrap_or(0);
        now - std::mem::replace(&mut self.before, now)
    }
}

fn waited(counts: &File) -> Option<u64> {
    let mut text = [0; 64];
    let length = counts.read_at(&mut text, 0).ok()?;
    std::str::from_utf8(&text[..length]).ok()?.split_ascii_whitespace().nth(1)?.parse().ok()
}

fn nanoseconds(from: Instant, to: Instant) -> u64 {
    u64::try_from(to.duration_since(from).as_nanos()).expect("less than centuries")
}

/// Returns the median nanoseconds between two adjacent readings of the clock.
pub(crate) fn reading() -> u64 {
    let mut waits = Waits::new();
    for _ in 0..100_000 {
        waits.time(|| ());
    }
    waits.all.value_at_quantile(0.5)
}

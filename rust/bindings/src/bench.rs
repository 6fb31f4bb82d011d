//! Times programs in pools, and in allocators of other libraries, for `allotment bench`.
//!
//! The loops are here because calls from Python take longer than what is measured.

use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use allotment::replay::Event;
use pyo3::exceptions::{PyMemoryError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;

use crate::interpreter::detach;
use crate::pool::Pool;
use crate::replay::Program;
use functions::Functions;

mod functions;

/// The most threads that play a program at once.
const MAX_THREADS: usize = 256;

/// States of the start of a measurement.
const WAITING: u8 = 0;
const STARTED: u8 = 1;
const CANCELLED: u8 = 2;

/// An allocator that is measured.
trait Player: Sync {
    /// Returns the address of at least `bytes` bytes, any for none; `None` if the allocator refuses.
    fn allocate(&self, bytes: u64) -> Option<u64>;

    /// Frees what `allocate` returned.
    fn free(&self, address: u64);
}

impl Player for allotment::Pool {
    fn allocate(&self, bytes: u64) -> Option<u64> {
        self.allocate(bytes).ok().map(|allocation| allocation.address)
    }

    fn free(&self, address: u64) {
        // Cannot fail: the program frees only its own allocations.
        let _ = self.free(address);
    }
}

/// Why a measurement failed.
enum Failure {
    /// The allocator refused the request of this event.
    Refused(usize),
    /// The operating system refused a thread.
    NoThread,
}

/// Play a program in a pool, and return the nanoseconds that it took.
///
/// Args:
///     program: The program. What is live at its end is freed afterwards.
///     pool: The pool.
///     setup: Number of events at the start that are played before the time is taken.
///     threads: Number of threads that play it at once, each with blocks of its own; from 1 (default) to 256. The
///         time is that from the first start to the last end.
///
/// Raises:
///     MemoryError: The pool refuses a request. What was allocated is freed.
///     ValueError: An argument is out of range.
///     RuntimeError: The operating system refuses a thread.
#[pyfunction]
#[pyo3(signature = (program, pool, *, setup = 0, threads = 1))]
pub(crate) fn time_pool(
    py: Python<'_>,
    program: &Program,
    pool: &Pool,
    setup: usize,
    threads: usize,
) -> PyResult<u64> {
    time(py, program, &**pool.core(), setup, threads)
}

/// Play a program with two functions of C, and return the nanoseconds that it took. See :func:`time_pool`.
///
/// Args:
///     program: The program.
///     allocate: Address of a function like ``malloc`` of C, which any number of threads may call at once.
///     free: Address of the function that frees what it returns, like ``free`` of C.
///     setup: Number of events at the start that are played before the time is taken.
///     threads: Number of threads that play it at once.
///
/// Raises:
///     MemoryError: ``allocate`` returns a null pointer. What was allocated is freed.
///     ValueError: An argument is out of range.
///     RuntimeError: The operating system refuses a thread.
#[pyfunction]
#[pyo3(signature = (program, allocate, free, *, setup = 0, threads = 1))]
pub(crate) fn time_functions(
    py: Python<'_>,
    program: &Program,
    allocate: usize,
    free: usize,
    setup: usize,
    threads: usize,
) -> PyResult<u64> {
    let Some(functions) = Functions::at(allocate, free) else {
        return Err(PyValueError::new_err("allocate and free must be addresses of functions, not 0"));
    };
    time(py, program, &functions, setup, threads)
}

fn time(
    py: Python<'_>,
    program: &Program,
    player: &impl Player,
    setup: usize,
    threads: usize,
) -> PyResult<u64> {
    let events = program.core().events();
    if !(1..=MAX_THREADS).contains(&threads) {
        let text = format!("threads must be between 1 and {MAX_THREADS}, not {threads}");
        return Err(PyValueError::new_err(text));
    }
    if setup > events.len() {
        let text = format!("setup must be at most the number of events, {}, not {setup}", events.len());
        return Err(PyValueError::new_err(text));
    }
    let slots = program.core().slots();
    detach(py, || play_together(player, events, slots, setup, threads)).map_err(|failure| match failure {
        Failure::Refused(event) => PyMemoryError::new_err(format!("event {event}: the request was refused")),
        Failure::NoThread => PyRuntimeError::new_err("the operating system refuses a thread"),
    })
}

/// Plays the events on each of the threads at once; returns the nanoseconds from the first start to the last end.
fn play_together(
    player: &impl Player,
    events: &[Event],
    slots: usize,
    setup: usize,
    threads: usize,
) -> Result<u64, Failure> {
    let (state, ready) = (AtomicU8::new(WAITING), AtomicUsize::new(0));
    let wait = || {
        ready.fetch_add(1, Ordering::AcqRel);
        // The start is close, and a thread that sleeps would start late.
        while state.load(Ordering::Acquire) == WAITING {
            thread::yield_now();
        }
        state.load(Ordering::Acquire) == STARTED
    };
    if threads == 1 {
        // On this thread: a new one would have to become the owner of the pool's lock.
        let span = play(player, events, slots, setup, || true)?;
        return Ok(nanoseconds(&[span]));
    }
    let spans: Result<Vec<_>, Failure> = thread::scope(|scope| {
        let mut running = Vec::with_capacity(threads);
        for _ in 0..threads {
            let work = || play(player, events, slots, setup, wait);
            let Ok(thread) = thread::Builder::new().spawn_scoped(scope, work) else {
                state.store(CANCELLED, Ordering::Release);
                return Err(Failure::NoThread);
            };
            running.push(thread);
        }
        while ready.load(Ordering::Acquire) < threads {
            thread::yield_now();
        }
        state.store(STARTED, Ordering::Release);
        running.into_iter().map(|thread| thread.join().unwrap_or(Err(Failure::NoThread))).collect()
    });
    Ok(nanoseconds(&spans?))
}

/// Plays the events once and frees what is live at the end; returns when the measured ones began and ended.
///
/// `wait` is called once, after the events of the setup, even if they fail; it returns whether to go on.
fn play(
    player: &impl Player,
    events: &[Event],
    slots: usize,
    setup: usize,
    wait: impl FnOnce() -> bool,
) -> Result<(Instant, Instant), Failure> {
    let mut live = vec![None; slots];
    let prepared = play_events(player, &events[..setup], &mut live);
    let goes_on = wait() && prepared.is_ok();
    let start = Instant::now();
    let outcome = if goes_on { play_events(player, &events[setup..], &mut live) } else { Ok(()) };
    let end = Instant::now();
    for address in live.into_iter().flatten() {
        player.free(address);
    }
    prepared.map_err(Failure::Refused)?;
    outcome.map_err(|event| Failure::Refused(setup + event))?;
    Ok((start, end))
}

/// Plays events; the number of the first one that is refused is the error.
fn play_events(player: &impl Player, events: &[Event], live: &mut [Option<u64>]) -> Result<(), usize> {
    for (number, &event) in events.iter().enumerate() {
        match event {
            Event::Allocate { slot, bytes } => {
                live[slot as usize] = Some(player.allocate(bytes).ok_or(number)?);
            }
            Event::Free { slot } => {
                if let Some(address) = live[slot as usize].take() {
                    player.free(address);
                }
            }
        }
    }
    Ok(())
}

fn nanoseconds(spans: &[(Instant, Instant)]) -> u64 {
    let start = spans.iter().map(|span| span.0).min();
    let end = spans.iter().map(|span| span.1).max();
    let elapsed = start.zip(end).map_or(0, |(start, end)| end.duration_since(start).as_nanos());
    u64::try_from(elapsed).unwrap_or(u64::MAX)
}

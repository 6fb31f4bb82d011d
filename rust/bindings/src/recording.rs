//! The `EventLog` class: events of pools, packed for `NumPy`, and the logs that new pools join.
//!
//! Longer than 300 lines: all of one class.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use allotment::{EventKind, EventLog as CoreLog, Keep, PoolEvent, RecentEvents};
use allotment_sync::PerProcess;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyInt};

use crate::error::IntoPyErr;
use crate::error::os_error::os_error;
use crate::interpreter::detach;
use crate::pool::Pool;
use crate::pool::registry;
use crate::tag::stack;

use sink::{Journal, RefusalFile, Sink};

mod sink;

/// Bytes of a packed event.
const ROW_BYTES: usize = 40;

/// The `op` of an allocation that is live before the first event, as its own event was dropped.
const OP_LIVE_BEFORE: i32 = 4;

/// The most events of a log: their buffer has some tens of bytes each.
const MAX_EVENTS: usize = 1 << 30;

/// Logs that every new pool joins. A forked child has none.
static JOINED_BY_NEW: PerProcess<Mutex<Vec<Arc<Log>>>> =
    PerProcess::new(Mutex::new(Vec::new()), Mutex::default);

struct Log {
    events: CoreLog,
    /// Number of frames of Python's stack that events have as their tag, 0 for none.
    frames: usize,
    state: Mutex<State>,
    /// Number of events that were taken for the file and could not be written.
    unwritten: AtomicU64,
    /// Taken before `state`, and without the interpreter's lock.
    file: Mutex<LogFile>,
}

#[derive(Default)]
struct LogFile {
    sink: Sink,
    /// The file's name, for errors.
    path: Option<PathBuf>,
    /// Why a refusal could not be written, for the next caller that can be told.
    failure: Option<io::Error>,
}

#[derive(Default)]
struct State {
    /// Whether requests take their stacks for this log.
    takes_stacks: bool,
    /// Names of the pools that were ever recorded, by number.
    names: BTreeMap<u64, String>,
    pools: Vec<Weak<allotment::Pool>>,
    /// Numbers of tags, and the tags in their order.
    numbers: HashMap<Arc<str>, i32>,
    tags: Vec<Arc<str>>,
}

impl Log {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has requests take their stacks from now on, if the log has any.
    fn begin_stacks(&self) {
        let mut state = self.state();
        if self.frames > 0 && !state.takes_stacks {
            state.takes_stacks = true;
            stack::begin(self.frames);
        }
    }

    fn end_stacks(&self) {
        if std::mem::take(&mut self.state().takes_stacks) {
            stack::end(self.frames);
        }
    }

    /// Returns an error in a forked child: another thread of the parent may hold the locks for ever.
    fn check_process(&self, py: Python<'_>) -> PyResult<()> {
        if self.events.is_inherited() { Err(allotment::Unusable::Forked.into_py_err(py)) } else { Ok(()) }
    }

    fn join(&self, pool: &Arc<allotment::Pool>) -> Result<(), allotment::Unusable> {
        let mut state = self.state();
        if state.pools.iter().any(|known| known.as_ptr() == Arc::as_ptr(pool)) {
            return Ok(());
        }
        pool.start_recording(&self.events)?;
        state.names.insert(pool.number(), pool.options().name.clone());
        state.pools.push(Arc::downgrade(pool));
        Ok(())
    }

    fn file(&self) -> MutexGuard<'_, LogFile> {
        self.file.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add_unwritten(&self, events: usize) {
        self.unwritten.fetch_add(events as u64, Ordering::Relaxed);
    }

    /// Sets the file, and has it written at each refusal.
    fn set_file(self: &Arc<Self>, path: PathBuf, sink: Sink) {
        {
            let file = &mut *self.file();
            (file.path, file.sink) = (Some(path), sink);
        }
        let log = Arc::downgrade(self);
        self.events.on_refusal(move || {
            if let Some(log) = log.upgrade() {
                let file = &mut *log.file();
                if let Err(error) = file.sink.flush_refusal(&log) {
                    file.failure = Some(error);
                }
            }
        });
    }

    /// Returns the tags from the `first` one on, and the names of all pools by number.
    fn texts(&self, first: usize) -> (Vec<String>, BTreeMap<u64, String>) {
        let state = self.state();
        let tags = state.tags.iter().skip(first).map(ToString::to_string);
        (tags.collect(), state.names.clone())
    }

    /// Packs the events in the buffer, after the allocations that are live before them.
    fn pack_recent(&self) -> Vec<u8> {
        let RecentEvents { live_before, events } = self.events.recent();
        [self.pack(live_before, Some(OP_LIVE_BEFORE)), self.pack(events, None)].concat()
    }

    /// Packs events as rows of [`ROW_BYTES`], all with one `op`, if it is given.
    fn pack(&self, events: impl IntoIterator<Item = PoolEvent>, all: Option<i32>) -> Vec<u8> {
        let mut state = self.state();
        let mut packed = Vec::new();
        for PoolEvent { kind, nanoseconds, pool, id, bytes, thread, tag } in events {
            for number in [nanoseconds, id, bytes] {
                packed.extend_from_slice(&number.to_le_bytes());
            }
            let op = all.unwrap_or(match kind {
                EventKind::Allocated => 1,
                EventKind::Freed => 2,
                EventKind::Refused => 3,
            });
            let tag = tag.map_or(-1, |tag| state.number(tag));
            let pool = i32::try_from(pool).unwrap_or(i32::MAX);
            for number in [pool, thread.cast_signed(), tag, op] {
                packed.extend_from_slice(&number.to_le_bytes());
            }
        }
        packed
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        // Without the lock, which another thread of a forked child's parent may hold for ever.
        if self.state.get_mut().unwrap_or_else(PoisonError::into_inner).takes_stacks {
            stack::end(self.frames);
        }
    }
}

impl State {
    fn number(&mut self, tag: Arc<str>) -> i32 {
        let next = i32::try_from(self.tags.len()).unwrap_or(i32::MAX);
        let number = *self.numbers.entry(Arc::clone(&tag)).or_insert(next);
        if number == next {
            self.tags.push(tag);
        }
        number
    }
}

/// Returns a whole number in a range.
fn number_argument(value: &Bound<'_, PyAny>, name: &str, range: &RangeInclusive<usize>) -> PyResult<usize> {
    match value.extract::<usize>() {
        Ok(number) if range.contains(&number) => Ok(number),
        Err(error) if !value.is_instance_of::<PyInt>() => Err(error),
        // Negative numbers, too, and those above 64 bits.
        _ => Err(PyValueError::new_err(format!(
            "{name} must be from {} to {}, not {value}",
            range.start(),
            range.end()
        ))),
    }
}

/// Records a pool that was just made in the logs that new pools join.
pub(crate) fn join_new(pool: &Arc<allotment::Pool>) {
    let logs = JOINED_BY_NEW.get().lock().unwrap_or_else(PoisonError::into_inner).clone();
    for log in logs {
        // A pool of this process cannot refuse it.
        let _ = log.join(pool);
    }
}

/// A buffer that receives the events of pools.
///
/// Args:
///     events: The most events that it holds.
///     keep: Which events a full buffer keeps, ``"last"`` or ``"first"``; the others are counted as lost.
///     stacks: Number of innermost frames of Python's stack that the events of requests have as their tag; 0 by
///         default. Pools with ``owner_tags`` have their own tags instead.
///
/// Raises:
///     ValueError: An argument is out of range.
#[pyclass(frozen, module = "allotment")]
pub(crate) struct EventLog(Arc<Log>);

impl EventLog {
    /// Returns a log of the last events of a pool that was just made.
    pub(crate) fn of_pool(pool: &Arc<allotment::Pool>, events: &Bound<'_, PyAny>) -> PyResult<Self> {
        let log = Self::new(events, "last", None)?;
        // A pool of this process cannot refuse it.
        let _ = log.0.join(pool);
        Ok(log)
    }
}

#[pymethods]
impl EventLog {
    #[new]
    #[pyo3(signature = (events, keep, stacks = None), text_signature = "(events, keep, stacks=0)")]
    fn new(events: &Bound<'_, PyAny>, keep: &str, stacks: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let events = number_argument(events, "events", &(1..=MAX_EVENTS))?;
        let frames =
            stacks.map_or(Ok(0), |stacks| number_argument(stacks, "stacks", &(0..=stack::MAX_FRAMES)))?;
        let keep = match keep {
            "last" => Keep::Last,
            "first" => Keep::First,
            other => {
                return Err(PyValueError::new_err(format!("keep must be 'last' or 'first', not {other:?}")));
            }
        };
        let events = CoreLog::new(events, keep);
        Ok(Self(Arc::new(Log {
            events,
            frames,
            state: Mutex::default(),
            file: Mutex::default(),
            unwritten: AtomicU64::new(0),
        })))
    }

    /// Record a pool from now on: first its live allocations, by address.
    fn start(&self, py: Python<'_>, pool: &Pool) -> PyResult<()> {
        self.0.begin_stacks();
        detach(py, || {
            pool.small_cache().flush();
            self.0.join(pool.core())
        })
        .map_err(|error| error.into_py_err(py))
    }

    /// Record all pools of the process, and those that are made from now on.
    fn start_all(&self, py: Python<'_>) -> PyResult<()> {
        self.0.begin_stacks();
        detach(py, || {
            JOINED_BY_NEW.get().lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&self.0));
            registry::alive().iter().try_for_each(|pool| self.0.join(pool))
        })
        .map_err(|error| error.into_py_err(py))
    }

    /// Record no pool any more.
    fn stop(&self, py: Python<'_>) {
        self.0.end_stacks();
        detach(py, || {
            JOINED_BY_NEW
                .get()
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .retain(|log| !Arc::ptr_eq(log, &self.0));
            let pools = std::mem::take(&mut self.0.state().pools);
            for pool in pools.iter().filter_map(Weak::upgrade) {
                // In a forked child the pool is the parent's.
                let _ = pool.stop_recording(&self.0.events);
            }
        });
    }

    /// Make a journal of the events from now on: :meth:`flush` appends them, and so does each refusal.
    ///
    /// Args:
    ///     path: The file. One that is there is replaced.
    ///     behind: Milliseconds between two calls of :meth:`flush`, which readers tell.
    ///
    /// Raises:
    ///     OSError: The file cannot be written.
    fn write_journal(&self, py: Python<'_>, path: PathBuf, behind: u32) -> PyResult<()> {
        let created = detach(py, || {
            Journal::create(&path, behind)
                .map(|journal| self.0.set_file(path.clone(), Sink::Journal(journal)))
        });
        created.map_err(|error| os_error(py, &error, Some(path)))
    }

    /// Have each refusal write a journal of the events in the buffer.
    fn write_at_refusal(&self, py: Python<'_>, path: PathBuf) {
        detach(py, || self.0.set_file(path.clone(), Sink::AtRefusal(RefusalFile::new(path))));
    }

    /// Write what the file lacks.
    ///
    /// Raises:
    ///     OSError: The file could not be written, now or at a refusal; nothing more is written to it.
    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        detach(py, || {
            let file = &mut *self.0.file();
            let flushed = file.sink.flush(&self.0);
            file.failure.take().map_or(flushed, Err).map_err(|error| (error, file.path.clone()))
        })
        .map_err(|(error, path)| os_error(py, &error, path))
    }

    /// Write what the file lacks, and write no more to it.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let flushed = self.flush(py);
        detach(py, || self.0.file().sink = Sink::None);
        flushed
    }

    /// Return a copy of all events, packed, after the allocations that are live before the first one.
    ///
    /// A row has 40 bytes: time, id and size (64 bits each), then pool, thread, tag (-1 for none) and op (32 bits each;
    /// 1 allocates, 2 frees, 3 is a refusal, 4 is an allocation from before), little-endian.
    ///
    /// Raises:
    ///     RuntimeError: In a forked child.
    fn copy<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        self.0.check_process(py)?;
        let packed = detach(py, || self.0.pack_recent());
        Ok(PyBytes::new(py, &packed))
    }

    /// Number of events that a full buffer dropped, or that could not be written.
    ///
    /// Raises:
    ///     RuntimeError: In a forked child.
    #[getter]
    fn lost(&self, py: Python<'_>) -> PyResult<u64> {
        self.0.check_process(py)?;
        Ok(self.0.events.lost() + self.0.unwritten.load(Ordering::Relaxed))
    }

    /// Number of requests that were refused so far.
    #[getter]
    fn refused(&self) -> u64 {
        self.0.events.refused()
    }

    /// Names of the pools that were recorded so far, by number.
    ///
    /// Raises:
    ///     RuntimeError: In a forked child.
    #[getter]
    fn pools(&self, py: Python<'_>) -> PyResult<BTreeMap<u64, String>> {
        self.0.check_process(py)?;
        Ok(self.0.state().names.clone())
    }

    /// Texts of the tags in packed events so far.
    ///
    /// Raises:
    ///     RuntimeError: In a forked child.
    #[getter]
    fn tags(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.0.check_process(py)?;
        Ok(self.0.state().tags.iter().map(ToString::to_string).collect())
    }
}

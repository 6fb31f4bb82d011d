//! The `Scope` class: counts the allocations of a block, with an optional limit.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use allotment::{Bytes, ScopeStats, Unusable};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::error::IntoPyErr;
use crate::interpreter::detach;
use crate::numpy::PoolSmallCache;
use crate::size::size_argument;

/// Counts what a ``with`` block allocates from a pool, and optionally limits it. ``Pool.scope`` makes one.
///
/// Scopes nest: an allocation counts for its scope and for the scopes around it. Figures are bytes requested, each
/// request in whole granules of 256 bytes. They are current while the block runs, and those of its end afterwards.
/// Any thread can leave the scope; the last reference to it leaves it, too, such as that of a generator that was
/// never finished. In a forked child leaving it does nothing.
#[pyclass(frozen, weakref, module = "allotment")]
pub(crate) struct Scope {
    pool: Arc<allotment::Pool>,
    /// Flushed at the scope's start and end, and before every query.
    small_cache: PoolSmallCache,
    name: String,
    every_thread: bool,
    /// Held while the scope of the pool is opened, changed, read or closed, so that threads agree on its state.
    progress: Mutex<Progress>,
}

struct Progress {
    limit: Option<u64>,
    state: State,
}

enum State {
    New,
    Open(allotment::Scope),
    Left(ScopeStats),
}

impl Scope {
    pub(crate) fn new(
        pool: Arc<allotment::Pool>,
        small_cache: PoolSmallCache,
        name: String,
        limit: Option<u64>,
        every_thread: bool,
    ) -> Self {
        let progress = Mutex::new(Progress { limit, state: State::New });
        Self { pool, small_cache, name, every_thread, progress }
    }

    /// Runs `work` with the progress locked, detached from the interpreter, as it may wait for the pool.
    fn with_progress<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut Progress) -> Result<T, Unusable> + Send,
    ) -> PyResult<T> {
        detach(py, || work(&mut *self.lock()?)).map_err(|error| error.into_py_err(py))
    }

    /// Locks the progress. In a forked child, a thread that does not exist there may hold the lock for ever.
    fn lock(&self) -> Result<MutexGuard<'_, Progress>, Unusable> {
        if !self.pool.is_inherited() {
            return Ok(self.progress.lock().unwrap_or_else(PoisonError::into_inner));
        }
        match self.progress.try_lock() {
            Ok(progress) => Ok(progress),
            Err(TryLockError::Poisoned(poisoned)) => Ok(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => Err(Unusable::Forked),
        }
    }

    fn figure(&self, py: Python<'_>, of: fn(&ScopeStats) -> u64) -> PyResult<u64> {
        let figures = self.with_progress(py, |progress| self.figures(progress))?;
        Ok(figures.as_ref().map_or(0, of))
    }

    /// Returns the current figures inside the block, the final ones after it, `None` before it.
    fn figures(&self, progress: &Progress) -> Result<Option<ScopeStats>, Unusable> {
        match &progress.state {
            State::New => Ok(None),
            State::Left(stats) => Ok(Some(stats.clone())),
            State::Open(scope) => {
                self.small_cache.flush();
                self.pool.scope_stats(*scope)
            }
        }
    }
}

#[pymethods]
impl Scope {
    /// The scope's name in reports.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    /// The most bytes that the scope may hold; ``None`` without a limit.
    #[getter]
    fn limit(&self, py: Python<'_>) -> PyResult<Option<u64>> {
        self.with_progress(py, |progress| Ok(progress.limit))
    }

    /// Change the limit, or remove it with ``None``, before the block or while it runs.
    ///
    /// A scope that holds more than its new limit gets no memory until it holds less.
    ///
    /// Args:
    ///     limit: Bytes, a text such as ``"64MiB"``, or ``None``.
    ///
    /// Raises:
    ///     ValueError: The limit is not a size.
    ///     RuntimeError: The block has ended.
    #[pyo3(signature = (limit))]
    fn set_limit(&self, py: Python<'_>, limit: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        let limit = limit.map(|limit| size_argument(limit, "limit")).transpose()?;
        let is_set = self.with_progress(py, |progress| {
            let is_set = match &progress.state {
                State::New => true,
                State::Left(_) => false,
                State::Open(scope) => self.pool.set_scope_limit(*scope, limit)?,
            };
            if is_set {
                progress.limit = limit;
            }
            Ok(is_set)
        })?;
        if !is_set {
            return Err(PyRuntimeError::new_err(format!(
                "scope {:?} was left: it has no limit any more",
                self.name
            )));
        }
        Ok(())
    }

    /// The most bytes that were held at once.
    #[getter]
    fn peak(&self, py: Python<'_>) -> PyResult<u64> {
        self.figure(py, |stats| stats.peak)
    }

    /// Bytes allocated since the start of the block.
    #[getter]
    fn allocated(&self, py: Python<'_>) -> PyResult<u64> {
        self.figure(py, |stats| stats.allocated)
    }

    /// Bytes freed of those that the scope allocated.
    #[getter]
    fn freed(&self, py: Python<'_>) -> PyResult<u64> {
        self.figure(py, |stats| stats.freed)
    }

    /// Bytes held now, or when the block ended.
    #[getter]
    fn live(&self, py: Python<'_>) -> PyResult<u64> {
        self.figure(py, |stats| stats.live)
    }

    /// Number of allocations held now, or when the block ended.
    #[getter]
    fn num_live(&self, py: Python<'_>) -> PyResult<u64> {
        self.figure(py, |stats| stats.num_live)
    }

    /// Begin to count.
    ///
    /// Raises:
    ///     RuntimeError: The scope was entered before.
    fn __enter__(slf: PyRef<'_, Self>) -> PyResult<PyRef<'_, Self>> {
        let this = &*slf;
        let is_opened = this.with_progress(slf.py(), |progress| {
            let is_new = matches!(progress.state, State::New);
            if is_new {
                let opened = this.pool.open_scope(&this.name, progress.limit, this.every_thread)?;
                progress.state = State::Open(opened);
            }
            Ok(is_new)
        })?;
        if !is_opened {
            return Err(PyRuntimeError::new_err(format!(
                "scope {:?} was entered before: make another",
                slf.name
            )));
        }
        Ok(slf)
    }

    /// Stop counting.
    ///
    /// Raises:
    ///     RuntimeError: The scope is not entered.
    fn __exit__(
        &self,
        py: Python<'_>,
        _kind: &Bound<'_, PyAny>,
        _value: &Bound<'_, PyAny>,
        _trace: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        if self.pool.is_inherited() {
            // In a forked child the end of a block closes nothing, and must not replace the exception that ends it.
            return Ok(());
        }
        let is_left = self.with_progress(py, |progress| {
            let State::Open(scope) = &progress.state else { return Ok(false) };
            self.small_cache.flush();
            let closed = self.pool.close_scope(*scope)?;
            Ok(closed.map(|stats| progress.state = State::Left(stats)).is_some())
        })?;
        if is_left {
            return Ok(());
        }
        Err(PyRuntimeError::new_err(format!("scope {:?} is not entered", self.name)))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        self.with_progress(py, |progress| {
            let state = match progress.state {
                State::New => "new",
                State::Open(_) => "entered",
                State::Left(_) => "left",
            };
            let limit = progress.limit.map_or_else(String::new, |limit| format!(", limit {}", Bytes(limit)));
            // An inherited scope of a forked child has no figures.
            let figures = self.figures(progress).ok().flatten();
            let figures = figures.map_or_else(String::new, |stats| {
                format!(", {} live, peak {}", Bytes(stats.live), Bytes(stats.peak))
            });
            Ok(format!("<allotment.Scope {:?}: {state}{limit}{figures}>", self.name))
        })
    }
}

/// Closes a scope that is still entered, as in an unfinished generator, with its last reference.
impl Drop for Scope {
    fn drop(&mut self) {
        let progress = self.progress.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let State::Open(scope) = &progress.state {
            self.pool.close_scope_deferred(*scope);
        }
    }
}

//! The `Scope` class: counts the allocations of a block, with an optional limit.

use std::sync::{Arc, Mutex, PoisonError};

use allotment::{Bytes, ScopeStats};
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
    limit: Mutex<Option<u64>>,
    every_thread: bool,
    state: Mutex<State>,
}

#[derive(Clone)]
enum State {
    New,
    /// A thread is opening it.
    Opening,
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
        Self {
            pool,
            small_cache,
            name,
            limit: Mutex::new(limit),
            every_thread,
            state: Mutex::new(State::New),
        }
    }

    fn state(&self) -> State {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Lets exactly one thread open it.
    fn claim(&self) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let new = matches!(*state, State::New);
        if new {
            *state = State::Opening;
        }
        new
    }

    fn set_state(&self, state: State) {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = state;
    }

    fn figure(&self, py: Python<'_>, of: fn(&ScopeStats) -> u64) -> PyResult<u64> {
        Ok(self.figures(py)?.as_ref().map_or(0, of))
    }

    /// Returns the current figures inside the block, the final ones after it, `None` before it.
    fn figures(&self, py: Python<'_>) -> PyResult<Option<ScopeStats>> {
        match self.state() {
            State::New | State::Opening => Ok(None),
            State::Left(stats) => Ok(Some(stats)),
            State::Open(scope) => {
                self.small_cache.flush();
                detach(py, || self.pool.scope_stats(scope)).map_err(|error| error.into_py_err(py))
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
    fn limit(&self) -> Option<u64> {
        *self.limit.lock().unwrap_or_else(PoisonError::into_inner)
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
        let is_set = match self.state() {
            State::New => true,
            State::Opening | State::Left(_) => false,
            State::Open(scope) => {
                detach(py, || self.pool.set_scope_limit(scope, limit)).map_err(|e| e.into_py_err(py))?
            }
        };
        if !is_set {
            return Err(PyRuntimeError::new_err(format!(
                "scope {:?} was left: it has no limit any more",
                self.name
            )));
        }
        *self.limit.lock().unwrap_or_else(PoisonError::into_inner) = limit;
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
        if !slf.claim() {
            return Err(PyRuntimeError::new_err(format!(
                "scope {:?} was entered before: make another",
                slf.name
            )));
        }
        let (py, this) = (slf.py(), &*slf);
        match detach(py, || this.pool.open_scope(&this.name, this.limit(), this.every_thread)) {
            Ok(opened) => this.set_state(State::Open(opened)),
            Err(error) => {
                this.set_state(State::New);
                return Err(error.into_py_err(py));
            }
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
        self.small_cache.flush();
        let not_entered = || PyRuntimeError::new_err(format!("scope {:?} is not entered", self.name));
        let State::Open(scope) = self.state() else { return Err(not_entered()) };
        let stats = detach(py, || self.pool.close_scope(scope)).map_err(|error| error.into_py_err(py))?;
        // `None` if two threads leave it at once: the other one has the figures.
        self.set_state(State::Left(stats.ok_or_else(not_entered)?));
        Ok(())
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let state = match self.state() {
            State::New | State::Opening => "new",
            State::Open(_) => "entered",
            State::Left(_) => "left",
        };
        let limit = self.limit().map_or_else(String::new, |limit| format!(", limit {}", Bytes(limit)));
        // An inherited scope of a forked child has no figures.
        let figures = self.figures(py).ok().flatten();
        let figures = figures.map_or_else(String::new, |stats| {
            format!(", {} live, peak {}", Bytes(stats.live), Bytes(stats.peak))
        });
        format!("<allotment.Scope {:?}: {state}{limit}{figures}>", self.name)
    }
}

/// Closes a scope that is still entered, as in an unfinished generator, with its last reference.
impl Drop for Scope {
    fn drop(&mut self) {
        if let State::Open(scope) = self.state() {
            self.pool.close_scope_deferred(scope);
        }
    }
}

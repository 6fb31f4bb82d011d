//! The `Scope` class: what a pool's memory is used for while a block runs.

use std::sync::{Arc, Mutex, PoisonError};

use allotment::{Bytes, ScopeStats};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::error::IntoPyErr;
use crate::interpreter::detach;
use crate::numpy::SmallOf;
use crate::size::size_argument;

/// Counts what is allocated from a pool in a `with` block, and caps it if asked to.
#[pyclass(frozen, weakref, module = "allotment")]
pub(crate) struct Scope {
    pool: Arc<allotment::Pool>,
    /// Given back at the scope's ends, and before it is asked anything.
    small: SmallOf,
    name: String,
    limit: Mutex<Option<u64>>,
    every_thread: bool,
    state: Mutex<State>,
}

#[derive(Clone)]
enum State {
    New,
    /// A thread is at it.
    Opening,
    Open(allotment::Scope),
    Left(ScopeStats),
}

impl Scope {
    pub(crate) fn new(
        pool: Arc<allotment::Pool>,
        small: SmallOf,
        name: String,
        limit: Option<u64>,
        every_thread: bool,
    ) -> Self {
        Self { pool, small, name, limit: Mutex::new(limit), every_thread, state: Mutex::new(State::New) }
    }

    fn state(&self) -> State {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Lets one thread open it, and no other.
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

    /// The figures: of now while the block runs, of its end afterwards, none before.
    fn figures(&self, py: Python<'_>) -> PyResult<Option<ScopeStats>> {
        match self.state() {
            State::New | State::Opening => Ok(None),
            State::Left(stats) => Ok(Some(stats)),
            State::Open(scope) => {
                self.small.settle();
                detach(py, || self.pool.scope_stats(scope)).map_err(|error| error.into_py_err(py))
            }
        }
    }
}

#[pymethods]
impl Scope {
    /// Its name.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    /// The most it may hold, in bytes, if that is capped.
    #[getter]
    fn limit(&self) -> Option<u64> {
        *self.limit.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Change the limit, or take it away with `None`, before the block or while it runs.
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

    /// Bytes ever allocated in it.
    #[getter]
    fn allocated(&self, py: Python<'_>) -> PyResult<u64> {
        self.figure(py, |stats| stats.allocated)
    }

    /// Bytes given back of those.
    #[getter]
    fn freed(&self, py: Python<'_>) -> PyResult<u64> {
        self.figure(py, |stats| stats.freed)
    }

    /// Bytes held: now, or when the block ended.
    #[getter]
    fn live(&self, py: Python<'_>) -> PyResult<u64> {
        self.figure(py, |stats| stats.live)
    }

    /// Allocations held: now, or when the block ended.
    #[getter]
    fn num_live(&self, py: Python<'_>) -> PyResult<u64> {
        self.figure(py, |stats| stats.num_live)
    }

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

    fn __exit__(
        &self,
        py: Python<'_>,
        _kind: &Bound<'_, PyAny>,
        _value: &Bound<'_, PyAny>,
        _trace: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        if self.pool.is_inherited() {
            // The end of a block in a forked child ends nothing, and must not replace the exception that ends it.
            return Ok(());
        }
        self.small.settle();
        let not_entered = || PyRuntimeError::new_err(format!("scope {:?} is not entered", self.name));
        let State::Open(scope) = self.state() else { return Err(not_entered()) };
        let stats = detach(py, || self.pool.close_scope(scope)).map_err(|error| error.into_py_err(py))?;
        // None if two threads leave it at once: the other one has the figures.
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
        // A scope that a fork left behind has no figures.
        let figures = self.figures(py).ok().flatten();
        let figures = figures.map_or_else(String::new, |stats| {
            format!(", {} live, peak {}", Bytes(stats.live), Bytes(stats.peak))
        });
        format!("<allotment.Scope {:?}: {state}{limit}{figures}>", self.name)
    }
}

/// One that is still entered, as in a generator that was never finished, ends with its last reference.
impl Drop for Scope {
    fn drop(&mut self) {
        if let State::Open(scope) = self.state() {
            self.pool.close_scope_late(scope);
        }
    }
}

//! The `Pool` class: convert, choose the door, call, convert back.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use allotment::{GRANULE, MAX_WAIT, Options, Refused};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::allocation::Allocation;
use crate::error::{IntoPyErr, InvalidFreeError};
use crate::size::{size_argument, whole_number};
use crate::snapshot::Snapshot;
use crate::source;
use crate::stats::PoolStats;

/// A best-fit allocator over regions from one source, under a limit that holds exactly.
#[pyclass(frozen, weakref, module = "allotment")]
pub(crate) struct Pool {
    core: Arc<allotment::Pool>,
    is_host_memory: bool,
}

#[pymethods]
impl Pool {
    #[new]
    #[pyo3(signature = (limit, *, growth = true, source = None, trim_on_oom = true, joins_regions = None,
        wait_seconds = 0.0, fragmentation_fraction = 0.0, name = None),
        text_signature = "(limit, *, growth=True, source='host', trim_on_oom=True, joins_regions=None, \
        wait_seconds=0.0, fragmentation_fraction=0.0, name=None)")]
    #[expect(clippy::too_many_arguments, reason = "one for each option, by name")]
    fn new(
        py: Python<'_>,
        limit: &Bound<'_, PyAny>,
        growth: bool,
        source: Option<&Bound<'_, PyAny>>,
        trim_on_oom: bool,
        joins_regions: Option<bool>,
        wait_seconds: f64,
        fragmentation_fraction: f64,
        name: Option<String>,
    ) -> PyResult<Self> {
        let wait = Duration::try_from_secs_f64(wait_seconds).map_err(|_| {
            let most = MAX_WAIT.as_secs();
            PyValueError::new_err(format!("wait_seconds {wait_seconds} is not between 0 and {most}"))
        })?;
        let options = Options {
            growth,
            trim_on_oom,
            joins_regions,
            wait,
            fragmentation_fraction,
            name: name.unwrap_or_else(made_name),
            ..Options::new(size_argument(limit, "limit")?)
        };
        let host = "host".into_pyobject(py)?.into_any();
        let chosen = source::choose(source.unwrap_or(&host))?;
        let core = allotment::Pool::new(chosen.source, options).map_err(|error| error.into_py_err(py))?;
        Ok(Self { core: Arc::new(core), is_host_memory: chosen.is_host_memory })
    }

    /// The most the pool may reserve, in bytes.
    #[getter]
    fn limit(&self) -> u64 {
        self.core.options().limit
    }

    /// Whether it starts small and doubles.
    #[getter]
    fn growth(&self) -> bool {
        self.core.options().growth
    }

    /// Name in reports.
    #[getter]
    fn name(&self) -> &str {
        &self.core.options().name
    }

    /// Allocate at least `nbytes` bytes.
    #[pyo3(signature = (nbytes, *, alignment = None))]
    #[pyo3(text_signature = "(self, nbytes, *, alignment=256)")]
    fn allocate(
        &self,
        py: Python<'_>,
        nbytes: &Bound<'_, PyAny>,
        alignment: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Allocation> {
        let alignment = alignment.map_or(Ok(GRANULE), |value| whole_number(value, "alignment"))?;
        let inner = self.take(py, size_argument(nbytes, "nbytes")?, alignment)?;
        Ok(Allocation::new(Arc::clone(&self.core), inner, alignment, self.is_host_memory))
    }

    /// Allocate at least `nbytes` bytes and return their address: the door with the least overhead.
    #[pyo3(signature = (nbytes))]
    fn malloc(&self, py: Python<'_>, nbytes: &Bound<'_, PyAny>) -> PyResult<u64> {
        Ok(self.take(py, size_argument(nbytes, "nbytes")?, GRANULE)?.address)
    }

    /// Free what starts at `address`; 0 does nothing.
    #[pyo3(signature = (address))]
    fn free(&self, py: Python<'_>, address: &Bound<'_, PyAny>) -> PyResult<()> {
        let address = address_argument(address)?;
        let freed = match self.core.try_free(address) {
            Ok(Some(())) => Ok(()),
            // Somebody else is inside: wait without the interpreter.
            Ok(None) => py.detach(|| self.core.free(address)),
            Err(error) => Err(error),
        };
        freed.map_err(|error| error.into_py_err(py))
    }

    /// What the pool holds and has done.
    fn stats(&self, py: Python<'_>) -> PyResult<PoolStats> {
        py.detach(|| self.core.stats()).map(PoolStats).map_err(|error| error.into_py_err(py))
    }

    /// Make every peak what it is now; cumulative counters stay.
    fn reset_peaks(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.core.reset_peaks()).map_err(|error| error.into_py_err(py))
    }

    /// Every region and every chunk.
    fn snapshot(&self, py: Python<'_>) -> PyResult<Snapshot> {
        let snapshot = py.detach(|| self.core.snapshot()).map_err(|error| error.into_py_err(py))?;
        Ok(Snapshot(Arc::new(snapshot)))
    }

    /// Whether a request would be served now, provided the source grants what the limit allows.
    fn can_allocate(&self, py: Python<'_>, nbytes: &Bound<'_, PyAny>) -> PyResult<bool> {
        // More than can be counted does not fit; less than nothing is a mistake.
        let bytes = size_argument(nbytes, "nbytes").or_else(|error| {
            let is_number = error.is_instance_of::<PyValueError>(py);
            if is_number && nbytes.gt(u64::MAX).unwrap_or(false) { Ok(u64::MAX) } else { Err(error) }
        })?;
        py.detach(|| self.core.can_allocate(bytes)).map_err(|error| error.into_py_err(py))
    }

    /// Hand every wholly free region back to the source; return their bytes.
    fn trim(&self, py: Python<'_>) -> PyResult<u64> {
        py.detach(|| self.core.trim()).map_err(|error| error.into_py_err(py))
    }

    /// Take no more requests. Regions go back when the last allocation is gone.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.core.close()).map_err(|error| error.into_py_err(py))
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyResult<PyRef<'_, Self>> {
        // An empty request: an error if the pool is closed.
        slf.take(slf.py(), 0, GRANULE)?;
        Ok(slf)
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        _kind: &Bound<'_, PyAny>,
        _value: &Bound<'_, PyAny>,
        _trace: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        self.close(py)
    }

    fn __repr__(&self) -> String {
        let Options { name, limit, growth, .. } = self.core.options();
        format!("<allotment.Pool {name:?}: limit {limit}, growth {}>", if *growth { "on" } else { "off" })
    }
}

impl Pool {
    pub(crate) fn core(&self) -> &Arc<allotment::Pool> {
        &self.core
    }

    pub(crate) fn is_host_memory(&self) -> bool {
        self.is_host_memory
    }

    /// The quick door, attached; and if it does not open, the slow one, detached.
    fn take(&self, py: Python<'_>, bytes: u64, alignment: u64) -> PyResult<allotment::Allocation> {
        match self.core.try_allocate(bytes, alignment) {
            Ok(Some(allocation)) => Ok(allocation),
            Ok(None) => self.take_slowly(py, bytes, alignment),
            Err(error) => Err(error.into_py_err(py)),
        }
    }

    #[cold]
    fn take_slowly(&self, py: Python<'_>, bytes: u64, alignment: u64) -> PyResult<allotment::Allocation> {
        let mut patience = self.core.patience();
        let mut collected = false;
        let mut interrupt = None;
        let taken = py.detach(|| {
            self.core.allocate_or(bytes, alignment, |refused| {
                // Memory may be held by nothing but Python's own garbage.
                let collect = !refused.is_hopeless() && !std::mem::replace(&mut collected, true);
                if collect && self.collect_garbage(refused) {
                    return true;
                }
                patience.again(refused, || {
                    interrupt = check_signals().err();
                    interrupt.is_some()
                })
            })
        });
        match interrupt {
            Some(error) => Err(error),
            None => taken.map_err(|error| error.into_py_err(py)),
        }
    }

    /// Runs Python's collector; says whether that freed anything of this pool.
    fn collect_garbage(&self, refused: &Refused) -> bool {
        // After the interpreter's end there is no garbage to collect, and to attach would be a crash.
        Python::try_attach(|py| {
            if let Err(error) = py.import("gc").and_then(|gc| gc.call_method0("collect")) {
                error.write_unraisable(py, None);
            }
        });
        self.core.freed_since(refused).unwrap_or(false)
    }
}

/// Lets Ctrl-C through. In a thread that outlives the interpreter there is none to let through.
#[expect(clippy::redundant_closure_for_method_calls, reason = "the method alone is not general enough")]
pub(crate) fn check_signals() -> PyResult<()> {
    Python::try_attach(|py| py.check_signals()).unwrap_or(Ok(()))
}

/// The address to free. No number that cannot be one was ever handed out.
fn address_argument(value: &Bound<'_, PyAny>) -> PyResult<u64> {
    let py = value.py();
    whole_number(value, "address").map_err(|error| {
        if value.is_instance_of::<Allocation>() {
            return PyTypeError::new_err("an Allocation is freed by its own free(), not by its pool's");
        }
        if error.is_instance_of::<PyValueError>(py) {
            InvalidFreeError::new_err(error.to_string())
        } else {
            error
        }
    })
}

fn made_name() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    format!("pool-{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

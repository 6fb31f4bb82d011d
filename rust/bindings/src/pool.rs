//! The `Pool` class.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use allotment::{Bytes, GRANULE, MAX_WAIT, Options, Policy, Unusable};
use allotment_host::AdmissionControl;
use pyo3::exceptions::{PyTypeError, PyUserWarning, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::allocation::{Allocation, address_argument};
use crate::environment;
use crate::error::IntoPyErr;
use crate::explanation::Explanation;
use crate::garbage::{Garbage, When};
use crate::guard::{self, ReportingSource};
use crate::interpreter::detach;
use crate::numpy::PoolSmallCache;
use crate::policy::policy_argument;
use crate::registry;
use crate::scope::Scope;
use crate::size::{size_argument, whole_number};
use crate::snapshot::{KeptRegion, Snapshot};
use crate::source;
use crate::stats::PoolStats;

mod requests;

/// A best-fit allocator over regions from one source, with an exact limit.
///
/// With the default policy it makes the decisions of TensorFlow's allocator, offset for offset. Threads may share
/// it.
///
/// Args:
///     limit: The most bytes that the pool may reserve: a number, or a text such as ``"1GiB"``. Required.
///     growth: True (default): the first region has 2 MiB, each later one is twice as large. False: the first
///         request reserves the whole limit.
///     source: Where regions come from. ``"host"`` (default): host memory that programs can read and write. A
///         ``HostMemory``: the same with a fixed size, shared by its pools. ``"address-space"``: made-up addresses
///         with no memory behind them. Any other object: a ``Source``.
///     trim_on_oom: True (default): before a refusal, give wholly free regions back to the source and grow again.
///     joins_regions: Whether a region that starts where another ends is joined to it. ``None`` (default): as the
///         source says.
///     wait_seconds: Seconds that a refused request waits for another thread's free; 0 by default.
///     fragmentation_fraction: Under the policy ``"tensorflow"``, split off a remainder from this share of the
///         limit on, between 0 and 1. 0 (default) means from 128 MiB on.
///     policy: ``"tensorflow"`` (default): split a chunk if it is at least twice as large as the request or leaves
///         128 MiB. ``"tight"``: split off every remainder.
///     name: The pool's name in reports; ``pool-1``, ``pool-2``, ... by default.
///     owner_tags: Record for each allocation the operation or the line of Python that requested it. ``None``
///         (default): as the environment variable ``ALLOTMENT_OWNER_TAGS`` says (0 or 1, 0 if unset).
///     idle_trim_seconds: Give wholly free regions back when the pool was not used for this many seconds. ``None``
///         (default): never. One thread of the process does so for all pools.
///     limit_set_by: The setting that decided the limit, for reports; ``"limit"`` by default.
///     guard: Find writes outside of allocations, and after a free, in host memory. ``None`` (default): as the
///         environment variable ``ALLOTMENT_GUARD`` says (0 or 1, 0 if unset), where the source is host memory.
///     quarantine: In guard mode, the most bytes of freed memory that wait, filled with poison, for a check before
///         they are used again. ``None`` (default): an eighth of the limit, at most 64 MiB.
///     collect_garbage: Run Python's garbage collector before a refusal. ``None`` (default): as the environment
///         variable ``ALLOTMENT_COLLECT_GARBAGE`` says (0 or 1); if that is unset, unless the program has called
///         ``gc.disable()``.
///
/// Raises:
///     ValueError: An option is out of range; the text names it, its value and the range.
///     TypeError: An option has the wrong type.
///
/// Warns:
///     UserWarning: An option has no effect beside the others.
///
/// Before a refusal Python's garbage collector runs once, as reference cycles may hold memory. That takes
/// milliseconds, so of several refusals with no allocation and no free of the pool between them only the first runs
/// it. A program that drops a reference cycle between two such refusals calls ``gc.collect()`` itself.
///
/// In a forked child, each call on a pool of the parent raises ``RuntimeError``, except for the end of a ``with``
/// block, which does nothing. Memory that the parent had written stays readable. A source that requests memory of
/// its own pool which only the source could grant, and a grant that cannot be a region, are a ``RuntimeError``,
/// too.
///
/// In guard mode each request takes at least 512 bytes more, for a red zone on both sides. Damage raises
/// ``MemoryDamageError`` at the free, or at the next call that allocates, frees, trims or closes. The logger
/// ``allotment.guard`` gets the damage that no call could report, and the allocations that are live when the pool
/// is closed or collected or the interpreter ends.
#[pyclass(frozen, weakref, module = "allotment")]
pub(crate) struct Pool {
    core: Arc<allotment::Pool>,
    is_host_memory: bool,
    /// Flushed before every query of the pool.
    small_cache: PoolSmallCache,
    garbage: Garbage,
    /// Admission control, for memory shared with the rest of the machine, such as that of a simulated GPU.
    admission: Option<Arc<AdmissionControl>>,
}

#[pymethods]
impl Pool {
    #[new]
    #[pyo3(signature = (limit, *, growth = true, source = None, trim_on_oom = true, joins_regions = None,
        wait_seconds = 0.0, fragmentation_fraction = 0.0, policy = None, name = None, owner_tags = None,
        idle_trim_seconds = None, limit_set_by = None, guard = None, quarantine = None,
        collect_garbage = None),
        text_signature = "(limit, *, growth=True, source='host', trim_on_oom=True, joins_regions=None, \
        wait_seconds=0.0, fragmentation_fraction=0.0, policy='tensorflow', name=None, owner_tags=None, \
        idle_trim_seconds=None, limit_set_by='limit', guard=None, quarantine=None, \
        collect_garbage=None)")]
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
        policy: Option<&Bound<'_, PyAny>>,
        name: Option<String>,
        owner_tags: Option<bool>,
        idle_trim_seconds: Option<f64>,
        limit_set_by: Option<String>,
        guard: Option<bool>,
        quarantine: Option<&Bound<'_, PyAny>>,
        collect_garbage: Option<bool>,
    ) -> PyResult<Self> {
        let wait = Duration::try_from_secs_f64(wait_seconds).map_err(|_| {
            let most = MAX_WAIT.as_secs();
            PyValueError::new_err(format!("wait_seconds {wait_seconds} is not between 0 and {most}"))
        })?;
        let host = "host".into_pyobject(py)?.into_any();
        let chosen = source::choose(source.unwrap_or(&host))?;
        let options = Options {
            growth,
            trim_on_oom,
            joins_regions,
            wait,
            fragmentation_fraction,
            policy: policy.map_or(Ok(Policy::default()), policy_argument)?,
            name: name.unwrap_or_else(default_name),
            owner_tags: owner_tags.map_or_else(|| environment::switch(py, "ALLOTMENT_OWNER_TAGS"), Ok)?,
            guard: guard::is_enabled(py, guard, chosen.is_host_memory)?,
            quarantine: quarantine.map(|bytes| size_argument(bytes, "quarantine")).transpose()?,
            ..Options::new(size_argument(limit, "limit")?)
        };
        warn_of_unused(py, &options)?;
        let options = match limit_set_by {
            Some(limit_set_by) => Options { limit_set_by, ..options },
            None => options,
        };
        let idle = idle_trim_seconds.map(idle_argument).transpose()?;
        let garbage = Garbage::new(When::choose(py, collect_garbage)?);
        let core = allotment::Pool::new(ReportingSource(chosen.source), options)
            .map_err(|error| error.into_py_err(py))?;
        let core = Arc::new(core);
        if let Some(siblings) = &chosen.siblings {
            core.join(siblings);
        }
        let small_cache = PoolSmallCache::default();
        let admission = chosen.within_machine.then(|| Arc::new(AdmissionControl::new(&core)));
        registry::register(&core, &small_cache, admission.as_ref());
        if let Some(after) = idle {
            if !chosen.any_thread {
                return Err(PyValueError::new_err(
                    "idle_trim_seconds needs a source that is not written in Python: a thread without the \
                     interpreter calls it",
                ));
            }
            let small_cache = small_cache.downgrade();
            core.trim_when_idle(after, move || {
                if let Some(small_cache) = small_cache.upgrade() {
                    small_cache.flush();
                }
            })?;
        }
        Ok(Self { core, is_host_memory: chosen.is_host_memory, small_cache, garbage, admission })
    }

    /// The most bytes that the pool may reserve.
    #[getter]
    fn limit(&self, py: Python<'_>) -> PyResult<u64> {
        detach(py, || self.core.limit()).map_err(|error| error.into_py_err(py))
    }

    /// Change the limit, up or down, while the pool is in use.
    ///
    /// Args:
    ///     limit: Bytes, or a text such as ``"1GiB"``.
    ///     trim: Give wholly free regions back first, if that is needed and enough. False by default.
    ///     limit_set_by: The setting that decided the limit, for reports; ``"set_limit"`` by default.
    ///
    /// Raises:
    ///     ValueError: The limit is out of range, or below the bytes that stay reserved. Nothing has changed then.
    #[pyo3(signature = (limit, *, trim = false, limit_set_by = "set_limit"))]
    fn set_limit(
        &self,
        py: Python<'_>,
        limit: &Bound<'_, PyAny>,
        trim: bool,
        limit_set_by: &str,
    ) -> PyResult<()> {
        let bytes = size_argument(limit, "limit")?;
        let set = detach(py, || self.flushed().set_limit(bytes, trim, limit_set_by));
        set.map(drop).map_err(|error| error.into_py_err(py))
    }

    /// Whether regions start at 2 MiB and double.
    #[getter]
    fn growth(&self, py: Python<'_>) -> PyResult<bool> {
        detach(py, || self.core.growth()).map_err(|error| error.into_py_err(py))
    }

    /// Turn growth on or off for later regions.
    ///
    /// Args:
    ///     growth: Without growth the next region has all that the limit leaves.
    #[pyo3(signature = (growth))]
    fn set_growth(&self, py: Python<'_>, growth: bool) -> PyResult<()> {
        detach(py, || self.core.set_growth(growth)).map_err(|error| error.into_py_err(py))
    }

    /// Whether the pool records the owner of each allocation: its thread's tag, or the line that requested it.
    #[getter]
    fn owner_tags(&self) -> bool {
        self.core.options().owner_tags
    }

    /// The split policy, ``"tensorflow"`` or ``"tight"``.
    #[getter]
    fn policy(&self) -> &'static str {
        self.core.options().policy.as_str()
    }

    /// The pool's name in reports.
    #[getter]
    fn name(&self) -> &str {
        &self.core.options().name
    }

    /// Whether guard mode is on, which finds writes outside of allocations and after a free.
    #[getter]
    fn guard(&self) -> bool {
        self.core.options().guard
    }

    /// Whether Python's garbage collector runs before a refusal.
    ///
    /// ``None`` means unless the program has disabled it.
    #[getter(collect_garbage)]
    fn when_to_collect(&self) -> Option<bool> {
        match self.garbage.when {
            When::Never => Some(false),
            When::Enabled => None,
            When::Always => Some(true),
        }
    }

    /// Allocate at least ``nbytes`` bytes.
    ///
    /// Args:
    ///     nbytes: Bytes, or a text such as ``"3MiB"``. Zero bytes give an allocation with address 0 and size 0.
    ///     alignment: What the address is a multiple of, in bytes: a power of two up to 4096, 256 by default. Above
    ///         256 the chunk is longer by up to the alignment.
    ///
    /// Raises:
    ///     OutOfMemoryError: No free chunk fits, and the limit or the source has no more.
    ///     MemoryDamageError: Guard mode found damage before; the next call goes on.
    ///     ValueError: A size or an alignment is out of range, or the pool is closed.
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

    /// Allocate at least ``nbytes`` bytes and return their address: the call with the least overhead.
    ///
    /// The caller keeps a reference to the pool and frees the address with ``free``.
    ///
    /// Args:
    ///     nbytes: Bytes, or a text such as ``"3MiB"``. Zero bytes give the address 0.
    ///
    /// Raises:
    ///     OutOfMemoryError: No free chunk fits, and the limit or the source has no more.
    ///     MemoryDamageError: Guard mode found damage before; the next call goes on.
    ///     ValueError: The size is out of range, or the pool is closed.
    #[pyo3(signature = (nbytes))]
    fn malloc(&self, py: Python<'_>, nbytes: &Bound<'_, PyAny>) -> PyResult<u64> {
        Ok(self.take(py, size_argument(nbytes, "nbytes")?, GRANULE)?.address)
    }

    /// Free the allocation that starts at ``address``.
    ///
    /// Args:
    ///     address: The result of ``malloc``, or the ``address`` of an allocation. 0 does nothing.
    ///
    /// Raises:
    ///     InvalidFreeError: No live allocation starts there. Nothing has changed.
    ///     BufferError: A buffer or an array over it is alive, or NumPy has an array's data there.
    ///     MemoryDamageError: Guard mode found damage; the memory was freed nevertheless.
    #[pyo3(signature = (address))]
    fn free(&self, py: Python<'_>, address: &Bound<'_, PyAny>) -> PyResult<()> {
        let address = address_argument(address)?;
        let freed = match self.flushed().try_free(address) {
            Ok(Some(())) => Ok(()),
            // Another thread holds the lock: wait without the interpreter's lock.
            Ok(None) => detach(py, || self.core.free(address)),
            Err(error) => Err(error),
        };
        freed.map_err(|error| error.into_py_err(py))
    }

    /// Return a copy of the pool's counters.
    fn stats(&self, py: Python<'_>) -> PyResult<PoolStats> {
        detach(py, || self.flushed().stats()).map(PoolStats).map_err(|error| error.into_py_err(py))
    }

    /// Set every ``peak_...`` counter to its current value; cumulative counters stay.
    fn reset_peaks(&self, py: Python<'_>) -> PyResult<()> {
        detach(py, || self.flushed().reset_peaks()).map_err(|error| error.into_py_err(py))
    }

    /// Return a copy of all regions and chunks, with the counters of the same moment.
    fn snapshot(&self, py: Python<'_>) -> PyResult<Snapshot> {
        let snapshot = detach(py, || self.flushed().snapshot()).map_err(|error| error.into_py_err(py))?;
        Ok(Snapshot(Arc::new(snapshot)))
    }

    /// Return whether a request would be served now, provided the source grants what the limit allows.
    ///
    /// Args:
    ///     nbytes: Bytes, or a text such as ``"3MiB"``. The answer is False for a closed pool, and for any number
    ///         that is too large.
    fn can_allocate(&self, py: Python<'_>, nbytes: &Bound<'_, PyAny>) -> PyResult<bool> {
        // A number above the range does not fit; a negative number is an error.
        let bytes = size_argument(nbytes, "nbytes").or_else(|error| {
            let is_number = error.is_instance_of::<PyValueError>(py);
            if is_number && nbytes.gt(u64::MAX).unwrap_or(false) { Ok(u64::MAX) } else { Err(error) }
        })?;
        detach(py, || self.flushed().can_allocate(bytes)).map_err(|error| error.into_py_err(py))
    }

    /// Explain whether a request would be served now, and if not, why and what would help.
    ///
    /// Args:
    ///     nbytes: Bytes, or a text such as ``"3MiB"``.
    ///
    /// Raises:
    ///     ValueError: The size is out of range, or the pool is closed.
    fn explain(&self, py: Python<'_>, nbytes: &Bound<'_, PyAny>) -> PyResult<Explanation> {
        let bytes = size_argument(nbytes, "nbytes")?;
        let refused = detach(py, || self.flushed().explain(bytes)).map_err(|error| error.into_py_err(py))?;
        Ok(Explanation(refused))
    }

    /// Return a context manager that counts what its block allocates, with an optional limit.
    ///
    /// Args:
    ///     name: The scope's name in reports.
    ///     limit: The most bytes that the scope may hold: a number, or a text such as ``"64MiB"``. ``None``
    ///         (default): no limit.
    ///     every_thread: Count the allocations of every thread that is in no scope of its own, instead of those of
    ///         this thread. False by default.
    #[pyo3(signature = (name, *, limit = None, every_thread = false))]
    fn scope(
        &self,
        name: &Bound<'_, PyAny>,
        limit: Option<&Bound<'_, PyAny>>,
        every_thread: bool,
    ) -> PyResult<Scope> {
        let Ok(name) = name.extract::<String>() else {
            let kind = name.get_type().name()?;
            return Err(PyTypeError::new_err(format!("name must be a text, such as 'step', not {kind}")));
        };
        let limit = limit.map(|limit| size_argument(limit, "limit")).transpose()?;
        Ok(Scope::new(Arc::clone(&self.core), self.small_cache.clone(), name, limit, every_thread))
    }

    /// Give every wholly free region back to the source, and return their bytes.
    ///
    /// Raises:
    ///     MemoryDamageError: Guard mode found damage in freed memory; the regions went back nevertheless.
    fn trim(&self, py: Python<'_>) -> PyResult<u64> {
        let released = detach(py, || self.flushed().trim()).map_err(|error| error.into_py_err(py))?;
        guard::raise_damage(py, &self.core)?;
        Ok(released)
    }

    /// Return the regions that a trim cannot give back, in address order, with what keeps them.
    fn kept_regions<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let kept = detach(py, || self.flushed().kept_regions()).map_err(|error| error.into_py_err(py))?;
        PyTuple::new(py, kept.into_iter().map(KeptRegion::from))
    }

    /// Refuse all further requests. Regions go back to the source when the last allocation is freed.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.shut(py)?;
        guard::raise_damage(py, &self.core)
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyResult<PyRef<'_, Self>> {
        // A request of zero bytes fails if the pool is closed.
        slf.take(slf.py(), 0, GRANULE)?;
        Ok(slf)
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        kind: Option<&Bound<'_, PyAny>>,
        _value: &Bound<'_, PyAny>,
        _trace: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        if self.core.is_inherited() {
            // In a forked child the end of a block closes nothing, and must not replace the exception that ends it.
            return Ok(());
        }
        self.shut(py)?;
        // The exception of the block comes first; the next call or the end of the program reports damage.
        if kind.is_some() { Ok(()) } else { guard::raise_damage(py, &self.core) }
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        detach(py, || self.describe())
    }
}

impl Pool {
    fn describe(&self) -> String {
        let Options { name, limit, growth, .. } = self.core.options();
        let (limit, growth) = (self.core.limit().unwrap_or(*limit), self.core.growth().unwrap_or(*growth));
        let growth = if growth { "on" } else { "off" };
        // A forked child has no figures; only the options are shown.
        let holds = self.flushed().stats().map_or_else(
            |_| "left behind by a fork".to_owned(),
            |stats| format!("{} in use, {} reserved", Bytes(stats.in_use), Bytes(stats.reserved)),
        );
        format!("<allotment.Pool {name:?}: limit {}, {holds}, growth {growth}>", Bytes(limit))
    }

    pub(crate) fn core(&self) -> &Arc<allotment::Pool> {
        &self.core
    }

    pub(crate) fn is_host_memory(&self) -> bool {
        self.is_host_memory
    }

    pub(crate) fn small_cache(&self) -> &PoolSmallCache {
        &self.small_cache
    }

    pub(crate) fn admission(&self) -> Option<&Arc<AdmissionControl>> {
        self.admission.as_ref()
    }

    /// Returns the pool after flushing its cache.
    fn flushed(&self) -> &allotment::Pool {
        self.small_cache.flush();
        &self.core
    }

    /// Closes the pool, and reports leaks in guard mode.
    fn shut(&self, py: Python<'_>) -> PyResult<()> {
        detach(py, || {
            self.flushed().close()?;
            guard::report_leaks(&self.core);
            Ok(())
        })
        .map_err(|error: Unusable| error.into_py_err(py))
    }

    /// Whether Python's garbage collector runs before a refusal.
    ///
    /// ``None`` means unless the program has disabled it.
    pub(crate) fn collect_garbage(&self) -> bool {
        self.garbage.collect(self.flushed())
    }
}

/// Warns of options without an effect.
fn warn_of_unused(py: Python<'_>, options: &Options) -> PyResult<()> {
    let warn = |text| PyErr::warn(py, &py.get_type::<PyUserWarning>(), text, 1);
    if options.quarantine.is_some() && !options.guard {
        warn(c"quarantine= has no effect without guard mode: pass guard=True, or set ALLOTMENT_GUARD=1")?;
    }
    if options.fragmentation_fraction != 0.0 && options.policy == Policy::Tight {
        warn(c"fragmentation_fraction= has no effect with policy='tight', which splits off every remainder")?;
    }
    Ok(())
}

/// Converts the idle time; at least a millisecond, as a thread wakes up for it each time.
fn idle_argument(seconds: f64) -> PyResult<Duration> {
    let time = Duration::try_from_secs_f64(seconds).ok().filter(|time| *time >= Duration::from_millis(1));
    time.filter(|time| *time <= MAX_WAIT).ok_or_else(|| {
        let most = MAX_WAIT.as_secs();
        PyValueError::new_err(format!("idle_trim_seconds {seconds} is not between 0.001 and {most}"))
    })
}

fn default_name() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    format!("pool-{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

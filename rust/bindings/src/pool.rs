//! The `Pool` class.

use std::sync::Arc;
use std::time::Duration;

use allotment::{GRANULE, MAX_WAIT, Options, Policy, Unusable};
use allotment_cuda::StreamOrder;
use allotment_host::AdmissionControl;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::error::IntoPyErr;
use crate::guard::{self, ReportingSource};
use crate::guests::opencl::OpenClUse;
use crate::interpreter::detach;
use crate::interpreter::environment;
use crate::interpreter::garbage::{Garbage, When};
use crate::numpy::PoolSmallCache;
use crate::pool::policy::policy_argument;
use crate::size::size_argument;
use crate::source;

use options::{default_name, idle_argument, plan_argument, warn_of_unused};

mod options;
mod pausing;
pub(crate) mod policy;
mod queries;
mod recording;
pub(crate) mod registry;
mod requests;
pub(crate) mod scope;
mod settings;
mod streams;

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
///         with no memory behind them. ``"cuda:0"``: memory of a GPU, by the CUDA driver's index, in regions of
///         ``cuMemAlloc``. ``"cuda-vmm:0"``: the same in regions that the driver maps one after the other, so that the
///         pool grows in place; such memory cannot be exported to other processes. The result of
///         ``integrations.opencl.source``: buffers of an OpenCL context. The result of
///         ``integrations.opencl.shared_memory``: memory that the host and the devices of a context share. Any other
///         object: a ``Source``.
///     trim_on_oom: True (default): before a refusal, give wholly free regions back to the source and grow again.
///     joins_regions: Whether a region that starts where another ends is joined to it. ``None`` (default): as the
///         source says.
///     wait_seconds: Seconds that a refused request waits for another thread's free; 0 by default. What is freed goes
///         to the request that has waited longest and fits. Requests of NumPy and of other runtimes never wait.
///     fragmentation_fraction: Under the policy ``"tensorflow"``, split off a remainder from this share of the
///         limit on, between 0 and 1. 0 (default) means from 128 MiB on.
///     policy: ``"tensorflow"`` (default): split a chunk if it is at least twice as large as the request or leaves
///         128 MiB. ``"tight"``: split off every remainder.
///     name: The pool's name in reports; ``pool-1``, ``pool-2``, ... by default.
///     owner_tags: Record for each allocation the operation or the line of Python that requested it. ``None``
///         (default): as the environment variable ``ALLOTMENT_OWNER_TAGS`` says (0 or 1, 0 if unset).
///     thread_caches: Let each thread keep up to 7 MiB of small chunks for its next requests, so that most
///         allocations and frees of up to 32 KiB need no lock. False by default: decisions differ from TensorFlow's
///         then. What is kept is free for every request: it is given back before a refusal, and by each trim,
///         snapshot and scope. Guard mode and ``owner_tags`` leave the caches unused.
///     elastic: Reserve several times the limit in addresses, and have memory for the pages in use only. Where memory
///         is short, free pages give theirs to those that need it: a request is refused only if the pages of all
///         allocations and its own are above the limit. False by default: decisions differ from TensorFlow's then.
///         ``thread_caches`` has no effect beside it, and guard mode is an error.
///     page_size: The page size of an elastic pool: a power of two, from 4 KiB on in host memory. ``None`` (default):
///         as the source says, 2 MiB in host memory.
///     plan: A ``Plan`` to follow, as ``allotment.trace.plan`` makes it. Its arena is one region, reserved at the first
///         request. The requests of the pool are taken for those of the plan in their order, which begins again at its
///         end: each gets its planned place. One that is not in the plan, or has its place taken, gets the best fit.
///         ``stats().num_planned`` counts those that got their place. ``None`` (default): no plan. Guard mode,
///         ``thread_caches`` and ``elastic`` beside it are errors.
///     record_events: Keep this many of the last events from the pool's first one on, in ``pool.recording``: see
///         ``record()``. ``None`` (default): none.
///     idle_trim_seconds: Give wholly free regions back when the pool was not used for this many seconds. ``None``
///         (default): never. One thread does so for all pools; it calls no source in Python, which is an error.
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
///     ValueError: An option is out of range; the text names it, its value and the range. Or there is no such GPU.
///     RuntimeError: There is no CUDA driver, or it failed.
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
/// too. An exception of a source, or an answer of a wrong type, is the cause of an ``OutOfMemoryError``.
///
/// In guard mode each request takes at least 512 bytes more, for a red zone on both sides. Damage raises
/// ``MemoryDamageError`` at the free, or at the next call that allocates, frees, trims or closes. The logger
/// ``allotment.guard`` gets the damage that no call could report, and the allocations that are live when the pool
/// is closed or collected or the interpreter ends.
#[pyclass(frozen, weakref, module = "allotment")]
pub(crate) struct Pool {
    core: Arc<allotment::Pool>,
    is_host_memory: bool,
    /// The order of the streams that share its memory, for memory of a CUDA device.
    streams: Option<Arc<StreamOrder>>,
    /// Flushed before every query of the pool.
    small_cache: PoolSmallCache,
    garbage: Garbage,
    /// Admission control, for memory shared with the rest of the machine, such as that of a simulated GPU.
    admission: Option<Arc<AdmissionControl>>,
    /// The ring of `record_events`. It refers to the pool weakly.
    recording: Option<Py<PyAny>>,
    opencl: OpenClUse,
}

#[pymethods]
impl Pool {
    #[new]
    #[pyo3(signature = (limit, *, growth = true, source = None, trim_on_oom = true, joins_regions = None,
        wait_seconds = 0.0, fragmentation_fraction = 0.0, policy = None, name = None, owner_tags = None,
        thread_caches = false, elastic = false, page_size = None, plan = None, record_events = None, idle_trim_seconds = None,
        limit_set_by = None, guard = None, quarantine = None, collect_garbage = None),
        text_signature = "(limit, *, growth=True, source='host', trim_on_oom=True, joins_regions=None, \
        wait_seconds=0.0, fragmentation_fraction=0.0, policy='tensorflow', name=None, owner_tags=None, \
        thread_caches=False, elastic=False, page_size=None, plan=None, record_events=None, idle_trim_seconds=None, \
        limit_set_by='limit', guard=None, quarantine=None, \
        collect_garbage=None)")]
    #[expect(
        clippy::too_many_arguments,
        clippy::fn_params_excessive_bools,
        reason = "one for each option, by name"
    )]
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
        thread_caches: bool,
        elastic: bool,
        page_size: Option<&Bound<'_, PyAny>>,
        plan: Option<&Bound<'_, PyAny>>,
        record_events: Option<&Bound<'_, PyAny>>,
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
        let mut options = Options::new(size_argument(limit, "limit")?)
            .growth(growth)
            .trim_on_oom(trim_on_oom)
            .joins_regions(joins_regions)
            .wait(wait)
            .fragmentation_fraction(fragmentation_fraction)
            .policy(policy.map_or(Ok(Policy::default()), policy_argument)?)
            .name(name.unwrap_or_else(default_name))
            .owner_tags(owner_tags.map_or_else(|| environment::switch(py, "ALLOTMENT_OWNER_TAGS"), Ok)?)
            .thread_caches(thread_caches)
            .elastic(elastic)
            .guard(guard::is_enabled(py, guard, chosen.is_host_memory, elastic)?);
        options.page_size = page_size.map(|bytes| size_argument(bytes, "page_size")).transpose()?;
        options.quarantine = quarantine.map(|bytes| size_argument(bytes, "quarantine")).transpose()?;
        options.plan = plan.map(plan_argument).transpose()?;
        warn_of_unused(py, &options)?;
        let options = match limit_set_by {
            Some(limit_set_by) => options.limit_set_by(limit_set_by),
            None => options,
        };
        let idle = idle_trim_seconds.map(idle_argument).transpose()?;
        let garbage = Garbage::new(When::choose(py, collect_garbage)?);
        let core = allotment::Pool::new(ReportingSource(chosen.source), options);
        let core = Arc::new(core.map_err(|error| error.into_py_err(py))?);
        if let Some(siblings) = &chosen.siblings {
            core.join(siblings);
        }
        let small_cache = PoolSmallCache::default();
        let admission = chosen.within_machine.then(|| Arc::new(AdmissionControl::new(&core)));
        recording::start_from_environment(py)?;
        registry::register(&core, &small_cache, admission.as_ref());
        crate::recording::join_new(&core);
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
        let recording = record_events.map(|events| recording::start_ring(py, &core, events)).transpose()?;
        let (is_host_memory, streams) = (chosen.is_host_memory, chosen.streams);
        let opencl = OpenClUse::new(chosen.opencl);
        Ok(Self { core, is_host_memory, streams, small_cache, garbage, admission, recording, opencl })
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
}

impl Pool {
    pub(crate) fn core(&self) -> &Arc<allotment::Pool> {
        &self.core
    }

    pub(crate) fn is_host_memory(&self) -> bool {
        self.is_host_memory
    }

    pub(crate) fn small_cache(&self) -> &PoolSmallCache {
        &self.small_cache
    }

    pub(crate) fn opencl(&self) -> &OpenClUse {
        &self.opencl
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

//! The allocator of buffers: a request of the pool, a buffer over it, and the object that Python gets.

use std::ptr;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use allotment::bindings::PoolForBindings as _;
use allotment::source::ObjectTable;
use allotment::{AllocError, GRANULE, Request};
use allotment_opencl::{Buffer, Context, OpenCl, OpenClError, QueueUse};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;

use super::{OpenClUse, retain_context, retain_queue};
use crate::error::IntoPyErr;
use crate::held;
use crate::interpreter::detach;
use crate::pool::Pool;
use crate::size::whole_number;
use crate::tag;

/// The owner of buffers in pools with `owner_tags`.
const TAG: &str = "opencl";

/// How long a refusal waits for the driver to destroy buffers with commands that are done.
const DESTRUCTION: Duration = Duration::from_millis(2);

/// The memory that buffers are made in.
enum Place {
    /// In the buffers that are the pool's regions: a part of one.
    Regions(ObjectTable<Arc<Buffer>>),
    /// In memory of this process, on which the devices of the context work.
    Host(Context),
}

/// Makes buffers of an OpenCL context in a pool's memory.
///
/// Args:
///     pool: A pool over the context, or over memory of this process.
///     library: As for ``OpenClSource``.
///     context: The handle of the context.
///     queue: The handle of the queue to which the program adds the commands that use the buffers; ``None`` if it is
///         not known.
///     alignment: What offsets of buffers are multiples of, in bytes: a power of two.
///     in_host_memory: Whether the devices of the context work in memory of this process.
///     wrap: Called with the handle of a new buffer and False; returns what ``allocate`` returns.
///     refusal: Called with the name of a pool that refuses and its error; returns the exception to raise.
///
/// Raises:
///     ValueError: The pool's memory is other memory, or that of another context.
///     RuntimeError: As for ``OpenClSource``.
#[pyclass(frozen, module = "allotment._core")]
pub(crate) struct OpenClAllocator {
    pool: Py<Pool>,
    place: Place,
    owner: Arc<Owner>,
    alignment: u64,
    wrap: Py<PyAny>,
    refusal: Py<PyAny>,
    tag: Arc<str>,
}

/// The pool that the memory of a buffer returns to: one reference for each buffer.
struct Owner {
    pool: Arc<allotment::Pool>,
    queue: Arc<QueueUse>,
}

#[pymethods]
impl OpenClAllocator {
    #[new]
    #[expect(clippy::too_many_arguments, reason = "called from one place")]
    fn new(
        py: Python<'_>,
        pool: Py<Pool>,
        library: &str,
        context: usize,
        queue: Option<usize>,
        alignment: u64,
        in_host_memory: bool,
        wrap: Py<PyAny>,
        refusal: Py<PyAny>,
    ) -> PyResult<Self> {
        let (place, owner) = {
            let pool = pool.get();
            let OpenClUse { regions, order } = pool.opencl();
            let opencl = || OpenCl::open(library).map_err(|error| error.into_py_err(py));
            let (opencl, place) = match regions {
                Some(regions) if regions.context.handle().addr() == context => {
                    (regions.context.opencl(), Place::Regions(regions.buffers.clone()))
                }
                Some(_) => {
                    return Err(PyValueError::new_err(
                        "the pool's memory is that of another OpenCL context: make a pool over this one",
                    ));
                }
                None if pool.is_host_memory() && !in_host_memory => {
                    return Err(PyValueError::new_err(
                        "a device of the context has memory of its own, and the pool is over memory of this process: \
                         make one with source=allotment.integrations.opencl.source(context)",
                    ));
                }
                None if pool.is_host_memory() => {
                    let opencl = opencl()?;
                    let context = retain_context(opencl, context).map_err(|error| error.into_py_err(py))?;
                    (opencl, Place::Host(context))
                }
                None => {
                    return Err(PyValueError::new_err(
                        "OpenCL needs memory of the context or of this process: the pool must have \
                         source=allotment.integrations.opencl.source(context), 'host' or HostMemory",
                    ));
                }
            };
            let queue = queue.map(|queue| retain_queue(opencl, queue)).transpose();
            let queue = order.join(queue.map_err(|error| error.into_py_err(py))?);
            (place, Arc::new(Owner { pool: Arc::clone(pool.core()), queue }))
        };
        let (alignment, tag) = (alignment.max(GRANULE), Arc::from(TAG));
        Ok(Self { pool, place, owner, alignment, wrap, refusal, tag })
    }

    /// Make a buffer of ``nbytes`` bytes; ``None`` for zero bytes.
    ///
    /// Its memory goes back to the pool when OpenCL destroys it. Before a refusal, the pool waits for the commands of
    /// the queue and collects Python's garbage.
    ///
    /// Raises:
    ///     ValueError: ``nbytes`` is out of range, or the pool is closed.
    ///     RuntimeError: OpenCL fails; or the pool was created before a fork, in the parent process.
    ///
    /// A refusal is the exception that ``refusal`` returns.
    fn allocate<'py>(
        &self,
        py: Python<'py>,
        nbytes: &Bound<'py, PyAny>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let bytes = whole_number(nbytes, "nbytes")?;
        if bytes == 0 {
            return Ok(None);
        }
        let buffer = self.buffer(py, bytes)?;
        let made = self.wrapped(py, &buffer)?;
        // The object releases it from now on.
        let _ = buffer.into_handle();
        Ok(Some(made))
    }
}

impl OpenClAllocator {
    /// Calls `wrap` without a tuple of the arguments.
    #[inline]
    fn wrapped<'py>(&self, py: Python<'py>, buffer: &Buffer) -> PyResult<Bound<'py, PyAny>> {
        let handle = buffer.handle().addr().into_pyobject(py)?;
        let end = ptr::null_mut::<ffi::PyObject>();
        // SAFETY: the arguments are objects, up to a null; the result is a new reference, or null with an exception.
        unsafe {
            let made =
                ffi::PyObject_CallFunctionObjArgs(self.wrap.as_ptr(), handle.as_ptr(), ffi::Py_False(), end);
            Bound::from_owned_ptr_or_err(py, made)
        }
    }

    fn buffer(&self, py: Python<'_>, bytes: u64) -> PyResult<Buffer> {
        let pool = self.pool.get();
        let core = pool.core();
        let request = Request::new(bytes).align(self.alignment);
        let allocate = || held::allocate(core, pool.admission(), request, || self.make_room(py));
        let allocated = if core.options().owner_tags {
            tag::with_default(&self.tag, allocate)
        } else if tag::stack::are_recorded() {
            tag::stack::with_stack(allocate)
        } else {
            allocate()
        };
        let address = match allocated {
            Some(Ok(allocation)) => allocation.address,
            Some(Err(error)) => return Err(self.refuse(py, error)),
            None => {
                let name = &core.options().name;
                return Err(PyRuntimeError::new_err(format!("a fault of allotment: pool {name:?} panicked")));
            }
        };
        self.make(py, address, bytes).map_err(|error| {
            let _ = held::free(core, held::pointer(address));
            error.into_py_err(py)
        })
    }

    /// Makes the buffer of an allocation.
    #[inline]
    fn make(&self, py: Python<'_>, address: u64, bytes: u64) -> Result<Buffer, OpenClError> {
        let pool = self.pool.get();
        let order = &pool.opencl().order;
        if order.is_needed() {
            detach(py, || order.before_use(&self.owner.queue))?;
        }
        let owner = Arc::clone(&self.owner);
        let destroyed = move || {
            owner.queue.before_free();
            // In a forked child, which owns nothing, it does nothing.
            let _ = held::free(&owner.pool, held::pointer(address));
        };
        // A pool's numbers are lengths of objects of this process.
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        match &self.place {
            Place::Regions(buffers) => {
                let (parent, offset) = buffers.locate(address).unwrap_or_else(|| unreachable!("it is live"));
                parent.sub_buffer(usize::try_from(offset).unwrap_or(usize::MAX), bytes, destroyed)
            }
            // SAFETY: the allocation is memory of this process, and `destroyed` frees it.
            Place::Host(context) => unsafe { context.host_buffer(held::pointer(address), bytes, destroyed) },
        }
    }

    /// Frees what waits for the queue's commands or for the garbage collector; returns whether that was anything.
    #[cold]
    fn make_room(&self, py: Python<'_>) -> bool {
        let pool = self.pool.get();
        pool.small_cache().flush();
        let before = pool.core().activity();
        // OpenCL may destroy a buffer only when the commands that use it are done, and a moment later.
        if let Some(queue) = self.owner.queue.queue() {
            detach(py, || {
                let end = queue.finish().map(|()| Instant::now() + DESTRUCTION);
                while end.as_ref().is_ok_and(|&end| pool.core().activity() == before && Instant::now() < end)
                {
                    thread::sleep(DESTRUCTION / 10);
                }
            });
        }
        let collected = detach(py, || pool.collect_garbage());
        collected || pool.core().activity() != before
    }

    #[cold]
    fn refuse(&self, py: Python<'_>, error: AllocError) -> PyErr {
        let is_refusal = matches!(
            error,
            AllocError::OutOfMemory(_) | AllocError::SourceFailed { .. } | AllocError::TooLarge { .. }
        );
        let error = error.into_py_err(py);
        if !is_refusal {
            return error;
        }
        let pool = &self.pool.get().core().options().name;
        match self.refusal.bind(py).call1((pool, error.value(py))) {
            Ok(raised) => PyErr::from_value(raised),
            Err(failed) => failed,
        }
    }
}

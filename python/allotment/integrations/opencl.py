"""Puts buffers of OpenCL into pools: arrays of pyopencl, on any device that OpenCL lists.

::

    from allotment.integrations import opencl as pooled

    pool = allotment.Pool("1GiB", source=pooled.source(context))    # memory of the context's devices
    allocate = pooled.allocator(pool, queue)
    x = pyopencl.array.to_device(queue, values, allocator=allocate)

    with pooled.use(pool):          # arrays that this thread makes without an allocator
        y = pyopencl.array.zeros(queue, 1000, "float32")
    pooled.install(pool)            # those of every thread

    os.environ["ALLOTMENT_OPENCL_DEVICES"] = "0"    # first of all: GPU:0 is a device of OpenCL
    with tf.device("GPU:0"):
        z = tf.zeros(1000)
    kernel.set_arg(0, pyopencl.SVM(numpy.from_dlpack(z)))    # of a program of pooled.context("GPU:0")

In a pool over ``source(context)`` each region is one buffer, and an array is a part of it, a sub-buffer. A pool over
host memory serves devices that work in the host's memory, such as PoCL's and integrated GPUs: an array is a buffer over
the pool's bytes, so one pool can serve NumPy, ONNX Runtime and OpenCL.

Fine-grained shared virtual memory is memory of a device that the host uses by the same addresses. A pool over
``shared_memory(context, capacity)`` serves NumPy, other runtimes and kernels, which take ``pyopencl.SVM(array)`` as an
argument. Logical devices that are devices of OpenCL have such pools. The program waits for the commands that use such
memory before it drops or reads it.

**When memory goes back.** When OpenCL destroys the buffer: at the death of its last reference, on any thread, also
after ``uninstall()``. Commands that were added to the queue before that are safe: commands that are added later and use
the same memory run behind them. The rule holds for the queue for which an array was made. Another queue that gets the
memory next waits on the device for the commands of that queue, and the program waits for nothing; if it is a queue of
another context, the program waits for them. If you use an array in another queue than its own, wait for those commands
before you drop it, as with pyopencl's own ``MemoryPool``; so, too, for an array that was made for a context, without a
queue.

**Running out of memory.** pyopencl's ``MemoryError`` has the pool's report as its text and the pool's error as its
cause. Before that the queue's commands are awaited and Python's garbage is collected.

**Limits.** Addresses of a pool over ``source(context)`` are numbers of its own: its memory is used through buffers of
``allocator`` alone. The parts of a part do not exist in OpenCL: ``buffer[a:b]`` and ``get_sub_region`` fail with
buffers in such a pool; views of arrays have offsets and do not need them. ``install`` and ``use`` apply to
``pyopencl.array``: ``pyopencl.Buffer(context, ...)`` stays where it is. In pools with ``owner_tags`` the owner is
``opencl``, or the thread's tag. In a forked child OpenCL cannot be used.

Tested with pyopencl 2026.1 and PoCL, on a CPU. It has not run on a GPU yet.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from allotment._core import OpenClAllocator, OpenClSharedMemory, OpenClSource, Pool, show_value
from allotment.devices.device_tuples import LogicalDevice
from allotment.devices.opencl_devices import library_path, pyopencl
from allotment.integrations import opencl_arrays
from allotment.integrations.opencl_arrays import Arrays
from allotment.integrations.shared.block import Block
from allotment.integrations.shared.pool_argument import as_device, as_pool
from allotment.integrations.shared.process_wide import ProcessWide

if TYPE_CHECKING:
    from pyopencl import Buffer, CommandQueue, Context

    #: A function that pyopencl's arrays accept as their allocator.
    Allocate = Callable[[int], Buffer]


def source(context: "Context | CommandQueue") -> OpenClSource:
    """Return memory of an OpenCL context as a source: ``Pool(limit, source=source(context))``.

    Each region is a buffer of the context. The device has its memory when the region is made; a region that is longer
    than ``CL_DEVICE_MAX_MEM_ALLOC_SIZE``, or for which there is no memory, is refused.

    Args:
        context: A context of pyopencl, or a queue of one. Of a context with several devices, memory is on the device of
            the queue, or on the first one, until another device uses it.

    Raises:
        ImportError: pyopencl cannot be imported.
        TypeError: It is neither a context nor a queue.
        RuntimeError: OpenCL fails.
    """
    cl = pyopencl()
    context, queue = _context_and_queue(cl, context)
    queue = queue or cl.CommandQueue(context)
    return OpenClSource(library_path(cl), context.int_ptr, queue.int_ptr)


def shared_memory(context: "Context", capacity: int | str) -> OpenClSharedMemory:
    """Return memory that a context's devices share with the host: ``Pool(limit, source=shared_memory(context, size))``.

    Its pools share its capacity. A region that is longer than ``CL_DEVICE_MAX_MEM_ALLOC_SIZE`` is refused.

    Args:
        context: A context of pyopencl with devices that have fine-grained shared virtual memory, such as PoCL's and
            many integrated GPUs.
        capacity: The most bytes that pools may reserve from it together: a number, or a text such as ``"8GiB"``.

    Raises:
        ImportError: pyopencl cannot be imported.
        TypeError: It is not a context, or ``capacity`` is not a size.
        ValueError: ``capacity`` is out of range.
        RuntimeError: OpenCL fails, or a device has no such memory.
    """
    cl = pyopencl()
    if not isinstance(context, cl.Context):
        raise TypeError(f"expected a pyopencl.Context, not {type(context).__name__}")
    # Memory of a CPU is the machine's, which OpenCL promises without having it.
    is_cpu = any(device.type & cl.device_type.CPU for device in context.devices)
    return OpenClSharedMemory(library_path(cl), context.int_ptr, capacity, within_machine=is_cpu)


def context(device: LogicalDevice | str) -> "Context":
    """Return the context of a logical device that is a device of OpenCL, for the program's queues and kernels.

    Args:
        device: A logical device or its name, such as ``"GPU:0"``.

    Raises:
        TypeError: It is neither a device nor a text.
        ValueError: It does not exist, or is no device of OpenCL.
    """
    gpu = as_device(device).physical.gpu
    if gpu is None or gpu.opencl is None:
        raise ValueError(
            f"{show_value(device)} is no device of OpenCL. ALLOTMENT_OPENCL_DEVICES=0, set before the first question "
            "about devices, makes one GPU:0."
        )
    made: Context = gpu.opencl.context()
    return made


def allocator(pool_or_device: Pool | LogicalDevice | str, queue: "CommandQueue | Context") -> "Allocate":
    """Return a function that makes buffers in a pool, for the argument ``allocator`` of pyopencl's arrays.

    ``function(nbytes)`` returns a ``pyopencl.Buffer`` of that many bytes, and ``None`` for zero bytes.

    Args:
        pool_or_device: A pool over ``source(context)`` or over host memory, or a logical device that has one, or its
            name, such as "/GPU:0".
        queue: The queue of the commands that use the buffers. A context: they are not known, and the program waits for
            them before it drops a buffer.

    Raises:
        ImportError: pyopencl cannot be imported.
        TypeError: An argument has another type.
        ValueError: The device does not exist or has no pool; or the pool's memory is neither that of the context nor
            memory of this process, or the devices do not work in the host's memory.
        RuntimeError: OpenCL fails; or the pool was created before a fork, in the parent process.
    """
    cl = pyopencl()
    context, known_queue = _context_and_queue(cl, queue)
    return _make(cl, as_pool(pool_or_device), context, known_queue)


def install(pool_or_device: Pool | LogicalDevice | str) -> None:
    """Put arrays of pyopencl that are made without an allocator from now on into a pool, on any thread.

    A pool over ``source(context)`` serves the arrays of that context, and a pool over host memory those of all contexts
    with devices that work in it. Arrays of other contexts get their memory as before.

    Args:
        pool_or_device: A pool, a logical device or its name, as for ``allocator``.

    Raises:
        ImportError: pyopencl cannot be imported.
        TypeError: ``pool_or_device`` is neither a pool nor a device.
        ValueError: The device does not exist or has no pool.
        RuntimeError: A pool is installed already; or the pool was created before a fork, in the parent process.
    """
    _installed.install(_Arrays(pyopencl(), as_pool(pool_or_device)))


def use(pool_or_device: Pool | LogicalDevice | str) -> Block:
    """Return a context manager that puts arrays of pyopencl that are made without an allocator into a pool.

    Blocks nest, and apply to their thread.

    Args:
        pool_or_device: A pool, a logical device or its name, as for ``install``.

    Raises:
        ImportError: pyopencl cannot be imported.
        TypeError: ``pool_or_device`` is neither a pool nor a device.
        ValueError: The device does not exist or has no pool.
        RuntimeError: The pool was created before a fork, in the parent process.
    """
    arrays = _Arrays(pyopencl(), as_pool(pool_or_device))
    return Block(lambda: opencl_arrays.serve_thread(arrays))


class _Arrays(Arrays):
    """The memory of arrays that are made without an allocator."""

    def __init__(self, cl: Any, pool: Pool) -> None:
        self._cl: Final = cl
        self._pool: Final = pool
        #: By the handles of a context and a queue, which the allocators retain.
        self._allocators: Final[dict[tuple[int, int | None], Allocate]] = {}

    def allocator(self, context: Any, queue: Any) -> "Allocate | None":
        """Return the allocator for an array of a queue, or of a context without a queue; ``None``: as without us."""
        key = (context.int_ptr, queue.int_ptr if queue is not None else None)
        known = self._allocators.get(key)
        if known is None:
            try:
                known = self._allocators[key] = _make(self._cl, self._pool, context, queue)
            except ValueError:
                # Not kept: OpenCL may give the handles of a context that is gone to another one.
                return None
        return known


def _make(cl: Any, pool: Pool, context: Any, queue: Any) -> "Allocate":
    """Make the allocator of buffers for a context over a pool."""
    # The offset of a part in its region, in bits in OpenCL; the largest that a device of the context needs.
    alignment = max(device.mem_base_addr_align // 8 for device in context.devices)
    handle = None if queue is None else queue.int_ptr
    in_host_memory = all(_works_in_host_memory(cl, device) for device in context.devices)
    made = OpenClAllocator(
        pool,
        library_path(cl),
        context.int_ptr,
        handle,
        alignment=alignment,
        in_host_memory=in_host_memory,
        wrap=cl.Buffer.from_int_ptr,
        refusal=_refusal,
    )
    return made.allocate


def _works_in_host_memory(cl: Any, device: Any) -> bool:
    try:
        return bool(device.host_unified_memory)
    except cl.Error:  # OpenCL 2 calls the question outdated
        return False


def _refusal(pool: str, error: Exception) -> Exception:
    """Return pyopencl's exception for a refusal of a pool."""
    import pyopencl as cl

    text = f"pool '{pool}': {error}"
    code = cl.status_code.MEM_OBJECT_ALLOCATION_FAILURE
    try:
        # pyopencl's exceptions read `code` and `routine` from this record.
        record: Any = cl._cl._ErrorRecord(msg=text, code=code, routine="allotment")
    except (AttributeError, TypeError):
        record = text
    refusal = cl.MemoryError(record)
    refusal.__cause__ = error
    return refusal


def _context_and_queue(cl: Any, given: Any) -> tuple[Any, Any]:
    if isinstance(given, cl.CommandQueue):
        return given.context, given
    if isinstance(given, cl.Context):
        return given, None
    raise TypeError(f"expected a pyopencl.Context or a pyopencl.CommandQueue, not {type(given).__name__}")


_installed: "Final[ProcessWide[Arrays]]" = ProcessWide("OpenCL", opencl_arrays.serve_process)
uninstall: Final = _installed.uninstall

__all__ = ["allocator", "context", "install", "shared_memory", "source", "uninstall", "use"]

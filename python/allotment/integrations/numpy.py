"""Puts the data of NumPy arrays into a pool, through NumPy's API for memory handlers (NEP 49).

::

    from allotment.integrations import numpy as pooled

    with pooled.use(pool):      # arrays created in this block have their data in the pool
        c = a + b
    pooled.install(pool, process_wide=True)     # from here on the arrays of every thread have

An array's data returns to the pool when the array dies: on any thread, at any time, after ``uninstall()`` and at the
end of the process. The pool lives until then. Views, ``memmap`` and ``frombuffer`` own no data. Scalars and the
internal buffers of LAPACK and BLAS do not use memory handlers. No Python code runs per array.

**Which arrays.** ``use`` and ``install`` apply to one context (of ``contextvars``), as NumPy's own API does.

In the pool:
    arrays of the same thread, of ``asyncio`` tasks created in it, of ``asyncio.to_thread``; of
    ``copy_context().run(...)`` on any thread; of a thread pool with ``initializer=install, initargs=(pool,)``.
Not in the pool:
    arrays of a ``threading.Thread`` or a plain thread pool, unless Python lets threads inherit the context, as 3.14
    without a GIL does; of the tasks of a Dask worker, even if a plugin of the worker called ``install``.

With ``process_wide=True`` the handler applies to every existing and future thread without a handler of its own; ``use``
still overrides it. NumPy has no API for that: ``install`` replaces the functions in NumPy's default handler. This was
tested with certain versions of NumPy; ``install`` raises an error with others. NumPy's own functions still free older
arrays. ``uninstall()`` ends it for new arrays; the pool stays alive until the process ends, as its data may be live.

**Statistics.** A cache keeps some data of dead arrays of up to 1,032 bytes for later arrays. Every call of the pool
empties the cache first. The pool's peaks may include cached data; ``num_allocs`` does not count arrays from the cache.

**Running out of memory.** NumPy raises its ``MemoryError``, and the pool keeps a report of that moment. The report
becomes a note of the error (``__notes__``) when the error leaves a ``use`` block, or when ``uninstall()`` runs in a
``finally``. While a handler is installed, ``sys.excepthook`` and ``threading.excepthook`` print the report with an
uncaught error and then call the former hooks. A program that catches the error calls ``take_refusal()``. A closed pool
refuses in the same manner, and its report says so. A request of NumPy's neither waits for a free nor collects garbage
first, whatever the pool's options: NumPy may hold the interpreter that another thread needs for its free.

**Ownership.** The array owns its data: ``pool.free(array.ctypes.data)`` is a ``BufferError``. In a pool with
``owner_tags`` the owner is the innermost source line outside NumPy's own files. ``tracemalloc`` counts the data in the
domain ``numpy.lib.tracemalloc_domain``, because NumPy reports the data of any handler. ``tracemalloc`` does not count
the memory of ``Pool.allocate`` and ``Pool.malloc``, and counts a refused request, at address 0, until the next refusal:
NumPy reports that, too, with any handler.

**In a forked child** the pool belongs to the parent: new arrays get NumPy's own memory, and the parent's arrays stay
readable and writable, but their data is never freed. A thread's end affects only its own context. NumPy and this
package work in the main interpreter only.

**When it pays.** For arrays of 32 MiB and more, and for expressions with many temporaries: the pool keeps their pages
instead of returning them to the system with every array, and uses huge pages (``benches/README.md`` has measurements).
If you need only that, and can start a process for it, glibc's tuning is enough:
``GLIBC_TUNABLES=glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold=68719476736:glibc.malloc.hugetlb=1``. It affects
the whole process and has no limit, no statistics and no trim. Untouched ``np.zeros`` takes no physical memory, whether
in new pages or in free pages that were never written to.
"""

import contextvars
import os
import sys
import threading
from types import TracebackType
from typing import Any, Final, NamedTuple

import numpy as np

from allotment._core import ArrayMemory, Pool
from allotment.devices.device_tuples import LogicalDevice
from allotment.integrations.numpy_refusals import add_report, uncaught
from allotment.integrations.shared.pool_argument import as_pool

#: NumPy versions that ``process_wide`` was tested with: from the first to before the second.
_TESTED: Final = ((2, 0), (2, 6))


class _Layer(NamedTuple):
    """A handler installed in a context, with the former handler."""

    memory: ArrayMemory
    #: The former handler, as NumPy returned it.
    former: object
    #: The block that installed the handler; ``None`` for ``install``.
    block: "use | None"


#: The handlers installed in this context, the innermost last. Copied with the context, as NumPy's own variable is.
_layers: Final[contextvars.ContextVar[tuple[_Layer, ...]]] = contextvars.ContextVar("layers", default=())


#: Held while a thread installs a handler process-wide and checks it with an array, and while a thread ends it: the
#: check must not meet another thread's handler. Re-entrant: the array may make Python collect, and finalisers may
#: uninstall.
_process_wide = threading.RLock()


def _renew_lock() -> None:
    global _process_wide
    # A thread that a forked child does not have may hold it.
    _process_wide = threading.RLock()


os.register_at_fork(after_in_child=_renew_lock)


def install(pool_or_device: Pool | LogicalDevice | str, process_wide: bool = False) -> None:
    """Put the data of NumPy arrays created from now on in this context into a pool.

    Args:
        pool_or_device: A pool over host memory, or a logical device that has one, or its name, such as "/GPU:0".
        process_wide: Whether to apply to every thread and context without a handler of its own.

    Raises:
        TypeError: ``pool_or_device`` is neither a pool nor a device.
        ValueError: The device does not exist or has no pool; or the pool's memory is not memory of this process.
        MemoryError: The pool has no memory for a first array. The cause is the pool's error.
        RuntimeError: A handler is installed already; or NumPy ignores the handler; or, process-wide, this version of
            NumPy was not tested; or the pool was created before a fork, in the parent process.

    Example::

        pool = allotment.Pool(limit="1GiB")
        install(pool)
        x = numpy.ones(1_000_000)   # its 8 MB are in the pool
        uninstall()
    """
    memory = _memory(pool_or_device)
    if process_wide:
        _install_process_wide(memory)
        uncaught.add()
        return
    layers = _layers.get()
    if layers and layers[-1].block is None:
        raise RuntimeError(
            "NumPy's arrays are in a pool already, in this context: uninstall() first, or nest with use()"
        )
    _add_layer(memory, None)
    uncaught.add()


def uninstall() -> None:
    """Undo ``install`` in this context, or else the process-wide ``install``.

    NumPy uses the former handler again. Live arrays keep their data in the pool. If a ``MemoryError`` of NumPy's is
    being handled, as in a ``finally``, the pool's report becomes a note of the error.

    Raises:
        RuntimeError: No handler is installed, or a ``use`` block inside has not ended.
    """
    layers = _layers.get()
    if layers:
        layer = layers[-1]
        if layer.block is not None:
            raise RuntimeError("uninstall() inside a use() block: the block ends by itself")
        ArrayMemory.restore(layer.former)
        _layers.set(layers[:-1])
    else:
        with _process_wide:
            stopped = ArrayMemory.stop_process_wide()
        if not stopped:
            raise RuntimeError("nothing to uninstall: install() was not called in this context")
    uncaught.remove()
    add_report(sys.exception())


class use:  # noqa: N801 - reads as a statement
    """Context manager that puts the data of the NumPy arrays created in its block into a pool. Blocks nest.

    A ``MemoryError`` of NumPy's that leaves the block gets the pool's report as a note. A block that ends in another
    context than it began in, as that of a generator may which one thread starts and another ends, changes nothing
    there, and the first context stays in the pool: end such a generator where it was started.

    Args:
        pool_or_device: A pool, a logical device or its name, as for ``install``.

    Raises:
        TypeError: ``pool_or_device`` is neither a pool nor a device.
        ValueError: The device does not exist or has no pool; or the pool's memory is not memory of this process.
        MemoryError: On entry: the pool has no memory for a first array. The cause is the pool's error.
        RuntimeError: On entry: NumPy ignores the handler; or the pool was created before a fork, in the parent process.
    """

    __slots__ = ("_memory",)

    def __init__(self, pool_or_device: Pool | LogicalDevice | str) -> None:
        self._memory = _memory(pool_or_device)

    def __enter__(self) -> None:
        _add_layer(self._memory, self)

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        layers = _layers.get()
        for depth in reversed(range(len(layers))):
            if layers[depth].block is self:
                # Also removes the handlers installed inside the block and not uninstalled.
                ArrayMemory.restore(layers[depth].former)
                _layers.set(layers[:depth])
                break
        add_report(value)


def take_refusal() -> BaseException | None:
    """Return this thread's last refusal of memory for an array, and forget it; ``None`` if there is none.

    Returns:
        An ``allotment.OutOfMemoryError`` with the pool's report and figures; its attribute ``pool`` is the pool's name.
        A closed pool's refusal is another exception.
    """
    return ArrayMemory.take_refusal()


def _memory(pool_or_device: Any) -> ArrayMemory:
    return ArrayMemory(as_pool(pool_or_device), keeps_small_data=True, serves_forked_children=True)


def _add_layer(memory: ArrayMemory, block: "use | None") -> None:
    former = memory.install()
    try:
        _create_first_array(memory)
    except BaseException:
        ArrayMemory.restore(former)
        raise
    # Python caches the value of a context variable, but not its absence: without NumPy's error state in the context of
    # the handler, every ufunc would search the context for it, which takes 20 ns.
    np.seterr(**np.geterr())
    _layers.set((*_layers.get(), _Layer(memory, former, block)))


def _install_process_wide(memory: ArrayMemory) -> None:
    """Let all contexts of the process use a pool, in the versions of NumPy for which that was tested."""
    version = np.lib.NumpyVersion(np.__version__)
    if not _TESTED[0] <= (version.major, version.minor) < _TESTED[1]:
        (first, last) = (".".join(map(str, each)) for each in _TESTED)
        raise RuntimeError(
            f"process_wide=True replaces a part of NumPy, and was tested with versions from {first} to before {last}; "
            f"this is NumPy {np.__version__}: use() and install() without it work"
        )
    with _process_wide:
        memory.install_process_wide()
        try:
            # In an empty context no other handler overrides the process-wide one.
            contextvars.Context().run(_create_first_array, memory)
        except BaseException:
            ArrayMemory.stop_process_wide()
            raise


def _create_first_array(memory: ArrayMemory) -> None:
    """Check the installed handler: create an array and verify that its data is in the pool.

    Raises:
        MemoryError: The pool has no memory for the array.
        RuntimeError: The array's data is not in the pool.
    """
    ArrayMemory.take_refusal()
    try:
        first = np.empty(1, np.uint8)
    except MemoryError as error:
        error.__traceback__ = None
        raise MemoryError("the pool gave no memory for a first array") from (
            ArrayMemory.take_refusal() or error
        )
    if not memory.holds(first.ctypes.data):
        raise RuntimeError(f"NumPy {np.__version__} does not take memory from the handler that was installed")


__all__ = ["install", "take_refusal", "uninstall", "use"]

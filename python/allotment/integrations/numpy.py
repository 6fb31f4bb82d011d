"""NumPy's arrays in a pool: through its door for memory handlers (NEP 49), with no Python on the way.

::

    from allotment.integrations import numpy as pooled

    with pooled.use(pool):      # arrays made in here have their data in the pool
        c = a + b
    pooled.install(pool, process_wide=True)     # those of every thread, from here on

An array's data goes back to the pool when the array dies: on any thread, at any time, after ``uninstall()`` and at
the end of the process. The pool lives until then. Views, ``memmap`` and ``frombuffer`` own no data; scalars, and what
LAPACK and BLAS take for themselves, do not come from handlers.

**Which arrays.** ``use`` and ``install`` are about one context (of ``contextvars``), as NumPy's own door is.

In the pool:
    the same thread, ``asyncio`` tasks made in it, ``asyncio.to_thread``; ``copy_context().run(...)`` on any thread; a
    thread pool with ``initializer=install, initargs=(pool,)``.
Not in the pool:
    ``threading.Thread`` and a thread pool without more, unless Python lets threads inherit the context; a Dask
    worker's tasks, whatever its plugins installed.

With ``process_wide=True`` it is every thread, past and future, that has no handler of its own; a ``use`` inside still
counts. NumPy has no door for that: what its default handler's capsule points to is replaced, which was tried with the
versions of NumPy that ``install`` accepts, and is refused with others. Arrays made before are freed by NumPy's own
functions, as ever. ``uninstall()`` ends it for new arrays; the pool stays for the process, as data may be live in it.

**Figures.** Some data of dead arrays of up to 1,032 bytes is kept back for the next ones. Whatever is asked of the
pool finds it given back first; the peaks may count it, and the number of allocations counts only what it was asked for.

**When memory runs out** NumPy raises its ``MemoryError``, and the pool has a report of that moment. The report is a
note of the error (``__notes__``) once it leaves a ``use`` block, or meets ``uninstall()`` in a ``finally``. While
anything is installed, the report is printed with an uncaught error, on any thread: through
``sys.excepthook`` and ``threading.excepthook``, which call the hooks that were there. A program that catches the error
calls ``take_refusal()``. A pool that was closed while it is installed refuses in the same manner, and its report says
so. Such a request neither waits for a free nor collects garbage first, whatever the pool's options: NumPy may hold the
interpreter that another thread needs for its free.

**Ownership.** The array owns its data: ``pool.free(array.ctypes.data)`` is a ``BufferError``. In a pool with
``owner_tags`` the owner is the line that made the array, the innermost outside NumPy's own files. ``tracemalloc`` sees
the data as it sees NumPy's own, in the domain ``numpy.lib.tracemalloc_domain``, because NumPy reports what any handler
gives it. ``tracemalloc`` does not see the memory that ``Pool.allocate`` and ``Pool.malloc`` give out, and counts a
request that was refused, at address 0, until the next refusal: NumPy reports that, too, with any handler.

**In a forked child** the pool is its parent's: new arrays get NumPy's own memory, and the parent's stay readable and
writable; their data is given back by nobody. A thread's end changes nothing but its own context. NumPy and this
package work in the main interpreter alone.

**Is it worth it?** For arrays of some 32 MiB and more, and for expressions with many temporaries: their pages stay with
the pool instead of going back to the system with every array, and come in huge pages (``benches/README.md`` has the
figures). Where only that matters and a process can be started for it, glibc's own tuning is enough:
``GLIBC_TUNABLES=glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold=68719476736:glibc.malloc.hugetlb=1``. It has no
limit, no figures and no trim, and is about everything in the process. Untouched ``np.zeros`` takes up no memory, from
new pages as well as from free ones that nobody has written to.
"""

import contextvars
import sys
from types import TracebackType
from typing import Any, Final, NamedTuple

import numpy as np

from allotment._core import ArrayMemory, Pool
from allotment.devices.context import context
from allotment.devices.memory import find_device
from allotment.devices.values import LogicalDevice
from allotment.integrations.numpy_refusals import add_report, uncaught

#: From the first of these up to the last, and not with it, what ``process_wide`` leans on was tried.
_TRIED: Final = ((2, 0), (2, 6))


class _Layer(NamedTuple):
    """One installed handler of a context."""

    memory: ArrayMemory
    #: The handler that was there before, as NumPy gave it out.
    former: object
    #: The block it belongs to; ``None`` if ``install`` made it.
    block: "use | None"


#: What is installed in this context, the innermost last: copied where contexts are, as NumPy's own choice is.
_layers: Final[contextvars.ContextVar[tuple[_Layer, ...]]] = contextvars.ContextVar("layers", default=())


def install(pool_or_device: Pool | LogicalDevice | str, process_wide: bool = False) -> None:
    """Put the data of arrays that are made from here on into a pool.

    Args:
        pool_or_device: A pool over host memory, or a logical device that has one, or its name, such as "/GPU:0".
        process_wide: In every context without a handler of its own, on any thread, and not in this one alone.

    Raises:
        TypeError: Neither a pool nor a device.
        ValueError: No such device, or it has no pool; or the pool's memory is not memory of this process.
        MemoryError: The pool has no room for a first array. Its cause is the pool's reason.
        RuntimeError: Something is installed already; or NumPy does not take the handler; or, process-wide, this is no
            NumPy that it was tried with; or the pool is that of a process which this one was forked from.
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
    """Undo ``install``: this context's, or, if there is none, the process-wide one.

    The former handler is back. Arrays keep their data where it is. Called while a ``MemoryError`` of NumPy's is
    handled, as in a ``finally``, it adds the pool's report to the error.

    Raises:
        RuntimeError: Nothing is installed, or a ``use`` block inside it has not ended.
    """
    layers = _layers.get()
    if layers:
        layer = layers[-1]
        if layer.block is not None:
            raise RuntimeError("uninstall() inside a use() block: the block ends by itself")
        ArrayMemory.restore(layer.former)
        _layers.set(layers[:-1])
    elif not ArrayMemory.stop_process_wide():
        raise RuntimeError("nothing to uninstall: install() was not called in this context")
    uncaught.remove()
    add_report(sys.exception())


class use:  # noqa: N801 - reads as a statement
    """A ``with`` block whose arrays have their data in a pool. Blocks nest; the former handler comes back.

    Left by a ``MemoryError`` of NumPy's, it adds the pool's report to the error as a note. Left in another context than
    it was entered in, as a generator's block may be, it changes nothing there.

    Args:
        pool_or_device: As for ``install``.

    Raises:
        TypeError: Neither a pool nor a device.
        ValueError: No such device, or it has no pool; or the pool's memory is not memory of this process.
        MemoryError: On entry: the pool has no room for a first array. Its cause is the pool's reason.
        RuntimeError: On entry: NumPy does not take the handler; or the pool is that of a process which this one was
            forked from.
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
                # With it ends whatever was installed inside and not undone.
                ArrayMemory.restore(layers[depth].former)
                _layers.set(layers[:depth])
                break
        add_report(value)


def take_refusal() -> BaseException | None:
    """Why a pool refused memory to an array last, on this thread; each refusal is told once.

    Its attribute ``pool`` is the pool's name.
    """
    return ArrayMemory.take_refusal()


def _memory(pool_or_device: Any) -> ArrayMemory:
    return ArrayMemory(_pool(pool_or_device), keeps_small_data=True, serves_forked_children=True)


def _pool(pool_or_device: Any) -> Pool:
    if isinstance(pool_or_device, Pool):
        # An error in a forked child, where its arrays would be in NumPy's own memory.
        pool_or_device.can_allocate(0)
        return pool_or_device
    name = pool_or_device.name if isinstance(pool_or_device, LogicalDevice) else pool_or_device
    if not isinstance(name, str):
        kind = type(pool_or_device).__name__
        raise TypeError(
            f"arrays live in a Pool, or on a logical device or its name, such as '/GPU:0', not in {kind}"
        )
    pool = find_device(context().ready().devices, name).pool
    if pool is None:
        raise ValueError(
            f"device {name!r} has no pool: a GPU has one, and the CPU with TF_CPU_ALLOCATOR_USE_BFC=true"
        )
    return pool


def _add_layer(memory: ArrayMemory, block: "use | None") -> None:
    former = memory.install()
    try:
        _try(memory)
    except BaseException:
        ArrayMemory.restore(former)
        raise
    # Python remembers where in a context a variable is, and not that it is nowhere: without NumPy's error state in the
    # context that the handler is in, every ufunc would look for it in vain, for some 20 ns.
    np.seterr(**np.geterr())
    _layers.set((*_layers.get(), _Layer(memory, former, block)))


def _install_process_wide(memory: ArrayMemory) -> None:
    version = np.lib.NumpyVersion(np.__version__)
    if not _TRIED[0] <= (version.major, version.minor) < _TRIED[1]:
        (first, last) = (".".join(map(str, each)) for each in _TRIED)
        raise RuntimeError(
            f"process_wide=True replaces a part of NumPy, and was tried with {first} up to, but not with, {last}; this "
            f"is NumPy {np.__version__}: use() and install() without it work"
        )
    memory.install_process_wide()
    try:
        # Nothing is installed in an empty context, whatever is in this one.
        contextvars.Context().run(_try, memory)
    except BaseException:
        ArrayMemory.stop_process_wide()
        raise


def _try(memory: ArrayMemory) -> None:
    """Make an array, and look where its data is.

    Raises:
        MemoryError: The pool has no room for it.
        RuntimeError: It is not in the pool.
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

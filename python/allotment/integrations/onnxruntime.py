"""Puts the CPU memory of ONNX Runtime's sessions into a pool: weights, activations and outputs of models.

::

    from allotment.integrations import onnxruntime as pooled

    pooled.install(pool)
    session = onnxruntime.InferenceSession("model.onnx", pooled.session_options())

The pool is the shared CPU allocator of ONNX Runtime's environment. It takes the place of the sessions' arenas and of
an allocator that the program has registered itself, which does not come back. A session takes its memory from the
pool that is installed when the session is created, until its end, also after ``uninstall()``. Its options must say
so: those of ``session_options()``, or any with the entry ``session.use_env_allocators`` set to ``"1"``. A session
without that entry, and one that is created when no pool is installed, has an arena of its own. Arrays that the
program passes in stay where they are.

**Running out of memory.** ``InferenceSession`` and ``run`` raise an exception of ONNX Runtime's, ``RuntimeException``
or ``Fail``, which are no ``MemoryError``. The pool's report is part of its text, and of ONNX Runtime's log. The
session stays usable. A request neither waits for a free nor collects garbage first.

**Threads and processes.** Each process has one environment, so ``install`` and ``use`` apply to every thread. In a
forked child the pool belongs to the parent: sessions get memory of the C library. The pool lives as long as the
process.

**Requirements.** ONNX Runtime 1.23 or newer, for Linux. No Python code runs per request. In a pool with
``owner_tags`` the owner is ``onnxruntime``, or the thread's tag.
"""

from typing import TYPE_CHECKING, Final

from allotment import _core
from allotment._core import GuestMemory, Pool
from allotment.arrays.optional_package import load_package
from allotment.devices.device_tuples import LogicalDevice
from allotment.integrations.shared.block import Block
from allotment.integrations.shared.pool_argument import as_pool
from allotment.integrations.shared.process_wide import ProcessWide

if TYPE_CHECKING:
    from onnxruntime import SessionOptions

_INSTALL: Final = "pip install onnxruntime"

#: The entry of a session's options that makes it use the environment's allocator.
_USE_SHARED_ALLOCATOR: Final = "session.use_env_allocators"


def install(pool_or_device: Pool | LogicalDevice | str) -> None:
    """Make a pool the CPU allocator of sessions that are created from now on with the options of ``session_options``.

    Args:
        pool_or_device: A pool over host memory, or a logical device that has one, or its name, such as "/GPU:0".

    Raises:
        ImportError: ONNX Runtime cannot be imported.
        TypeError: ``pool_or_device`` is neither a pool nor a device.
        ValueError: The device does not exist or has no pool; or the pool is closed, or its memory is not memory of
            this process.
        RuntimeError: A pool is installed already; or ONNX Runtime is too old, or refuses the allocator; or the pool
            was created before a fork, in the parent process.
    """
    _pools.install(_memory(pool_or_device))


def use(pool_or_device: Pool | LogicalDevice | str) -> Block:
    """Return a context manager that makes a pool the CPU allocator of the sessions created in its block. Blocks nest.

    Sessions keep the pool after the block. The block applies to every thread, so while one thread is in a block, others
    cannot enter one.

    Args:
        pool_or_device: A pool, a logical device or its name, as for ``install``.

    Raises:
        ImportError: ONNX Runtime cannot be imported.
        TypeError: ``pool_or_device`` is neither a pool nor a device.
        ValueError: The device does not exist or has no pool; or the pool is closed, or its memory is not memory of
            this process.
        RuntimeError: On entry: another thread is in a block; or ONNX Runtime is too old, or refuses the allocator. Or
            the pool was created before a fork, in the parent process.
    """
    memory = _memory(pool_or_device)
    return Block(lambda: _pools.begin(memory))


def session_options() -> "SessionOptions":
    """Return new options for a session whose CPU memory is in the pool that is installed when it is created.

    Raises:
        ImportError: ONNX Runtime cannot be imported.

    Example::

        options = session_options()
        options.intra_op_num_threads = 2
        with use(pool):
            session = onnxruntime.InferenceSession("model.onnx", options)
    """
    from onnxruntime import SessionOptions

    options = SessionOptions()
    options.add_session_config_entry(_USE_SHARED_ALLOCATOR, "1")
    return options


def _memory(pool_or_device: Pool | LogicalDevice | str) -> GuestMemory:
    load_package("onnxruntime", "a pool for ONNX Runtime needs", _INSTALL)
    return GuestMemory(as_pool(pool_or_device), "onnxruntime")


def _change(memory: GuestMemory | None, former: GuestMemory | None) -> None:
    """Replace the environment's allocator; after an error it is the former one."""
    from onnxruntime import SessionOptions

    # ONNX Runtime passes its functions to such a library. The compiled module has no operators. In a forked child this
    # has to be done again.
    SessionOptions().register_custom_ops_library(_core.__file__)
    if former is not None:
        GuestMemory.unregister_from_onnxruntime()
    if memory is not None:
        try:
            memory.register_with_onnxruntime()
        except RuntimeError:
            if former is not None:
                former.register_with_onnxruntime()
            raise


_pools: Final = ProcessWide("ONNX Runtime", _change)
uninstall: Final = _pools.uninstall

__all__ = ["install", "session_options", "uninstall", "use"]

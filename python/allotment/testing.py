"""Helpers for tests of programs: GPUs made of host memory, and a runtime that is replaced for a test."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from allotment._core import show_text
from allotment.devices.context import context
from allotment.devices.environment.settings import NOT_HONOURED, VARIABLES
from allotment.devices.environment.variables import SIMULATED_GPUS, read_gpus

#: Held by the thread that has replaced the runtime.
_replacing: Final = threading.RLock()


def simulate_gpus(gpus: str | int) -> None:
    """Simulate GPUs in this process, instead of the real ones and of those of ``ALLOTMENT_SIMULATED_GPUS``.

    To be called before the first question about devices; the last call before that counts. Later, a call that
    asks for the existing GPUs is accepted.

    Args:
        gpus: A number of GPUs, each with 4 GiB, or groups with a size, such as ``"4:16GiB"`` or
            ``"2:1GiB,1:512MiB"``; ``"0"`` is none.

    Raises:
        ValueError: Not of that form.
        RuntimeError: An earlier call asked about devices; the text names its file and line.
    """
    context().simulate_gpus(str(gpus))


@contextmanager
def runtime(gpus: str | int = 0, **environ: str) -> Iterator[None]:
    """Replace the devices and all settings of the process in a ``with`` block, so that a test needs no process.

    The block starts like a new process: no call has asked about devices, every setting and flag has its default, and
    this thread is in no device scope, graph, tape or strategy. Threads that start inside belong to the new runtime.
    At the end, also after an error, everything is as before, and the memory of the block's devices is free, except
    for devices whose tensors, variables or sessions the program still holds. Blocks nest. ::

        with allotment.testing.runtime("2:64MiB", TF_FORCE_GPU_ALLOW_GROWTH="true"):
            assert len(tf.config.list_physical_devices("GPU")) == 2

    The process's environment does not count inside. State that has nothing to do with devices stays as it is: the
    seed of random numbers, the graph of ``allotment.tf.v1``, names that Keras has given.

    Args:
        gpus: The simulated GPUs, as for ``simulate_gpus``.
        environ: Further environment variables by name, of those in the manual's list.

    Raises:
        ValueError: ``gpus`` is not of the form of ``simulate_gpus``, or there is no such variable.
        RuntimeError: Another thread has replaced the runtime.
    """
    # Programs that only simulate GPUs need not load placement.
    from allotment.devices import dispatch, placement_log

    read_gpus(str(gpus))
    known = {variable.name for variable in VARIABLES}.union(NOT_HONOURED)
    for name in environ:
        if name not in known:
            raise ValueError(
                f"{show_text(name)} is not a variable about devices. There are: {', '.join(sorted(known))}."
            )
    if not _replacing.acquire(blocking=False):
        raise RuntimeError(
            "Another thread has replaced the runtime. It is the whole process's: use allotment.testing.runtime in one "
            "thread at a time."
        )
    try:
        with (
            context().replaced({SIMULATED_GPUS.name: str(gpus), **environ}),
            placement_log.preserved(),
            dispatch.new_state(),
        ):
            placement_log.set_enabled(False)
            placement_log.set_logs_copies(False)
            yield
    finally:
        _replacing.release()


__all__ = ["runtime", "simulate_gpus"]

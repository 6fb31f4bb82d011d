"""The executor of kernels, for eager operations and for graphs.

A kernel is a function of arrays. The executor decides which device's memory a kernel works in and where its results
are, and calls it there. When that memory is short, the executor collects garbage and calls again, then refuses.
"""

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from allotment import errors
from allotment._core import ArrayMemory, Pool, collect_garbage
from allotment.arrays.numpy import NUMPY, current_library
from allotment.devices.context import LogicalDeviceRuntime as Device
from allotment.devices.memory_runner import MemoryRunner
from allotment.tf.ops import faults
from allotment.tf.ops.host_only import HOST_ONLY
from allotment.tf.ops.table import Host, Operation
from allotment.tf.tensors.dtype import DType, int32, string


class Progress(Protocol):
    """Counts the finished steps of a function, which goes on behind them when it is called again."""

    @property
    def value(self) -> int:
        """The number of steps done."""


def call_in_memory(
    runner: MemoryRunner,
    pool: Pool | None,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    refusal: Callable[..., BaseException],
    context: tuple[Any, ...],
    progress: Progress | None = None,
) -> Any:
    """Call a function of arrays in a device's memory; when it is short, collect garbage and call again.

    Args:
        runner: Calls a function so that its arrays are in the memory.
        pool: The pool of the memory; ``None`` for NumPy's own memory.
        function: The function.
        args: Its arguments.
        kwargs: Its keyword arguments.
        refusal: Makes the error of a memory that stays too short, of ``context`` and the exception.
        context: The first arguments of ``refusal``.
        progress: Of a function that goes on where it failed: garbage is collected once for each step that fails.

    Raises:
        BaseException: What ``refusal`` makes.
    """
    collected_at = -1
    while True:
        try:
            return runner(function, *args, **kwargs)
        except ValueError as error:
            if not faults.is_beyond_memory(error):
                raise
            failed: MemoryError | ValueError = error.with_traceback(None)
            break
        except MemoryError as error:
            if isinstance(error, errors.OpError):
                raise
            failed = error.with_traceback(None)
        step = 0 if progress is None else progress.value
        # Arrays that only cycles hold are memory, too.
        if step == collected_at or not collect_garbage(pool):
            break
        collected_at = step
        ArrayMemory.take_refusal()
    # Outside of the handler: as the context of the new error, the exception would keep its frames and their arrays.
    raise refusal(*context, failed)


def value_memory(dtype: DType, device: Device, host: Device) -> Device:
    """Return the device whose memory keeps a value made for ``device``: texts and int32 stay in host memory."""
    return host if dtype is int32 or dtype is string else device


def kernel_memory(row: Operation, first: DType | None, device: Device, host: Device) -> Device:
    """Return the device whose memory a kernel works in: its own, or the host for what kernels of GPUs keep there.

    Args:
        row: The operation.
        first: The element type of its first input, ``None`` without inputs.
        device: The device that the operation runs on.
        host: The first CPU.
    """
    if row.host is Host.OUTPUT or row.host is Host.ALL:
        return host
    return host if first is int32 and row.host is Host.INT32 and device.kind == "GPU" else device


def result_memory(row: Operation, dtype: DType, device: Device, home: Device, host: Device) -> Device:
    """Return the device whose memory a result counts to.

    Args:
        row: The operation.
        dtype: The element type of the result.
        device: The device that the operation runs on.
        home: The device whose memory the kernel works in.
        host: The first CPU.
    """
    if dtype is string:
        return host
    return device if row.host is Host.OUTPUT and dtype is not int32 and device.kind == "CPU" else home


def runs_on_host(row: Operation, device: Device) -> bool:
    """Whether a row computes in host memory for a device whose array library lacks what it needs.

    So do rows that print: they make no array.
    """
    return device.library is not None and (row.effect_only or row.name in HOST_ONLY)


def copying(source: Device, target: Device) -> Callable[[Any], Any]:
    """Return the function that copies an array from one device's memory; it is called in the memory of the other."""
    if source.library is None:
        return np.copy if target.library is None else target.library.from_host
    return source.library.to_host if target.library is None else target.library.copy


def fault_of(fault: Callable[..., str | None], *args: Any, **kwargs: Any) -> str | None:
    """Return what a row's check says of arrays and arguments; it is called in the memory of the arrays.

    The words show elements, which are read from copies in host memory.
    """
    text, library = fault(*args, **kwargs), current_library()
    if text is None or library is NUMPY:
        return text
    return fault(*(library.to_host(each) if library.owns(each) else each for each in args), **kwargs)


def reads_in_place(row: Operation, dtype: DType, source: Device, home: Device) -> bool:
    """Whether a kernel reads an input of a type where it is, so that nothing is copied.

    Args:
        row: The operation.
        dtype: The element type of the input.
        source: The device whose memory has it.
        home: The device whose memory the kernel works in. NumPy's functions take no arrays of other libraries.
    """
    if row.reads_anywhere:
        return source.library is None or home.library is not None
    return dtype is string or row.host is Host.OUTPUT


__all__ = [
    "call_in_memory",
    "copying",
    "fault_of",
    "kernel_memory",
    "reads_in_place",
    "result_memory",
    "runs_on_host",
    "value_memory",
]

"""The second part of ``demo``: a simulated GPU split in two, a program on both, and an out-of-memory error."""

import logging
from collections.abc import Iterator
from textwrap import wrap

import allotment
import allotment.tf as tf
from allotment._core import format_size
from allotment.devices.context import context

_MIB = 1 << 20


def split_a_gpu() -> Iterator[str]:
    """Yield the lines of a program that splits a simulated GPU, computes on both halves and exceeds a limit."""
    allotment.testing.simulate_gpus("1:256MiB")
    gpus = tf.config.list_physical_devices("GPU")
    if not gpus:
        yield "CUDA_VISIBLE_DEVICES hides the simulated GPU: nothing to split."
        return
    limits = [tf.config.LogicalDeviceConfiguration(memory_limit=limit) for limit in (64, 96)]
    tf.config.set_logical_device_configuration(gpus[0], limits)

    yield "A simulated GPU of 256 MiB, split into two of 64 and 96 MiB. Where each operation ran:"
    lines: list[str] = []
    with _Lines(lines):
        with tf.device("/GPU:0"):
            a = tf.ones([1024, 1024])
            b = tf.matmul(a, a)
        with tf.device("/GPU:1"):
            c = tf.identity(b) + 1.0  # copied to the other half, and computed there
        with tf.device("/CPU:0"):
            total = tf.reduce_sum(c)
    yield from (f"  {line}" for line in lines if "_EagerConst" not in line)
    yield f"The sum is {float(total):.0f}. Memory in use on each half, its limit, and its peak:"
    yield from _memory()
    try:
        with tf.device("/GPU:0"):
            tf.zeros([64 * _MIB // 4])
    except tf.errors.ResourceExhaustedError as error:
        yield "64 MiB more on GPU:0 are refused, although GPU:1 has room:"
        # Without the name of the kernel's wrapper, which the text has for programs that search for it.
        text = str(error).split("}} ", 1)[-1].splitlines()
        yield from wrap(text[0], width=98, initial_indent="  ", subsequent_indent="  ")
        yield from (f"  {line}" for line in text[1:])


def _memory() -> Iterator[str]:
    for device in context().ready().devices:
        if device.pool is not None:
            stats = device.pool.stats()
            held, limit, peak = map(format_size, (stats.in_use, stats.limit, stats.peak_in_use))
            yield f"  {device.short_name:<15} holds {held:>8} of {limit:>8}, at most {peak:>8}"


class _Lines(logging.Handler):
    """Context manager that appends the lines of the placement log to a list."""

    def __init__(self, lines: list[str]) -> None:
        super().__init__()
        self._lines = lines

    def emit(self, record: logging.LogRecord) -> None:
        self._lines.append(record.getMessage())

    def __enter__(self) -> None:
        context().log_placement = True
        logger = logging.getLogger("allotment.placement")
        logger.setLevel(logging.INFO)
        logger.addHandler(self)

    def __exit__(self, *exception: object) -> None:
        context().log_placement = None
        logger = logging.getLogger("allotment.placement")
        logger.setLevel(logging.NOTSET)
        logger.removeHandler(self)

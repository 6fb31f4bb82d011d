"""Sizes of thread pools: ``tf.config.threading``. Only kept, with TensorFlow's rules: NumPy has its own."""

from allotment.devices import threads
from allotment.devices.context import context
from allotment.tf.names.missing_names import refuse_other_names


def get_intra_op_parallelism_threads() -> int:
    """Return the number of threads within an operation; 0 until it is set.

    Raises:
        TypeError: What was set is no whole number.
    """
    context().assemble()
    return threads.threads_of(context().threads, "intra")


def set_intra_op_parallelism_threads(num_threads: int | None) -> None:
    """Set the number of threads within an operation; ``None`` is never set, which 0 is not.

    Raises:
        RuntimeError: The runtime is initialized, and with another number.
    """
    context().set_threads("intra", num_threads)


def get_inter_op_parallelism_threads() -> int:
    """Return the number of operations at the same time; 0 until it is set.

    Raises:
        TypeError: What was set is no whole number.
    """
    context().assemble()
    return threads.threads_of(context().threads, "inter")


def set_inter_op_parallelism_threads(num_threads: int | None) -> None:
    """Set the number of operations at the same time; ``None`` is never set, which 0 is not.

    Raises:
        RuntimeError: The runtime is initialized, and with another number.
    """
    context().set_threads("inter", num_threads)


__all__ = [
    "get_inter_op_parallelism_threads",
    "get_intra_op_parallelism_threads",
    "set_inter_op_parallelism_threads",
    "set_intra_op_parallelism_threads",
]

refuse_other_names(__name__)

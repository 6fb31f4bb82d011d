"""``tf.config.threading``: sizes of TensorFlow's thread pools, which are stored but have no effect."""

from allotment.devices.context import context
from allotment.devices.options.thread_pools import thread_count
from allotment.tf.names.missing_names import refuse_other_names


def get_intra_op_parallelism_threads() -> int:
    """Return the stored number of threads within an operation; 0 by default.

    Raises:
        TypeError: The stored value is not an integer.
    """
    context().assemble()
    return thread_count(context().threads, "intra")


def set_intra_op_parallelism_threads(num_threads: int | None) -> None:
    """Store the number of threads within an operation.

    Args:
        num_threads: The number; ``None`` makes the value unset, unlike 0.

    Raises:
        RuntimeError: The runtime is initialized with another number.
    """
    context().set_threads("intra", num_threads)


def get_inter_op_parallelism_threads() -> int:
    """Return the stored number of concurrent operations; 0 by default.

    Raises:
        TypeError: The stored value is not an integer.
    """
    context().assemble()
    return thread_count(context().threads, "inter")


def set_inter_op_parallelism_threads(num_threads: int | None) -> None:
    """Store the number of concurrent operations.

    Args:
        num_threads: The number; ``None`` makes the value unset, unlike 0.

    Raises:
        RuntimeError: The runtime is initialized with another number.
    """
    context().set_threads("inter", num_threads)


__all__ = [
    "get_inter_op_parallelism_threads",
    "get_intra_op_parallelism_threads",
    "set_inter_op_parallelism_threads",
    "set_intra_op_parallelism_threads",
]

refuse_other_names(__name__)

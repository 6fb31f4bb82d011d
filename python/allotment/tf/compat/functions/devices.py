"""``tf.compat.v1.device``: device scopes that take functions in graphs."""

from typing import Any

from allotment.devices import device_scope
from allotment.tf.dispatch import thread


def device(device_name_or_function: Any) -> Any:
    """Request a device for the operations of a ``with`` block. As ``tf.compat.v1.device``.

    In a graph, the argument may be a function of the node.

    Raises:
        RuntimeError: A function is given in eager mode.
        ValueError: On entry: not a device name.
    """
    graph = thread.state.graph
    if graph is not None:
        return graph.device(device_name_or_function)
    if callable(device_name_or_function) and not isinstance(device_name_or_function, str):
        raise RuntimeError("tf.device does not support functions when eager execution is enabled.")
    return device_scope.device(device_name_or_function)


__all__ = ["device"]

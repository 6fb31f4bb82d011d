"""``tf.compat.v1.constant``, with TensorFlow 1's parameters."""

from typing import Any

from allotment.tf.dispatch import thread
from allotment.tf.ops.array import constants
from allotment.tf.ops.convert import dtype_argument


def constant(
    value: Any,
    dtype: Any = None,
    shape: Any = None,
    name: str = "Const",
    verify_shape: bool = False,
) -> Any:
    """Make a constant. As ``tf.compat.v1.constant``; in a graph the last of too few values fills the shape.

    Raises:
        TypeError: ``verify_shape``, and the value has another shape.
        ValueError: A value that no tensor can hold, or more values than the shape has.
    """
    wanted = None if verify_shape else shape
    if thread.state.graph is None:
        made = constants.constant(value, dtype, wanted, name)
    else:
        made = constants.graph_constant(value, dtype_argument(dtype), wanted, name, repeats_last=True)
    if verify_shape and shape is not None and not made.shape.is_compatible_with(shape):
        raise TypeError(f"Expected Tensor's shape: {tuple(shape)}, got {made.shape}.")
    return made


__all__ = ["constant"]

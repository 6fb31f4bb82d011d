"""``tf.compat.v1.constant``: TensorFlow 1's signature of constants."""

from typing import Any

from allotment.ops import creation


def constant(
    value: Any,
    dtype: Any = None,
    shape: Any = None,
    name: str = "Const",
    verify_shape: bool = False,
) -> Any:
    """Make a constant. As ``tf.compat.v1.constant``; in a graph the last of too few values fills the shape.

    Raises:
        TypeError: ``verify_shape``, and the value has another shape; or more values than the shape has.
        ValueError: A value that no tensor can hold.
    """
    made = creation.constant(value, dtype, None if verify_shape else shape, name)
    if verify_shape and shape is not None and not made.shape.is_compatible_with(shape):
        raise TypeError(f"Expected Tensor's shape: {tuple(shape)}, got {made.shape}.")
    return made


__all__ = ["constant"]

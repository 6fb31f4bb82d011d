"""Assertions of TensorFlow 1: with data for the error, and as operations in graphs even if they hold statically."""

from collections.abc import Callable
from typing import Any, Final

from allotment.tf.ops.control import assertions, numerics, shape_assertions, type_assertions
from allotment.tf.ops.control.assert_op import no_op_named
from allotment.tf.ops.convert import to_tensor


def assert_type(tensor: Any, tf_type: Any, message: str | None = None, name: str | None = None) -> Any:
    """Check the element type. As ``tf.compat.v1.assert_type``; in a graph it returns an operation.

    Raises:
        TypeError: It is another.
    """
    type_assertions.assert_type(tensor, tf_type, message)
    return no_op_named(f"{name or 'assert_type'}/statically_determined_correct_type")


def assert_integer(x: Any, message: str | None = None, name: str | None = None) -> Any:
    """Check that the elements are integers. As ``tf.compat.v1.assert_integer``; in a graph it returns an operation.

    Raises:
        TypeError: They are not.
    """
    type_assertions.assert_integer(x, message)
    return no_op_named(f"{name or 'assert_integer'}/statically_determined_was_integer")


def assert_scalar(tensor: Any, name: str | None = None, message: str | None = None) -> Any:
    """Return the tensor if it has no axes. As ``tf.compat.v1.assert_scalar``.

    Raises:
        ValueError: It has some, or in a graph their number is not known.
    """
    made = to_tensor(tensor)
    shape_assertions.assert_scalar(made, message, name)
    return made


def verify_tensor_all_finite(
    t: Any = None, msg: str | None = None, name: str | None = None, x: Any = None, message: str | None = None
) -> Any:
    """Return the tensor if all its elements are finite. As ``tf.compat.v1.verify_tensor_all_finite``."""
    return numerics.assert_all_finite(
        t if x is None else x, (msg if message is None else message) or "", name
    )


#: TensorFlow 1's assertions by name.
ASSERTIONS: Final[dict[str, Callable[..., Any]]] = {
    **assertions.WITH_DATA,
    **shape_assertions.WITH_DATA,
    "assert_integer": assert_integer,
    "assert_scalar": assert_scalar,
    "assert_type": assert_type,
}

__all__ = ["ASSERTIONS", "verify_tensor_all_finite"]

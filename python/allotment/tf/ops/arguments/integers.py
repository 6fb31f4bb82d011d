"""Single whole numbers and lists of inputs as arguments of operations."""

from collections.abc import Callable, Sequence
from typing import Any

from allotment import errors
from allotment.tf.dispatch import thread
from allotment.tf.ops.arguments.shapes import refused, shape_argument
from allotment.tf.ops.conversion.reshaping import RESHAPE
from allotment.tf.ops.convert import dtype_of, to_tensor
from allotment.tf.ops.deferred import Deferred
from allotment.tf.ops.execute import run
from allotment.tf.tensors.tensor import EagerTensor


def number_argument(value: Any, what: str) -> int:
    """A whole number from an ``int``, an array or a tensor of one element, or a variable; in a graph a ``Deferred``.

    Raises:
        InvalidArgumentError, ValueError: It is none of these; the text says what the argument is called.
    """
    if type(value) is int:
        return value
    numbers: Any = shape_argument(value, f"{what} must be one whole number")
    if type(numbers) is Deferred:
        if numbers.tensor.shape.rank is None:
            return Deferred(run(RESHAPE, (numbers.tensor,), ()), None)  # type: ignore[return-value]
        # A vector of one number counts as the number.
        return numbers if numbers.known is None else numbers[0]  # type: ignore[return-value]
    if len(numbers) != 1:
        raise refused(value, f"{what} must be one whole number, not {value!r}")
    return numbers[0]  # type: ignore[no-any-return]


def scalar_argument(value: Any, what: str, *, in_kernel: bool = False) -> int:
    """The same for an operation that does not take a vector of one number for the number.

    ``in_kernel``: it finds out when it runs, in a graph, too.

    Raises:
        InvalidArgumentError, ValueError: As ``number_argument``; the value has axes.
    """
    number = number_argument(value, what)
    check_scalar(value, what, in_kernel=in_kernel)
    return number


def check_scalar(value: Any, what: str, *, in_kernel: bool = False) -> None:
    """Check that a whole number has no axes.

    Raises:
        InvalidArgumentError, ValueError: It has; the text says what the argument is called.
    """
    if has_axes(value):
        text = f"{what} must be a scalar, not {value!r}"
        raise errors.InvalidArgumentError(None, None, text) if in_kernel else refused(value, text)


def has_axes(value: Any) -> bool:
    """Whether an argument is a list, or an array or a tensor that is known to have axes."""
    if isinstance(value, list | tuple | range):
        return True
    return getattr(getattr(value, "shape", None), "rank", getattr(value, "ndim", 0)) not in (0, None)


def attribute_argument(value: Any, what: str) -> int:
    """A whole number that is an attribute of TensorFlow's operation and no input: Python's ``int`` of it.

    Raises:
        TypeError: There is none; the text says what the argument is called.
    """
    if type(value) is int:
        return value
    read = getattr(value, "_as_tensor", None)
    if not isinstance(value, str | bytes):
        try:
            return int(value if read is None else read())
        except (TypeError, ValueError, OverflowError):
            pass
    raise TypeError(f"{what} must be one whole number, not {value!r}")


def numbers_argument(value: Any, what: str) -> tuple[int, ...]:
    """Whole numbers from a number, a sequence, an array or a tensor, or a variable.

    Raises:
        InvalidArgumentError, ValueError: It is none of these; the text says what the argument is called.
    """
    return deferred_vector(shape_argument(value, f"{what} must be whole numbers"))  # type: ignore[no-any-return]


def deferred_vector(numbers: Any) -> Any:
    """Make one number that only a session knows a tuple; anything else stays as it is."""
    if type(numbers) is Deferred and numbers.tensor.shape.rank == 0:
        return (numbers,)
    if type(numbers) is Deferred and numbers.tensor.shape.rank is None:
        return Deferred(run(RESHAPE, (numbers.tensor,), (-1,)), None)
    return numbers


def kernel_error(kind: Callable[..., Exception], text: str) -> Exception:
    """The error of an argument that a kernel refuses, and in a graph already the function of the shape."""
    return kind(None, None, text) if thread.state.graph is None else ValueError(text)


def axis_of(axis: int, rank: int) -> int:
    """An axis counted from the start, if it was counted from the end."""
    return axis + rank if axis < 0 else axis


def to_tensors(values: Sequence[Any]) -> list[EagerTensor]:
    """Convert the inputs of an operation that takes any number of one type.

    Python values take the type of the first tensor among them, or else that of the first value.
    """
    if all(type(value) is EagerTensor for value in values):
        return list(values)
    like = next((dtype for dtype in map(dtype_of, values) if dtype is not None), None)
    tensors = []
    for value in values:
        tensor = to_tensor(value, like=like)
        like = like or tensor._dtype
        tensors.append(tensor)
    return tensors


__all__ = [
    "attribute_argument",
    "axis_of",
    "check_scalar",
    "deferred_vector",
    "has_axes",
    "kernel_error",
    "number_argument",
    "numbers_argument",
    "scalar_argument",
    "to_tensors",
]

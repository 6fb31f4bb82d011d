"""Attaches Python's operators to tensors; ``allotment.tf.variables.variable`` attaches the same to variables.

Where an operation's function can be the method itself, it is: every Python frame in between is a tenth of the
time that ``a + b`` takes.
"""

from collections.abc import Callable
from typing import Any, Final

from allotment.tf.ops import copies
from allotment.tf.ops.array.array import cast
from allotment.tf.ops.conversion.constants import eager_const
from allotment.tf.ops.convert import dtype_of, to_pair, to_tensor
from allotment.tf.ops.indexing.subscripts import getitem
from allotment.tf.ops.linalg.products import matmul
from allotment.tf.ops.math import arithmetic as math
from allotment.tf.ops.math import comparison, logical
from allotment.tf.ops.math.division import floordiv, floormod, truediv
from allotment.tf.ops.public import binary
from allotment.tf.ops.table import OPERATIONS, broadcast_fault
from allotment.tf.tensors.dtype import bool as bool_
from allotment.tf.tensors.dtype import int32
from allotment.tf.tensors.tensor import EagerTensor, Tensor

Operator = Callable[..., Any]


def _reflected(function: Operator) -> Operator:
    """The method for when the tensor stands on the right: what is on its left takes its type."""

    def call(y: Any, x: Any) -> EagerTensor:
        y = to_tensor(y)
        return function(to_tensor(x, like=y._dtype), y)  # type: ignore[no-any-return]

    return call


def _equal(x: Any, y: Any) -> Any:
    """``x == y``, element by element; shapes that do not go together are not equal, and nothing is ``None``."""
    if y is None:
        return False
    if type(x) is not EagerTensor or type(y) is not EagerTensor:
        x, y = to_pair(x, y)
    if _do_not_go_together(x, y):
        return eager_const(False)
    return comparison.equal(x, y)


def _not_equal(x: Any, y: Any) -> Any:
    """``x != y``: the opposite of ``x == y``."""
    if y is None:
        return True
    if type(x) is not EagerTensor or type(y) is not EagerTensor:
        x, y = to_pair(x, y)
    if _do_not_go_together(x, y):
        return eager_const(True)
    return comparison.not_equal(x, y)


def _do_not_go_together(x: EagerTensor, y: EagerTensor) -> bool:
    """Whether the shapes are the only thing in the way of comparing two tensors."""
    left, right = x._array.shape, y._array.shape
    if left == right or not left or not right or x._dtype is not y._dtype:
        return False
    return broadcast_fault((x._array, y._array)) is not None


def _truths_or_bits(truths: Operator, bits: Operator) -> Operator:
    """The operator of truth values and, bit by bit, of integers."""

    def call(x: Any, y: Any, name: str | None = None) -> EagerTensor:
        if type(x) is not EagerTensor or type(y) is not EagerTensor:
            x, y = to_pair(x, y)
        return (truths if x._dtype is bool_ else bits)(x, y, name)  # type: ignore[no-any-return]

    return call


def _invert(x: Any) -> EagerTensor:
    """``~x``: the opposite of truth values, the flipped bits of integers."""
    x = to_tensor(x)
    return logical.logical_not(x) if x._dtype is bool_ else logical.invert(x)


def _factors(x: Any, y: Any) -> tuple[EagerTensor, EagerTensor]:
    """Convert factors as other operands, but for those beside truth values, which keep their types."""
    if bool_ in (dtype_of(x), dtype_of(y)):
        return to_tensor(x), to_tensor(y)
    return to_pair(x, y)


def _whole_product(x: EagerTensor, y: EagerTensor, name: str | None = None) -> EagerTensor:
    """The product where a factor has truth values: whether that of their whole parts is not zero."""
    return cast(math.multiply(cast(x, int32), cast(y, int32), name), bool_)


_times = binary(OPERATIONS["Mul"], truths=_whole_product, pair=_factors)
_and = _truths_or_bits(logical.logical_and, logical.bitwise_and)
_or = _truths_or_bits(logical.logical_or, logical.bitwise_or)
_xor = _truths_or_bits(logical.logical_xor, logical.bitwise_xor)

#: Python's operators, by the name of the method.
OPERATORS: Final[dict[str, Operator]] = {
    "__abs__": math.abs,
    "__add__": math.add,
    "__and__": _and,
    "__eq__": _equal,
    "__floordiv__": floordiv,
    "__ge__": comparison.greater_equal,
    "__getitem__": getitem,
    "__gt__": comparison.greater,
    "__invert__": _invert,
    "__le__": comparison.less_equal,
    "__lt__": comparison.less,
    "__matmul__": matmul,
    "__mod__": floormod,
    "__mul__": _times,
    "__ne__": _not_equal,
    "__neg__": math.negative,
    "__or__": _or,
    "__pow__": math.pow,
    "__radd__": _reflected(math.add),
    "__rand__": _reflected(_and),
    "__rfloordiv__": _reflected(floordiv),
    "__rmatmul__": _reflected(matmul),
    "__rmod__": _reflected(floormod),
    "__rmul__": _reflected(_times),
    "__ror__": _reflected(_or),
    "__rpow__": _reflected(math.pow),
    "__rsub__": _reflected(math.subtract),
    "__rtruediv__": _reflected(truediv),
    "__rxor__": _reflected(_xor),
    "__sub__": math.subtract,
    "__truediv__": truediv,
    "__xor__": _xor,
}


def attach(kind: type, methods: dict[str, Operator]) -> None:
    """Give a class methods."""
    for name, method in methods.items():
        setattr(kind, name, method)


attach(Tensor, OPERATORS)
attach(
    EagerTensor,
    {
        "__deepcopy__": copies.deepcopy,
        "__reduce__": copies.reduced,
        "cpu": copies.cpu,
        "gpu": copies.gpu,
    },
)

__all__ = ["OPERATORS", "attach"]

"""Enters gradients into the operation table, and what they are given: a call, and the gradients of its outputs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from allotment.tf.ops.table import GRADIENTS, Gradient, Needed, Operation
from allotment.tf.tensors.dtype import DType
from allotment.tf.tensors.tensor import EagerTensor
from allotment.tf.tensors.tensor_shape import TensorShape

_Function = TypeVar("_Function", bound=Callable[..., Any])

#: The gradient of an operation that is a constant, whatever its inputs.
CONSTANT: Final = Gradient(None, inputs=False)


@dataclass(frozen=True, slots=True)
class Outline:
    """Shape and type of a tensor, in place of a value that no gradient needs."""

    lengths: tuple[int, ...]
    _dtype: DType

    @property
    def dtype(self) -> DType:
        """The type of the elements."""
        return self._dtype

    @property
    def shape(self) -> TensorShape:
        """The lengths of the axes."""
        return TensorShape(self.lengths)


class Call:
    """A call of an operation, for its gradient to look at."""

    __slots__ = ("args", "inputs", "kwargs", "outputs", "row", "wanted")

    def __init__(
        self,
        row: Operation,
        inputs: Sequence[Any],
        outputs: Sequence[Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        wanted: Sequence[bool],
    ) -> None:
        self.row = row
        #: Tensors, or their outlines where the gradient said that it needs no more.
        self.inputs = inputs
        self.outputs = outputs
        #: The operation's arguments after the tensors.
        self.args = args
        self.kwargs = kwargs
        #: The inputs whose gradients are needed; the others are not computed.
        self.wanted = wanted

    def back(self, gradients: Sequence[Any]) -> list[Any]:
        """The gradients of the inputs, ``None`` where there is none, from those of the outputs."""
        gradient = self.row.gradient
        if gradient is None or gradient.function is None:
            return [None] * len(self.inputs)
        made = gradient.function(self, *gradients)
        found = list(made) if isinstance(made, list | tuple) else [made]
        return found + [None] * (len(self.inputs) - len(found))


def gradient(
    *names: str, inputs: Needed = True, outputs: Needed = False, slices: bool = False
) -> Callable[[_Function], _Function]:
    """Enter a function as the gradient of operations. It takes a ``Call`` and the gradient of each output.

    ``inputs`` and ``outputs`` say at which values it looks, and not only at shapes and types: what it does not need
    can be freed before. ``"beside others"`` is for products: a factor is needed for the gradients of the others.
    ``slices`` says that it takes ``IndexedSlices`` as they are, as the same gradient of TensorFlow does.

    Raises:
        ValueError: It has a gradient.
    """

    def enter(function: _Function) -> _Function:
        for name in names:
            _enter(name, Gradient(function, inputs, outputs, slices))
        return function

    return enter


def not_differentiable(*names: str) -> None:
    """Declare operations as constants for gradients: their results are whole numbers, or change in steps.

    Raises:
        ValueError: It has a gradient.
    """
    for name in names:
        _enter(name, CONSTANT)


def _enter(name: str, made: Gradient) -> None:
    if name in GRADIENTS:
        raise ValueError(f"operation {name} has a gradient already")
    GRADIENTS[name] = made


def kept(tensors: Sequence[Any], needed: Needed, wanted: Sequence[bool]) -> Sequence[Any]:
    """The tensors that a gradient needs, and outlines of the others; ``wanted`` says which have gradients."""
    if needed is True:
        return tensors
    if needed == "beside others":
        places = [place for place in range(len(tensors)) if any(wanted[:place]) or any(wanted[place + 1 :])]
    else:
        places = list(needed or ())
    return [
        each if place in places or not isinstance(each, EagerTensor) else outline(each)
        for place, each in enumerate(tensors)
    ]


def outline(tensor: EagerTensor) -> Outline:
    """The outline of a tensor."""
    return Outline(tensor._array.shape, tensor._dtype)


def is_differentiable(dtype: DType) -> bool:
    """Whether tensors of a type can have gradients."""
    return dtype.is_floating or dtype.is_complex


__all__ = [
    "CONSTANT",
    "Call",
    "Outline",
    "gradient",
    "is_differentiable",
    "kept",
    "not_differentiable",
    "outline",
]

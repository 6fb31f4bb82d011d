"""Checks element types of inputs against those that TensorFlow's operations allow and have kernels for."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final, Literal, NamedTuple

from allotment.tf.ops.table import Operation
from allotment.tf.ops.types.kernel_types import KERNEL_TYPES
from allotment.tf.ops.types.signatures import TYPED_INPUTS
from allotment.tf.tensors.dtype import BY_NUMPY, DType

_BY_NAME: Final = {dtype.name: dtype for dtype in BY_NUMPY.values()}


@dataclass(frozen=True, slots=True)
class TypeProblem:
    """The fault in the types of an operation's inputs."""

    #: An input has another type than it must, an attribute may not have the type, or no kernel computes with it.
    kind: Literal["mismatch", "not allowed", "no kernel"]
    #: The number of the input among those of TensorFlow's operation, its name there, and its type.
    index: int
    input_name: str
    found: DType
    #: Of a mismatch: the type that the input must have, and the input that decided it, if it is not fixed.
    wanted: DType | None = None
    wanted_by: str | None = None
    #: Otherwise: the attribute, and the names of the types that it may have.
    attribute: str = ""
    allowed: tuple[str, ...] = ()


class _Input(NamedTuple):
    name: str
    #: The attribute whose value is the type, or the fixed type.
    type_of: str
    is_list: bool


class _Types(NamedTuple):
    """The recorded types of one operation."""

    inputs: tuple[_Input, ...]
    allowed: dict[str, tuple[str, ...]]
    kernels: dict[str, tuple[str, ...]]

    def input(self, row: Operation, index: int, count: int) -> tuple[int, _Input] | None:
        """The number and description of the input that one of so many tensors of a row is, if its type is checked."""
        names = TYPED_INPUTS.get(row.name)
        if names is not None:
            # Lists are of one length.
            at = index * len(names) // count if any(each.is_list for each in self.inputs) else index
            found = next((each for each in self.inputs if names[at : at + 1] == (each.name,)), None)
            return None if found is None else (self.inputs.index(found), found)
        number = row.number(index)
        if number is None:
            return None
        # The tensors of a list are numbered one by one.
        for at, each in enumerate(self.inputs):
            if at == number or each.is_list:
                return number, each
        return None


def type_problem(row: Operation, types: Sequence[DType], *, kernels: bool = True) -> TypeProblem | None:
    """Return the fault that TensorFlow finds in the element types of a row's inputs, or ``None``.

    ``kernels`` says whether a kernel is looked for.
    """
    return _type_problem(row, tuple(types), kernels)


@cache
def _type_problem(row: Operation, types: tuple[DType, ...], kernels: bool) -> TypeProblem | None:
    recorded = _recorded(row.name)
    if recorded is None:
        return _unrecorded_problem(row, types)
    decided: dict[str, tuple[DType, _Input, int]] = {}
    mismatch: TypeProblem | None = None
    for index, found in enumerate(types):
        numbered = recorded.input(row, index, len(types))
        if numbered is None or not numbered[1].type_of:
            continue
        number, each = numbered
        if each.type_of not in recorded.allowed:
            # A fixed type. Handles of variables are no tensors here.
            fixed = _BY_NAME.get(each.type_of)
            if fixed is not None and found is not fixed:
                mismatch = mismatch or TypeProblem("mismatch", number, each.name, found, fixed)
        else:
            wanted, by, _ = decided.setdefault(each.type_of, (found, each, number))
            if found is not wanted:
                mismatch = mismatch or TypeProblem("mismatch", number, each.name, found, wanted, by.name)
    problems: list[tuple[Literal["not allowed", "no kernel"], dict[str, tuple[str, ...]]]] = [
        ("not allowed", recorded.allowed)
    ]
    if kernels:
        problems.append(("no kernel", recorded.kernels))
    for kind, names in problems:
        for attribute, (found, each, number) in decided.items():
            allowed = names[attribute]
            if allowed and found.name not in allowed:
                return TypeProblem(kind, number, each.name, found, attribute=attribute, allowed=allowed)
    # The first input of an attribute decides which kernel it is, and the kernel looks at the others.
    return mismatch


def _unrecorded_problem(row: Operation, types: tuple[DType, ...]) -> TypeProblem | None:
    """The same for an operation that TensorFlow does not have under its name."""
    for index, found in enumerate(types):
        if row.same_dtype and found is not types[0]:
            return TypeProblem("mismatch", index, str(index), found, types[0], "x")
    if types and row.takes is not None and not row.takes(types[0]):
        allowed = tuple(dtype.name for dtype in _BY_NAME.values() if row.takes(dtype))
        return TypeProblem("not allowed", 0, "x", types[0], attribute="T", allowed=allowed)
    return None


@cache
def _recorded(name: str) -> _Types | None:
    recorded = KERNEL_TYPES.get(name)
    if recorded is None:
        return None
    inputs, attributes = recorded
    return _Types(
        tuple(_input(each) for each in inputs.split()),
        {name: tuple(allowed.split()) for name, (allowed, _) in attributes.items()},
        {name: tuple(kernels.split()) for name, (_, kernels) in attributes.items()},
    )


def _input(text: str) -> _Input:
    name, _, kind = text.partition(":")
    return _Input(name, kind.rstrip("*"), kind.endswith("*"))


def has_kernel(row: Operation, dtype: DType) -> bool:
    """Whether a row computes with inputs that all have one type."""
    count = 2 if _recorded(row.name) is None else max(len(KERNEL_TYPES[row.name][0].split()), 1)
    return _type_problem(row, (dtype,) * count, True) is None


__all__: Final = ["TypeProblem", "has_kernel", "type_problem"]

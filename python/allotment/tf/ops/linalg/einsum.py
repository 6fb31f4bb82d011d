"""Sums of products in Einstein's notation."""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from allotment.tf.ops.arguments.integers import to_tensors
from allotment.tf.ops.arrays import Array, in_single, owned
from allotment.tf.ops.execute import run
from allotment.tf.ops.inference.shape_functions import Dims, Inference, Output
from allotment.tf.ops.name_scopes import in_name_scope
from allotment.tf.ops.table import dims, operation
from allotment.tf.tensors.tensor import EagerTensor

_EQUATION = re.compile(r"([a-zA-Z,.]*)(->[a-zA-Z.]*)?")
_LABELS = re.compile(r"[a-zA-Z]*(\.\.\.)?[a-zA-Z]*")


class Equation(NamedTuple):
    """An equation taken apart: one text of labels for each input, and one for the output."""

    inputs: list[str]
    output: str


def parse(equation: str, count: int) -> Equation:
    """Take an equation for ``count`` inputs apart.

    Without ``->`` the output has the labels that occur once, in alphabetical order.

    Raises:
        ValueError: It is none, or one for another number of inputs.
    """
    found = _EQUATION.fullmatch("".join(str(equation).split()))
    if found is None:
        raise ValueError(f"Unexpected character in einsum equation: {equation!r}")
    inputs = found[1].split(",")
    if len(inputs) != count:
        raise ValueError(f'Got {count} arguments for equation "{equation}", expecting {len(inputs)}.')
    if found[2] is None:
        once = sorted(label for label in set(found[1]) - set(",.") if found[1].count(label) == 1)
        output = "..." * ("..." in found[1]) + "".join(once)
    else:
        output = found[2].removeprefix("->")
    for labels in (*inputs, output):
        if _LABELS.fullmatch(labels) is None:
            raise ValueError(f"Invalid ellipsis in einsum equation: {equation!r}")
    for label in set(output) - {"."}:
        if output.count(label) > 1:
            raise ValueError(
                f"Output subscripts contain the label {label} appearing more than once: {equation!r}"
            )
        if label not in found[1]:
            raise ValueError(f"Label {label} of the output is in no input of the equation {equation!r}")
    return Equation(inputs, output)


def _lengths_fault(arrays: Sequence[Array], equation: Equation) -> str | None:
    lengths: dict[str, int] = {}
    for index, (array, labels) in enumerate(zip(arrays, equation.inputs, strict=True)):
        named = labels.replace("...", "")
        has_rest = named != labels
        if array.ndim < len(named) or (array.ndim > len(named) and not has_rest):
            return f"Expected input {index} to have rank {len(named)} but got: {array.ndim}"
        before = labels.index("...") if has_rest else len(named)
        axes = [*range(before), *range(array.ndim - (len(named) - before), array.ndim)]
        for label, axis in zip(named, axes, strict=True):
            expected = lengths.setdefault(label, array.shape[axis])
            if array.shape[axis] != expected:
                return (
                    f"Expected dimension {expected} at axis {axis} of the input shaped {dims(array)} but got "
                    f"dimension {array.shape[axis]}"
                )
    return None


def _fault(*arrays: Array, equation: Equation) -> str | None:
    fault = _lengths_fault(arrays, equation)
    if fault is not None:
        return fault
    rest = [
        array.shape[labels.index("...") : array.ndim - (len(labels) - labels.index("...") - 3)]
        for array, labels in zip(arrays, equation.inputs, strict=True)
        if "..." in labels
    ]
    try:
        broadcast = np.broadcast_shapes(*rest)
    except ValueError:
        return f"Incompatible shapes: {' vs. '.join(map(dims, arrays))}"
    if broadcast and "..." not in equation.output:
        return "The output subscripts must have an ellipsis, because the inputs broadcast over axes without a label"
    return None


@in_single
def _einsum(*arrays: Array, equation: Equation) -> Array:
    written = f"{','.join(equation.inputs)}->{equation.output}"
    # Of one input NumPy may return a view.
    return owned(np.einsum(written, *arrays, optimize=len(arrays) > 1))


def _einsum_shape(c: Inference, equation: Any) -> list[Output]:
    found: dict[str, int | None] = {}
    rest: Dims = ()
    for lengths, labels in zip(c.shapes(), equation.inputs, strict=True):
        named, ellipsis = labels.replace("...", ""), "..." in labels
        if lengths is None:
            rest = None if ellipsis else rest
            for label in named:
                found.setdefault(label, None)
            continue
        if len(lengths) < len(named) or (len(lengths) > len(named) and not ellipsis):
            c.refuse(f"Expected input to have rank {len(named)} but got: {len(lengths)}")
        before = labels.index("...") if ellipsis else len(named)
        behind = len(named) - before
        stop = len(lengths) - behind
        for label, length in zip(named, (*lengths[:before], *lengths[stop:]), strict=True):
            found[label] = c.same(found.get(label), length)
        if ellipsis:
            rest = c.broadcast(rest, lengths[before:stop])
    if rest and "..." not in equation.output:
        c.refuse("The output subscripts must have an ellipsis, because the inputs have axes without a label")
    if rest is None and "..." in equation.output:
        return c.one(None)
    start = equation.output.find("...")
    made = [found[label] for label in equation.output.replace("...", "")]
    if start >= 0:
        made[start:start] = rest or ()
    return c.one(tuple(made))


_row = operation("Einsum", _einsum, shape=_einsum_shape, fault=_fault)


@in_name_scope("einsum", None)
def einsum(equation: str, *inputs: Any, name: str | None = None, **kwargs: Any) -> EagerTensor:
    """Multiply and sum over axes that have the same letter. As ``tf.einsum``.

    ``"ij,jk->ik"`` multiplies matrices; ``...`` stands for axes without a letter, which are broadcast.

    Raises:
        ValueError: The equation is none, or is for another number of inputs.
        InvalidArgumentError: An input has another rank than its letters, or lengths for one letter differ.
        TypeError: An unknown keyword.
    """
    if unknown := set(kwargs) - {"optimize"}:
        raise TypeError(f"Invalid keyword arguments for einsum: {', '.join(sorted(unknown))}")
    parsed = parse(equation, len(inputs))
    return run(_row, to_tensors(inputs), name=name, equation=parsed)  # type: ignore[no-any-return]


__all__ = ["einsum"]

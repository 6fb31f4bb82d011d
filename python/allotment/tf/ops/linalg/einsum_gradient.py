"""Gradient of sums of products in Einstein's notation: a sum of products, too."""

import string
from typing import Any

from allotment.tf.ops.array.layout import reshape, transpose
from allotment.tf.ops.array.repetition import broadcast_to
from allotment.tf.ops.autodiff.broadcasting import lengths_of, summed_to
from allotment.tf.ops.autodiff.differentiation import Call, gradient
from allotment.tf.ops.linalg.einsum import einsum
from allotment.tf.ops.linalg.matrices import eye
from allotment.tf.ops.math.complex_numbers import conj


@gradient("Einsum", inputs="beside others")
def _einsum(call: Call, upstream: Any) -> list[Any]:
    return [_by_input(call, upstream, index) if wanted else None for index, wanted in enumerate(call.wanted)]


def _by_input(call: Call, upstream: Any, index: int) -> Any:
    equation = call.kwargs["equation"]
    labels = equation.inputs[index]
    named = labels.replace("...", "")
    lengths = _lengths(call.inputs[index], labels)
    others = [each for place, each in enumerate(equation.inputs) if place != index]
    factors = [conj(each) for place, each in enumerate(call.inputs) if place != index]
    written = [equation.output, *others]
    # A label that stands twice in the input is the diagonal of two axes: one of them gets a label of its own.
    fresh = iter(sorted(set(string.ascii_letters) - set("".join([*equation.inputs, equation.output]))))
    axes, diagonals = "", []
    for label in named:
        if label in axes:
            axes += next(fresh)
            diagonals.append(label + axes[-1])
            factors.append(eye(lengths[label], dtype=upstream._dtype))
        else:
            axes += label
    known = set("".join([*written, *diagonals])) - {"."}
    rest = "..." * ("..." in equation.output)
    found = "".join(label for label in axes if label in known)
    made = einsum(f"{','.join([*written, *diagonals])}->{rest}{found}", upstream, *factors)
    return _arranged(call.inputs[index], labels, made, axes, found)


def _rank(labels: str) -> int | None:
    """Return the number of axes that labels stand for, ``None`` if only the tensor has it."""
    return None if "..." in labels else len(labels)


def _lengths(tensor: Any, labels: str) -> dict[str, Any]:
    """The length of each label's axis."""
    before, rest, after = labels.partition("...")
    lengths = lengths_of(tensor, _rank(labels))
    pairs = list(zip(before, lengths, strict=False))
    if rest and after:
        pairs += list(zip(after, lengths[-len(after) :], strict=True))
    return dict(pairs)


def _arranged(tensor: Any, labels: str, made: Any, axes: str, found: str) -> Any:
    """Reshape a gradient, which has axes without labels first, to the shape of the input."""
    before = labels.partition("...")[0]
    lengths = lengths_of(tensor, _rank(labels))
    middle = len(lengths) - len(axes)
    of_named = [*lengths[: len(before)], *lengths[len(before) + middle :]]
    if found != axes:
        # An axis that was only summed over has one slope for all its elements.
        shape = lengths_of(made, None if middle else len(found))
        spread, kept = shape[: len(shape) - len(found)], iter(shape[len(shape) - len(found) :])
        made = reshape(made, [*spread, *(next(kept) if label in found else 1 for label in axes)])
        made = broadcast_to(made, [*spread, *of_named])
    made = summed_to(made, (*lengths[len(before) : len(before) + middle], *of_named))
    order = [*range(middle, middle + len(before)), *range(middle), *range(middle + len(before), len(lengths))]
    return made if order == sorted(order) else transpose(made, order)


__all__: list[str] = []

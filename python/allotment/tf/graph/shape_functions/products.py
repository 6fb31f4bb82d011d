"""Shapes of products of matrices and vectors."""

from typing import Any

from allotment.tf.ops.inference.shape_functions import Dims, Inference, Output, shape_function
from allotment.tf.ops.linalg.products import AS_IT_IS


def _matrix(dims: tuple[int | None, ...], form: str) -> tuple[int | None, int | None]:
    """Rows and columns of matrices as they enter the product."""
    rows, columns = dims[-2:]
    return (rows, columns) if form == AS_IT_IS else (columns, rows)


@shape_function("MatMul")
def _matmul(c: Inference, form_a: str = AS_IT_IS, form_b: str = AS_IT_IS) -> list[Output]:
    rows, inner = _matrix(c.ranked(0, 2), form_a)
    other, columns = _matrix(c.ranked(1, 2), form_b)
    c.same(inner, other)
    return c.one((rows, columns))


@shape_function("BatchMatMulV2")
def _batch_matmul(c: Inference, form_a: str, form_b: str) -> list[Output]:
    a, b = c.at_least(0, 2), c.at_least(1, 2)
    if a is None or b is None:
        return c.one(None)
    (rows, inner), (other, columns) = _matrix(a, form_a), _matrix(b, form_b)
    c.same(inner, other)
    batch = c.broadcast(a[:-2], b[:-2])
    assert batch is not None
    return c.one((*batch, rows, columns))


@shape_function("Cross")
def _cross(c: Inference) -> list[Output]:
    dims = c.merged(c.at_least(0, 1), c.at_least(1, 1))
    if dims is not None:
        c.same(dims[-1], 3)
    return c.one(dims)


@shape_function("Einsum")
def _einsum(c: Inference, equation: Any) -> list[Output]:
    found: dict[str, int | None] = {}
    rest: Dims = ()
    for dims, labels in zip(c.shapes(), equation.inputs, strict=True):
        named, ellipsis = labels.replace("...", ""), "..." in labels
        if dims is None:
            rest = None if ellipsis else rest
            for label in named:
                found.setdefault(label, None)
            continue
        if len(dims) < len(named) or (len(dims) > len(named) and not ellipsis):
            c.refuse(f"Expected input to have rank {len(named)} but got: {len(dims)}")
        before = labels.index("...") if ellipsis else len(named)
        behind = len(named) - before
        stop = len(dims) - behind
        for label, length in zip(named, (*dims[:before], *dims[stop:]), strict=True):
            found[label] = c.same(found.get(label), length)
        if ellipsis:
            rest = c.broadcast(rest, dims[before:stop])
    if rest and "..." not in equation.output:
        c.refuse("The output subscripts must have an ellipsis, because the inputs have axes without a label")
    if rest is None and "..." in equation.output:
        return c.one(None)
    start = equation.output.find("...")
    made = [found[label] for label in equation.output.replace("...", "")]
    if start >= 0:
        made[start:start] = rest or ()
    return c.one(tuple(made))


__all__: list[str] = []

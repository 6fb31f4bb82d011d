"""Choosing and repeating while a function is traced for the shapes of its results, in a graph that never runs.

What decides has no value there. As TensorFlow's graphs of functions do, each branch and each body is recorded once.
"""

from collections.abc import Callable, Sequence
from typing import Any

from allotment.tf import nest
from allotment.tf.dispatch import thread
from allotment.tf.ops.array.array import get_static_value, is_tensor
from allotment.tf.ops.convert import to_tensor
from allotment.tf.ops.indexing.masking import where
from allotment.tf.tensors.tensor_shape import TensorShape, as_shape


def is_traced(value: Any) -> bool:
    """Whether a value decides nothing because a function is traced."""
    graph = thread.state.graph
    return graph is not None and graph.never_runs and is_tensor(value) and get_static_value(value) is None


def one_of(pred: Any, results: Sequence[Any]) -> Any:
    """Return tensors for the result of one of several branches, of the shapes that all branches agree on.

    Raises:
        TypeError: The branches return tensors of different types.
        ValueError: They return different structures.
    """
    first, *others = results
    for other in others:
        nest.assert_same_structure(first, other)
        first = nest.map_structure(lambda a, b: _either(pred, a, b), first, other)
    return first


def _either(pred: Any, one: Any, other: Any) -> Any:
    if one is None and other is None:
        return None
    one, other = to_tensor(one), to_tensor(other)
    if one._dtype is not other._dtype:
        raise TypeError(f"true_fn and false_fn must return the same types: {one.dtype} and {other.dtype}")
    if pred.dtype.is_bool and one.shape.is_fully_defined() and one.shape == other.shape:
        return where(pred, one, other)
    return _of_shape(one._dtype, _agreed(one.shape, other.shape))


def _agreed(one: TensorShape, other: TensorShape) -> TensorShape:
    if one.rank is None or one.rank != other.rank:
        return TensorShape(None)
    return TensorShape([a if a == b else None for a, b in zip(one._dims, other._dims, strict=True)])  # type: ignore[arg-type]


def _of_shape(dtype: Any, shape: TensorShape) -> Any:
    graph = thread.state.graph
    assert graph is not None, "called while a graph records"
    return graph._placeholder(dtype, shape)


def after_loop(before: Any, body: Callable[..., Any], shape_invariants: Any) -> tuple[Any, bool]:
    """Record the body of a loop once.

    Returns:
        Tensors for the values after the loop, and whether the body returns one alone.

    Raises:
        ValueError: The body changes a shape, and no invariant says so.
    """
    made = body(*before)
    alone = not nest.is_nested(made)
    if alone:
        made = [made]
    nest.assert_same_structure(list(before), list(made))
    flat = [to_tensor(each) for each in nest.flatten(before)]
    invariants = (
        [each.shape for each in flat]
        if shape_invariants is None
        else [as_shape(each) for each in nest.flatten(shape_invariants)]
    )
    values = []
    for start, each, invariant in zip(flat, nest.flatten(made), invariants, strict=True):
        end = to_tensor(each)
        if end.shape._dims == invariant._dims:
            values.append(end)
            continue
        if shape_invariants is None and not invariant.is_compatible_with(end.shape):
            raise ValueError(
                f"Input tensor {start!r} enters the loop with shape {start.shape}, but has shape {end.shape} after one "
                "iteration. To allow the shape to vary across iterations, use the `shape_invariants` argument of "
                "tf.while_loop to specify a less-specific shape."
            )
        values.append(_of_shape(end._dtype, invariant))
    return nest.pack_sequence_as(before, values), alone


__all__ = ["after_loop", "is_traced", "one_of"]

"""Types and shapes of the elements of data sets, derived before there are elements."""

from collections.abc import Callable, Iterator
from typing import Any

from allotment.tf.data.structure import map_values, same_structure, spec_of
from allotment.tf.tensors.tensor_shape import TensorShape
from allotment.tf.tensors.tensor_spec import TensorSpec


def row_spec(spec: Any) -> Any:
    """Return the spec of slices along the first axis."""
    return map_values(lambda each: TensorSpec(each.shape[1:], each.dtype), spec)


def batched_spec(spec: Any, size: int | None) -> Any:
    """Return the spec of batches; ``size`` is ``None`` if batches differ in size."""

    def batched(each: TensorSpec) -> TensorSpec:
        dims = each.shape.dims
        return TensorSpec(None if dims is None else [size, *dims], each.dtype)

    return map_values(batched, spec)


def common_spec(one: Any, other: Any) -> Any:
    """Return the most specific spec of elements of two data sets.

    Raises:
        TypeError: Structures or types differ.
    """
    if not same_structure(one, other) or any(
        one.dtype is not other.dtype for one, other in zip(_flat(one), _flat(other), strict=True)
    ):
        raise TypeError(f"Incompatible dataset elements:\n  {one} vs.   {other}")

    def common(left: TensorSpec, right: TensorSpec) -> TensorSpec:
        return TensorSpec(left.shape.most_specific_compatible_shape(right.shape), left.dtype)

    return map_values(common, one, other)


def _flat(spec: Any) -> list[TensorSpec]:
    found: list[TensorSpec] = []
    map_values(found.append, spec)
    return found


def traced_spec(function: Callable[..., Any], spec: Any, elements: Callable[[], Iterator[Any]]) -> Any:
    """Return the spec of a function's results, by a call in a graph or else from the first result.

    Args:
        function: The function of elements.
        spec: The spec of its arguments.
        elements: Starts to iterate over its results.

    Raises:
        ValueError: The function cannot be called in a graph, and there is no element.
    """
    from allotment.tf.graph.graph import Graph
    from allotment.tf.graph.placeholders import placeholder

    try:
        with Graph().as_default():
            given = map_values(lambda each: placeholder(each.dtype, each.shape), spec)
            made = function(*given) if type(given) is tuple else function(given)
            return map_values(_symbolic_spec, tuple(made) if type(made) is list else made)
    except Exception:  # functions for eager tensors may raise any error in a graph
        pass
    for element in elements():
        return spec_of(element)
    raise ValueError(
        f"the types of the results of {function!r} are not known: it does not run in a graph, and there is no element"
    )


def _symbolic_spec(value: Any) -> TensorSpec:
    from allotment.tf.ops.convert import to_tensor

    tensor = to_tensor(value)
    return TensorSpec(TensorShape(tensor.shape), tensor.dtype)


__all__ = ["batched_spec", "common_spec", "row_spec", "traced_spec"]

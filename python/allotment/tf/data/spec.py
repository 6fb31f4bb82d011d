"""What is known of the elements of data sets before there are any."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from allotment.tf.data.structure import map_values, same_structure, spec_of
from allotment.tf.tensors.tensor_shape import TensorShape
from allotment.tf.tensors.tensor_spec import TensorSpec

if TYPE_CHECKING:
    from allotment.tf.data.dataset import Dataset


def row_spec(spec: Any) -> Any:
    """Of the slices along the first axis."""
    return map_values(lambda each: TensorSpec(each.shape[1:], each.dtype), spec)


def batched_spec(spec: Any, size: int | None) -> Any:
    """Of batches, with a size if it is always the same."""

    def batched(each: TensorSpec) -> TensorSpec:
        dims = each.shape.dims
        return TensorSpec(None if dims is None else [size, *dims], each.dtype)

    return map_values(batched, spec)


def common_spec(one: Any, other: Any) -> Any:
    """Of elements of one data set or of another.

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


def traced_spec(function: Callable[..., Any], source: "Dataset") -> Any:
    """Of what a function makes of elements: found by calling it in a graph, or else with the first element.

    Raises:
        ValueError: It cannot be called in a graph, and there is no element.
    """
    from allotment.tf.graph.graph import Graph
    from allotment.tf.graph.nodes import placeholder

    try:
        with Graph().as_default():
            given = map_values(lambda each: placeholder(each.dtype, each.shape), source.element_spec)
            made = function(*given) if type(given) is tuple else function(given)
            return map_values(_symbolic_spec, tuple(made) if type(made) is list else made)
    except Exception:  # whatever a function for eager tensors does not find in a graph
        pass
    for element in source.take(1).map(function):
        return spec_of(element)
    raise ValueError(
        f"what {function!r} makes of elements cannot be told: it does not run in a graph, and there is no element"
    )


def _symbolic_spec(value: Any) -> TensorSpec:
    from allotment.tf.ops.convert import to_tensor

    tensor = to_tensor(value)
    return TensorSpec(TensorShape(tensor.shape), tensor.dtype)


__all__ = ["batched_spec", "common_spec", "row_spec", "traced_spec"]

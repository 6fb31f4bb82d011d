"""Functions of TensorFlow 1 that only graphs have: placeholders, colocation, names with a default."""

from contextlib import AbstractContextManager, nullcontext
from typing import Any

from allotment.tf.graph.default import get_default_graph
from allotment.tf.graph.nodes.node import SymbolicTensor, current_graph
from allotment.tf.graph.nodes.rows import PLACEHOLDER_WITH_DEFAULT
from allotment.tf.ops.convert import to_tensor
from allotment.tf.tensors.dtype import as_dtype
from allotment.tf.tensors.tensor_shape import as_shape


def placeholder(dtype: Any, shape: Any = None, name: str | None = None) -> SymbolicTensor:
    """Add a tensor that is fed with a value. As ``tf.compat.v1.placeholder``.

    Args:
        dtype: The element type.
        shape: What is known of the shape; ``None`` for any.
        name: The node's name.

    Raises:
        RuntimeError: Operations run eagerly.
    """
    graph = current_graph()
    if graph is None:
        raise RuntimeError("tf.placeholder() is not compatible with eager execution.")
    return graph._placeholder(as_dtype(dtype), as_shape(shape), name)


def placeholder_with_default(input: Any, shape: Any, name: str | None = None) -> Any:  # noqa: A002
    """Add a tensor that is its input unless another value is fed; eagerly the input. As TensorFlow's."""
    tensor: Any = to_tensor(input)
    graph = current_graph()
    if graph is None:
        return tensor
    output = (tensor._dtype, as_shape(shape))
    return graph.add(PLACEHOLDER_WITH_DEFAULT, (tensor,), [output], name=name)._outputs[0]


def colocate_with(op: Any, ignore_existing: bool = False) -> AbstractContextManager[None]:
    """Put the nodes of a ``with`` block on the device of another one. As ``tf.compat.v1.colocate_with``."""
    graph = current_graph()
    return nullcontext() if graph is None else graph.colocate_with(op, ignore_existing)


def name_scope(
    name: str | None, default_name: str | None = None, values: Any = None
) -> AbstractContextManager[str]:
    """Put a name in front of the names of nodes. As ``tf.compat.v1.name_scope``.

    Args:
        name: The name; without one ``default_name``.
        default_name: The name without ``name``.
        values: Tensors that tell the graph; not looked at.

    Raises:
        TypeError: Neither name is given, or one is no text.
    """
    del values
    chosen = default_name if name is None else name
    if chosen is not None and not isinstance(chosen, str):
        raise TypeError(
            f"`default_name` type ({type(chosen)}) is not a string type. You likely meant to pass this into the "
            "`values` kwarg."
        )
    return get_default_graph().name_scope(chosen)


__all__ = [
    "colocate_with",
    "name_scope",
    "placeholder",
    "placeholder_with_default",
]

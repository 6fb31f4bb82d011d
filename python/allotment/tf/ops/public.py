"""Names and descriptions for functions that are made and not written."""

from collections.abc import Callable
from typing import Any

from allotment.tf.ops.execute import binary, unary
from allotment.tf.ops.inference.common import broadcasting, unchanged
from allotment.tf.ops.table import operation, same_shapes
from allotment.tf.tensors.tensor import EagerTensor


def public(call: Callable[..., EagerTensor], name: str, doc: str) -> Callable[..., EagerTensor]:
    """Give a function that was made for users its name and its description; returns it."""
    call.__name__ = call.__qualname__ = name
    call.__doc__ = doc
    return call


def public_unary(
    name: str, op: str, function: Callable[..., Any], doc: str, **fields: Any
) -> Callable[..., EagerTensor]:
    """Enter an operation with one input into the table and make its function."""
    return public(unary(operation(op, function, **({"shape": unchanged} | fields))), name, doc)


def public_binary(
    name: str, op: str, function: Callable[..., Any], doc: str, **fields: Any
) -> Callable[..., EagerTensor]:
    """Enter an operation with two inputs of one type, broadcast to each other, and make its function."""
    return public(
        binary(operation(op, function, **({"shape": broadcasting, "fault": same_shapes} | fields))), name, doc
    )

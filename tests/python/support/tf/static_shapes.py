"""Compares the static types and shapes of a graph's tensors with their values."""

from typing import Any

import numpy as np

#: Operations whose output shapes depend on the elements of their inputs.
BY_ELEMENTS = frozenset(
    {
        *("BooleanMask", "DenseBincount", "DynamicPartition", "DynamicStitch", "Range", "SequenceMask"),
        *("Unique", "UniqueWithCounts", "Where"),
        *(f"Segment{kind}" for kind in ("Max", "Mean", "Min", "Prod", "Sum")),
    }
)
#: Nodes whose outputs are not values, or have no value before an assignment.
_NO_VALUES = frozenset({"ReadVariableOp", "VarHandleOp", "VariableV2"})


def tensors_of(graph: Any) -> list[Any]:
    """Return every tensor of a graph that a session can compute."""
    return [
        tensor
        for operation in graph.get_operations()
        if operation.type not in _NO_VALUES
        for tensor in operation.outputs
    ]


def check(tensors: list[Any], values: list[Any]) -> set[str]:
    """Compare the static types and shapes of tensors with their values.

    A known shape must be correct, and a shape must be known if the shapes of all inputs are.

    Returns:
        The types of the operations that created the tensors.
    """
    seen = set()
    for tensor, value in zip(tensors, values, strict=True):
        operation, array = tensor.op, np.asarray(value)
        seen.add(operation.type)
        text = f"{operation.type} of {[str(each.shape) for each in operation.inputs]} with {operation._args}"
        assert tensor.shape.is_compatible_with(array.shape), f"{text}: {tensor.shape}, but {array.shape} runs"
        if tensor.dtype.as_numpy_dtype is not object:
            assert tensor.dtype.as_numpy_dtype == array.dtype, text
        # Additional inputs are shapes that are known only when a session runs.
        inferable = operation._count == len(operation.inputs) and operation.type != "Placeholder"
        if (
            inferable
            and operation.type not in BY_ELEMENTS
            and all(each.shape.is_fully_defined() for each in operation.inputs)
        ):
            assert tensor.shape.is_fully_defined(), f"{text}: only {tensor.shape} is known"
    return seen


__all__ = ["check", "tensors_of"]

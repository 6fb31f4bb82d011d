"""Checks what a graph says of shapes against what runs."""

from typing import Any

import numpy as np

#: Operations whose shapes depend on the elements of their inputs.
BY_ELEMENTS = frozenset(
    {
        *("BooleanMask", "DenseBincount", "DynamicPartition", "DynamicStitch", "Range", "SequenceMask"),
        *("Unique", "UniqueWithCounts", "Where"),
        *(f"Segment{kind}" for kind in ("Max", "Mean", "Min", "Prod", "Sum")),
    }
)
#: Nodes whose outputs are no values, or none that a session has before something is assigned.
_NO_VALUES = frozenset({"ReadVariableOp", "VarHandleOp", "VariableV2"})


def tensors_of(graph: Any) -> list[Any]:
    """Every tensor of a graph that a session can compute."""
    return [
        tensor
        for operation in graph.get_operations()
        if operation.type not in _NO_VALUES
        for tensor in operation.outputs
    ]


def check(tensors: list[Any], values: list[Any]) -> set[str]:
    """Compare types and shapes of tensors with their values; returns the names of the operations that made them.

    A shape that is known must be right, and one whose inputs' shapes are all known must be known.
    """
    seen = set()
    for tensor, value in zip(tensors, values, strict=True):
        operation, array = tensor.op, np.asarray(value)
        seen.add(operation.type)
        said = f"{operation.type} of {[str(each.shape) for each in operation.inputs]} with {operation._args}"
        assert tensor.shape.is_compatible_with(array.shape), f"{said}: {tensor.shape}, but {array.shape} runs"
        if tensor.dtype.as_numpy_dtype is not object:
            assert tensor.dtype.as_numpy_dtype == array.dtype, said
        # A shape among the inputs that only a session knows is behind the row's own.
        told = operation._count == len(operation.inputs) and operation.type != "Placeholder"
        if (
            told
            and operation.type not in BY_ELEMENTS
            and all(each.shape.is_fully_defined() for each in operation.inputs)
        ):
            assert tensor.shape.is_fully_defined(), f"{said}: only {tensor.shape} is known"
    return seen


__all__ = ["check", "tensors_of"]

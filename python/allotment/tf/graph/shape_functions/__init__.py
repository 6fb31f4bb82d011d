"""Types and shapes of the outputs of operations, from what a graph knows of their inputs: as TensorFlow's functions.

Each row of the operation table has one shape function, by its name. It computes with lengths of which some are not
known, and with the numbers among the arguments, of which some may be known only when a session runs. No operation
runs to find a shape.
"""

from collections.abc import Sequence
from typing import Any

from allotment.tf.graph.shape_functions import (  # noqa: F401 - they enter the functions
    arrays,
    convolution,
    effects,
    elementwise,
    gathering,
    joining,
    layout,
    linalg,
    products,
    randomness,
    reductions,
    scattering,
    segments,
    sequences,
    slicing,
    sorting,
    texts,
)
from allotment.tf.graph.shape_functions.inference import MANY, SHAPE_FUNCTIONS, Inference
from allotment.tf.ops.table import Operation
from allotment.tf.tensors.dtype import DType
from allotment.tf.tensors.tensor_shape import TensorShape, known_shape


def infer(
    row: Operation, inputs: Sequence[Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> list[tuple[DType, TensorShape]]:
    """The type and the shape of each output of a row.

    Raises:
        NotImplementedError: The row has no shape function, and so no place in a graph.
        ValueError: What is known of the shapes and arguments contradicts itself.
    """
    function = SHAPE_FUNCTIONS.get(row.name)
    if function is None:
        raise NotImplementedError(f"operation {row.name} has no shape function: it cannot be in a graph")
    return [
        (dtype, dims if type(dims) is TensorShape else known_shape(dims))  # type: ignore[arg-type]
        for dtype, dims in function(Inference(row, inputs), *args, **kwargs)
    ]


__all__ = ["MANY", "SHAPE_FUNCTIONS", "infer"]

"""The shape functions of all operations, by family."""

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

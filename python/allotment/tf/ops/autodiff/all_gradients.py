"""The gradients of all operations: importing this module enters each into the operation table."""

from allotment.tf.ops.array import (  # noqa: F401 - each enters its gradients
    array_gradient,
    creation_gradient,
    joining_gradient,
    layout_gradient,
    padding_gradient,
    reordering_gradient,
    repetition_gradient,
    splitting_gradient,
)
from allotment.tf.ops.autodiff import constants  # noqa: F401 - operations without a gradient
from allotment.tf.ops.control import (  # noqa: F401 - each enters its gradients
    numerics_gradient,
)
from allotment.tf.ops.indexing import (  # noqa: F401 - each enters its gradients
    gathering_gradient,
    masking_gradient,
    partition_gradient,
    scattering_gradient,
    slicing_gradient,
    sorting_gradient,
)
from allotment.tf.ops.linalg import (  # noqa: F401 - each enters its gradients
    band_part_gradient,
    diagonals_gradient,
    einsum_gradient,
    exponential_gradient,
    factor_gradient,
    products_gradient,
    solve_gradient,
    tensor_products_gradient,
)
from allotment.tf.ops.math import (  # noqa: F401 - each enters its gradients
    arithmetic_gradient,
    complex_numbers_gradient,
    division_gradient,
    real_gradient,
    sequences_gradient,
    special_gradient,
)
from allotment.tf.ops.nn import (  # noqa: F401 - each enters its gradients
    activations_gradient,
    convolution_gradient,
    cross_entropy_gradient,
    layers_gradient,
    pooling_gradient,
    softmax_gradient,
)
from allotment.tf.ops.random import (  # noqa: F401 - each enters its gradients
    random_gradient,
)
from allotment.tf.ops.reduction import (  # noqa: F401 - each enters its gradients
    reduce_gradient,
    segments_gradient,
)

__all__: list[str] = []

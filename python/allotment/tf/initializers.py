"""``tf.initializers``: functions that create the initial values of variables."""

from allotment.tf.names.missing_names import refuse_other_names
from allotment.tf.ops.random.initializers import (
    Initializer,
    constant_initializer,
    ones_initializer,
    random_normal_initializer,
    random_uniform_initializer,
    zeros_initializer,
)

Constant = constant = constant_initializer
Ones = ones = ones_initializer
RandomNormal = random_normal = random_normal_initializer
RandomUniform = random_uniform = random_uniform_initializer
Zeros = zeros = zeros_initializer

__all__ = [
    "Constant",
    "Initializer",
    "Ones",
    "RandomNormal",
    "RandomUniform",
    "Zeros",
    "constant",
    "ones",
    "random_normal",
    "random_uniform",
    "zeros",
]

refuse_other_names(__name__)

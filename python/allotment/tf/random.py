"""``tf.random``: random numbers.

Seeds determine the numbers by TensorFlow's rules (see ``set_seed``), but the generators are NumPy's: the same seed
gives other numbers than in TensorFlow.
"""

from allotment.tf.names.missing_names import refuse_other_names
from allotment.tf.ops.random.generator import Generator, get_global_generator, set_global_generator
from allotment.tf.ops.random.random import (
    categorical,
    gamma,
    normal,
    poisson,
    shuffle,
    truncated_normal,
    uniform,
)
from allotment.tf.ops.random.seeds import set_seed
from allotment.tf.ops.random.stateless import (
    fold_in,
    split,
    stateless_categorical,
    stateless_normal,
    stateless_truncated_normal,
    stateless_uniform,
)

__all__ = [
    "Generator",
    "categorical",
    "fold_in",
    "gamma",
    "get_global_generator",
    "normal",
    "poisson",
    "set_global_generator",
    "set_seed",
    "shuffle",
    "split",
    "stateless_categorical",
    "stateless_normal",
    "stateless_truncated_normal",
    "stateless_uniform",
    "truncated_normal",
    "uniform",
]

refuse_other_names(__name__)

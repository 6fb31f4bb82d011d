"""``tf.layers`` of TensorFlow 1: functions that make the variables of a layer by name, and compute with them.

TensorFlow 2.21 does not have them with Keras 3. Names of variables and scopes, reuse, and collections are those of
TensorFlow 1.15.
"""

from allotment.tf.compat.layers.normalization import batch_normalization
from allotment.tf.compat.layers.trained import conv2d, dense
from allotment.tf.compat.layers.without_variables import average_pooling2d, dropout, flatten, max_pooling2d
from allotment.tf.names.missing_names import refuse_other_names

__all__ = [
    "average_pooling2d",
    "batch_normalization",
    "conv2d",
    "dense",
    "dropout",
    "flatten",
    "max_pooling2d",
]

refuse_other_names(__name__)

"""TensorFlow's names by version: ``tf.compat``."""

from allotment.compat import v1, v2

__all__ = ["v1", "v2"]

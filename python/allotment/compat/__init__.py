"""TensorFlow's names by version, and conversions between Python's: ``tf.compat``."""

from allotment.compat import v1, v2
from allotment.compat.texts import as_bytes, as_str, as_str_any, as_text, dimension_value, path_to_str

__all__ = ["as_bytes", "as_str", "as_str_any", "as_text", "dimension_value", "path_to_str", "v1", "v2"]

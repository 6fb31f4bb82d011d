"""TensorFlow's names by version, and conversions between Python's: ``tf.compat``."""

from allotment.tf.compat import v1, v2
from allotment.tf.compat.conversions import (
    as_bytes,
    as_str,
    as_str_any,
    as_text,
    dimension_value,
    path_to_str,
)
from allotment.tf.names.missing_names import refuse_other_names

__all__ = ["as_bytes", "as_str", "as_str_any", "as_text", "dimension_value", "path_to_str", "v1", "v2"]

refuse_other_names(__name__)

"""``tf.strings``: operations on tensors of strings."""

from allotment.tf.names.missing_names import refuse_other_names
from allotment.tf.ops.text.number_texts import as_string, to_number
from allotment.tf.ops.text.printing import string_format as format  # noqa: A004 - the name TensorFlow has
from allotment.tf.ops.text.text_parts import reduce_join, substr
from allotment.tf.ops.text.texts import join, length, lower, strip, upper

__all__ = [
    "as_string",
    "format",
    "join",
    "length",
    "lower",
    "reduce_join",
    "strip",
    "substr",
    "to_number",
    "upper",
]

refuse_other_names(__name__)

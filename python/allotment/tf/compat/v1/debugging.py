"""``tf.compat.v1.debugging``: ``tf.debugging`` with TensorFlow 1's forms of assertions."""

from typing import Final

from allotment.tf import debugging
from allotment.tf.compat.functions.assertions import ASSERTIONS, verify_tensor_all_finite
from allotment.tf.compat.functions.namespace import extend_namespace
from allotment.tf.names.missing_names import refuse_other_names

_OWN: Final = {**ASSERTIONS, "assert_all_finite": verify_tensor_all_finite}

__getattr__, __dir__ = extend_namespace(__name__, debugging, _OWN)

refuse_other_names(__name__)

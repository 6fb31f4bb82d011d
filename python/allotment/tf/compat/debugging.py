"""``tf.compat.v1.debugging``: ``tf.debugging`` with TensorFlow 1's forms of assertions."""

from typing import Any

from allotment.tf import debugging
from allotment.tf.compat.assertions import ASSERTIONS, verify_tensor_all_finite
from allotment.tf.names.missing_names import missing_name_error

assert_all_finite = verify_tensor_all_finite


def __getattr__(name: str) -> Any:
    if name in ASSERTIONS:
        return ASSERTIONS[name]
    if name in debugging.__all__:
        return getattr(debugging, name)
    raise missing_name_error("allotment.tf.compat.v1.debugging", name, __dir__())


def __dir__() -> list[str]:
    return sorted({*debugging.__all__, *ASSERTIONS})

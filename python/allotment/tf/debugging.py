"""``tf.debugging``: placement logging and assertions about values, shapes and types."""

from allotment.devices import placement_log
from allotment.devices.context import context
from allotment.tf.names.missing_names import refuse_other_names
from allotment.tf.ops.control.assertions import (
    Assert,
    assert_equal,
    assert_greater,
    assert_greater_equal,
    assert_less,
    assert_less_equal,
    assert_near,
    assert_negative,
    assert_non_negative,
    assert_non_positive,
    assert_none_equal,
    assert_positive,
)
from allotment.tf.ops.control.numerics import assert_all_finite, check_numerics
from allotment.tf.ops.control.shape_assertions import (
    assert_rank,
    assert_rank_at_least,
    assert_rank_in,
    assert_scalar,
    assert_shapes,
)
from allotment.tf.ops.control.type_assertions import (
    assert_integer,
    assert_proper_iterable,
    assert_same_float_dtype,
    assert_type,
    is_numeric_tensor,
)


def get_log_device_placement() -> bool:
    """Return whether each operation logs the device that it ran on; false by default.

    As ``tf.debugging.get_log_device_placement``.

    Raises:
        ValueError: Memory growth differs between GPUs: this getter, like others, checks all settings together.
        TypeError: The setter was given something other than a bool.
    """
    context().assemble()
    return context().log_device_placement


def set_log_device_placement(enabled: bool | None) -> None:
    """Choose whether each operation logs the device that it ran on.

    As ``tf.debugging.set_log_device_placement``, except that it may be called at any time, not only before the first
    operation.

    Args:
        enabled: Whether to log; ``None`` is false.

    Raises:
        TypeError: ``enabled`` is not a bool and the runtime is initialized; before that, the getter raises it.
    """
    context().store_flag("log_placement", enabled)
    placement_log.set_enabled(bool(enabled))


__all__ = [
    "Assert",
    "assert_all_finite",
    "assert_equal",
    "assert_greater",
    "assert_greater_equal",
    "assert_integer",
    "assert_less",
    "assert_less_equal",
    "assert_near",
    "assert_negative",
    "assert_non_negative",
    "assert_non_positive",
    "assert_none_equal",
    "assert_positive",
    "assert_proper_iterable",
    "assert_rank",
    "assert_rank_at_least",
    "assert_rank_in",
    "assert_same_float_dtype",
    "assert_scalar",
    "assert_shapes",
    "assert_type",
    "check_numerics",
    "get_log_device_placement",
    "is_numeric_tensor",
    "set_log_device_placement",
]

refuse_other_names(__name__)

"""Checks that all elements are finite."""

from typing import Any

import numpy as np

from allotment.tf.ops.arrays import Array
from allotment.tf.ops.convert import to_tensor
from allotment.tf.ops.execute import run
from allotment.tf.ops.inference.common import unchanged
from allotment.tf.ops.table import operation
from allotment.tf.tensors.tensor import EagerTensor


def _numerics_fault(array: Array, message: str) -> str | None:
    found = [what for what, test in (("Inf", np.isinf), ("NaN", np.isnan)) if test(array).any()]
    return f"{message} : Tensor had {' and '.join(found)} values" if found else None


def _same(array: Array, message: str) -> Array:
    return array


_check_numerics = operation("CheckNumerics", _same, shape=unchanged, fault=_numerics_fault)


def check_numerics(tensor: Any, message: str, name: str | None = None) -> EagerTensor:
    """Return the tensor if all its elements are finite. As ``tf.debugging.check_numerics``.

    Raises:
        InvalidArgumentError: One is infinite or a NaN.
    """
    tensor = to_tensor(tensor)
    return run(_check_numerics, (tensor,), message, name=name)  # type: ignore[no-any-return]


def assert_all_finite(x: Any, message: str, name: str | None = None) -> EagerTensor:
    """Return the tensor if all its elements are finite. As ``tf.debugging.assert_all_finite``."""
    return check_numerics(x, message, name)


__all__ = ["assert_all_finite", "check_numerics"]

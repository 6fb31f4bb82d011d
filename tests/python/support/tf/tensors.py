"""Creates tensors and checks them."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from allotment.errors import InvalidArgumentError
from allotment.tf.ops.array.constants import constant
from allotment.tf.tensors.tensor import EagerTensor

#: Relative tolerance by element type: a few units in the last place.
TOLERANCES = {"float16": 2e-3, "float32": 1e-6, "float64": 1e-13, "complex64": 1e-6, "complex128": 1e-13}


def tensor(value: Any, dtype: str | None = None) -> EagerTensor:
    """Create a tensor from a value."""
    return constant(value, dtype)


def check(result: Any, expected: Any, dtype: str, rtol: float | None = None, atol: float = 0) -> None:
    """Check a tensor's type, shape and values, and that its array is C-contiguous."""
    assert isinstance(result, EagerTensor)
    assert result.dtype.name == dtype
    wanted = np.asarray(expected)
    assert result.shape == wanted.shape
    if dtype in TOLERANCES:
        tolerance = TOLERANCES[dtype] if rtol is None else rtol
        np.testing.assert_allclose(result.numpy(), wanted, rtol=tolerance, atol=atol)
    else:
        np.testing.assert_array_equal(result.numpy(), wanted)
    assert result._array.flags.c_contiguous


def same(x: Any, y: Any) -> bool:
    """Tell whether all elements of two tensors are equal."""
    return bool((x.numpy() == y.numpy()).all())


def check_refused(call: Callable[..., Any], *args: Any, text: str, **kwargs: Any) -> None:
    """Check that a call raises an `InvalidArgumentError` whose message contains `text`."""
    with pytest.raises(InvalidArgumentError, match=re.escape(text)):
        call(*args, **kwargs)

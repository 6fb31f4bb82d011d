"""Activation functions, against their definitions in Python."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from allotment.tf import GradientTape, nn
from support.tf.tensors import check, check_refused, tensor

FLOATS = ["float16", "float32", "float64"]
PLACES = [-3.0, -0.5, 0.0, 0.5, 2.0, 7.0]
#: TensorFlow keeps these constants in single precision.
SLOPE, ROOT = (float(np.float32(each)) for each in (0.2, 0.5**0.5))


def normal_share(x: float) -> float:
    return math.erfc(-x * ROOT) / 2


DEFINITIONS: list[tuple[Callable[..., Any], Callable[[float], float]]] = [
    (nn.relu, lambda x: max(x, 0)),
    (nn.relu6, lambda x: min(max(x, 0), 6)),
    (nn.leaky_relu, lambda x: x if x > 0 else SLOPE * x),
    (nn.elu, lambda x: x if x > 0 else math.exp(x) - 1),
    (nn.selu, lambda x: 1.0507009873554805 * (x if x > 0 else 1.6732632423543772 * (math.exp(x) - 1))),
    (nn.gelu, lambda x: x * normal_share(x)),
    (nn.silu, lambda x: x / (1 + math.exp(-x))),
    (nn.swish, lambda x: x / (1 + math.exp(-x))),
    (nn.softplus, lambda x: math.log(1 + math.exp(x))),
    (nn.softsign, lambda x: x / (1 + abs(x))),
    (nn.sigmoid, lambda x: 1 / (1 + math.exp(-x))),
    (nn.tanh, math.tanh),
]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("ours", "definition"), DEFINITIONS, ids=[each[0].__name__ for each in DEFINITIONS])
def test_definitions(dtype: str, ours: Callable[..., Any], definition: Callable[[float], float]) -> None:
    tolerance = {"float16": 5e-3, "float32": 1e-5, "float64": 1e-12}[dtype]
    expected = [definition(x) for x in PLACES]
    check(ours(tensor(PLACES, dtype)), expected, dtype, rtol=tolerance, atol=tolerance / 10)
    check(ours(tensor(2.0, dtype)), definition(2.0), dtype, rtol=tolerance)
    assert np.isnan(ours(tensor([np.nan], dtype)).numpy()).all()


def test_the_approximation_of_gelu() -> None:
    def approximate(x: float) -> float:
        return 0.5 * x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))

    expected = [approximate(x) for x in PLACES]
    check(nn.gelu(tensor(PLACES), approximate=True), expected, "float32", rtol=1e-5, atol=1e-6)
    with pytest.raises(ValueError, match=r"`features\.dtype` must be a floating point tensor"):
        nn.gelu(tensor([1]))


@pytest.mark.parametrize("count", [7, 100_001])
def test_gradients_at_the_ends_and_below_what_is_not_finite(count: int) -> None:
    # The values are TensorFlow's: its products of zero and infinity are NaNs, its choices are not.
    x = tensor(np.resize([-np.inf, -2, -0.0, 3, 7, np.inf, np.nan], count), "float32")
    upstream = tensor(np.full(count, np.inf), "float32")
    nan, inf = np.nan, np.inf
    cases: dict[Callable[..., Any], list[float]] = {
        nn.relu: [nan, nan, nan, inf, inf, inf, nan],
        nn.relu6: [nan, nan, nan, inf, nan, nan, nan],
        nn.leaky_relu: [inf] * 7,
        nn.elu: [nan, inf, inf, inf, inf, inf, inf],
        nn.selu: [nan, inf, inf, inf, inf, inf, inf],
    }
    for function, expected in cases.items():
        with GradientTape() as tape:
            tape.watch(x)
            y = function(x)
        check(tape.gradient(y, x, upstream), np.resize(expected, count), "float32")


def test_ends() -> None:
    ends = tensor([-np.inf, np.inf])
    check(nn.relu(ends), [0, np.inf], "float32")
    check(nn.elu(ends), [-1, np.inf], "float32")
    check(nn.selu(ends), [-1.7580993408473766, np.inf], "float32")
    check(nn.softplus(ends), [0, np.inf], "float32")


def test_integers() -> None:
    check(nn.relu(tensor([-1, 2])), [0, 2], "int32")
    check(nn.relu(tensor([1, 2], "uint8")), [1, 2], "uint8")
    check(nn.relu6(tensor([-1, 9], "int64")), [0, 6], "int64")
    check(nn.leaky_relu(tensor([-10, 2])), [-2, 2], "float32")
    check_refused(nn.elu, tensor([1]), text="[Op:Elu]")


def test_arguments_by_name() -> None:
    x = tensor([-1.0, 2.0])
    check(nn.relu(features=x), [0, 2], "float32")
    check(nn.leaky_relu(features=x, alpha=0.5), [-0.5, 2], "float32")
    check(nn.silu(x, beta=0.0), [-0.5, 1], "float32")
    with pytest.raises(TypeError, match="Expected float for argument 'alpha'"):
        nn.leaky_relu(x, alpha=tensor(0.5))

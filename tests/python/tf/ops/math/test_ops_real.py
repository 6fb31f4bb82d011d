"""Functions of real and complex numbers, against Python's own and against identities."""

import cmath
import math
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from allotment.tf import math as tf_math
from support.tf.tensors import check, check_refused, tensor

# The function of ours, Python's, and places where it has a value.
REAL: list[tuple[Callable[..., Any], Callable[[float], float], list[float]]] = [
    (tf_math.sqrt, math.sqrt, [0.25, 2.0, 100.0]),
    (tf_math.rsqrt, lambda x: 1 / math.sqrt(x), [0.25, 2.0, 100.0]),
    (tf_math.exp, math.exp, [-3.0, 0.0, 1.5]),
    (tf_math.expm1, math.expm1, [-3.0, 1e-4, 1.5]),
    (tf_math.log, math.log, [0.25, 2.0, 100.0]),
    (tf_math.log1p, math.log1p, [-0.5, 1e-4, 3.0]),
    (tf_math.sin, math.sin, [-2.0, 0.5, 1.0]),
    (tf_math.cos, math.cos, [-2.0, 0.5, 1.0]),
    (tf_math.tan, math.tan, [-1.0, 0.5, 1.0]),
    (tf_math.asin, math.asin, [-0.5, 0.25, 1.0]),
    (tf_math.acos, math.acos, [-0.5, 0.25, 0.75]),
    (tf_math.atan, math.atan, [-2.0, 0.5, 30.0]),
    (tf_math.sinh, math.sinh, [-2.0, 0.5, 1.0]),
    (tf_math.cosh, math.cosh, [-2.0, 0.5, 1.0]),
    (tf_math.tanh, math.tanh, [-2.0, 0.5, 1.0]),
    (tf_math.asinh, math.asinh, [-2.0, 0.5, 1.0]),
    (tf_math.acosh, math.acosh, [1.5, 2.0, 3.0]),
    (tf_math.atanh, math.atanh, [-0.5, 0.25, 0.75]),
    (tf_math.sigmoid, lambda x: 1 / (1 + math.exp(-x)), [-9.0, 0.5, 4.0]),
    (tf_math.erf, math.erf, [-2.0, 0.5, 3.0]),
    (tf_math.erfc, math.erfc, [-2.0, 0.5, 1.5]),
    (tf_math.lgamma, math.lgamma, [0.5, 3.5, 10.0]),
    (tf_math.softplus, lambda x: math.log(1 + math.exp(x)), [-2.0, 0.5, 3.0]),
]
COMPLEX: list[tuple[Callable[..., Any], Callable[[complex], complex]]] = [
    (tf_math.sqrt, cmath.sqrt),
    (tf_math.exp, cmath.exp),
    (tf_math.log, cmath.log),
    (tf_math.sin, cmath.sin),
    (tf_math.cos, cmath.cos),
    (tf_math.tanh, cmath.tanh),
    (tf_math.rsqrt, lambda x: 1 / cmath.sqrt(x)),
    (tf_math.sigmoid, lambda x: 1 / (1 + cmath.exp(-x))),
]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize(("ours", "theirs", "places"), REAL, ids=[each[0].__name__ for each in REAL])
def test_real(
    dtype: str, ours: Callable[..., Any], theirs: Callable[[float], float], places: list[float]
) -> None:
    x = tensor(places, dtype)
    expected = [theirs(float(each)) for each in x.numpy()]
    check(ours(x), expected, dtype, rtol={"float16": 1e-3, "float32": 1e-6, "float64": 1e-13}[dtype])
    check(ours(tensor(places[0], dtype)), expected[0], dtype, rtol={"float16": 1e-3}.get(dtype, 1e-6))
    check(ours(tensor(np.zeros((0, 2), dtype))), np.zeros((0, 2)), dtype)


@pytest.mark.parametrize(("ours", "theirs"), COMPLEX, ids=[each[0].__name__ for each in COMPLEX])
def test_complex(ours: Callable[..., Any], theirs: Callable[[complex], complex]) -> None:
    places = [1 + 2j, -0.5 + 0.25j, 0.75]
    check(ours(tensor(places)), [theirs(complex(each)) for each in places], "complex128")
    check(ours(tensor(places, "complex64")), [theirs(complex(each)) for each in places], "complex64")


def test_no_function_takes_integers() -> None:
    for ours, _, _ in REAL:
        check_refused(ours, tensor([1]), text="[Op:")


def test_where_there_is_no_value() -> None:
    check(tf_math.sqrt(tensor([-1.0])), [np.nan], "float32")
    check(tf_math.log(tensor([0.0, -1.0])), [-np.inf, np.nan], "float32")
    check(tf_math.rsqrt(tensor([0.0])), [np.inf], "float32")
    check(tf_math.acosh(tensor([0.5])), [np.nan], "float32")
    check(tf_math.lgamma(tensor([0.0, -1.0, np.inf])), [np.inf, np.inf, np.inf], "float32")


def test_the_ends_of_the_sigmoid() -> None:
    x = tensor([-np.inf, -100.0, -50.0, 50.0, np.inf, np.nan])
    check(tf_math.sigmoid(x), [0, 0, math.exp(-50), 1, 1, np.nan], "float32", rtol=1e-5, atol=1e-40)
    halves = tensor([-12.0, -15.0], "float16")
    check(tf_math.sigmoid(halves), [6.1441746e-06, 3.0590223e-07], "float16", rtol=0.1)


def test_the_ends_of_softplus() -> None:
    check(tf_math.softplus(tensor([-200.0, 200.0, np.inf])), [0, 200, np.inf], "float32")


def test_the_error_function_of_many_elements() -> None:
    x = np.linspace(-6, 6, 10_001)
    check(tf_math.erf(tensor(x)), [math.erf(each) for each in x], "float64")
    check(tf_math.erf(tensor([np.nan, np.inf, -np.inf])), [np.nan, 1, -1], "float32")
    check(
        tf_math.erfc(tensor([10.0, 20.0, -6.0], "float64")),
        [math.erfc(each) for each in (10, 20, -6)],
        "float64",
    )


@pytest.mark.parametrize(
    ("function", "places", "values"),
    [
        (
            tf_math.lgamma,
            [-np.inf, np.inf, -2, 1e30, 0.999999],
            [np.inf, np.inf, np.inf, 6.8077553e31, 5.8488132e-07],
        ),
        (tf_math.digamma, [0, -0.0, -1, np.inf, 0.5], [np.nan, np.nan, np.nan, np.inf, -1.9635108]),
        (tf_math.erfinv, [1, -1, 1.5, 0.5], [np.inf, -np.inf, np.nan, 0.47693628]),
        (tf_math.erfcinv, [0, 2, -0.5, 1.5], [np.inf, -np.inf, np.nan, -0.47693628]),
        (tf_math.ndtri, [0, 1, -1, 0.9], [-np.inf, np.inf, np.nan, 1.2815516]),
    ],
)
def test_the_ends_of_special_functions(
    function: Callable[..., Any], places: list[float], values: list[float]
) -> None:
    check(function(tensor([np.nan, *places])), [np.nan, *values], "float32")


def test_scipy_is_imported_at_the_first_call_outside_of_the_memory_of_a_device() -> None:
    program = """
import sys, allotment, allotment.tf as tf
assert "scipy" not in sys.modules
allotment.testing.simulate_gpus("1:64MiB")
with tf.device("GPU:0"):
    x = tf.ones([1000])
    before = tf.config.experimental.get_memory_info("GPU:0")["current"]
    y = tf.math.erf(x)
assert tf.config.experimental.get_memory_info("GPU:0")["current"] - before == 4096
assert "scipy" in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_without_scipy_a_special_function_names_the_extra() -> None:
    program = """
import sys, allotment, allotment.tf as tf
sys.modules["scipy"] = None  # as if it were not installed
assert tf.sqrt(4.0).numpy() == 2.0
for _ in range(2):
    try:
        tf.math.erf(1.0)
    except ModuleNotFoundError as error:
        print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, timeout=60, capture_output=True, text=True
    )
    expected = "this operation computes with scipy.special.erf, and SciPy is not installed: "
    assert done.stdout == f"{expected}pip install 'allotment[scipy]'\n" * 2


def test_angles_of_points() -> None:
    y, x = tensor([1.0, 1.0, -1.0, 0.0]), tensor([1.0, -1.0, -1.0, -1.0])
    pi = math.pi
    check(tf_math.atan2(x=x, y=y), [pi / 4, 3 * pi / 4, -3 * pi / 4, pi], "float32")
    check(tf_math.atan2(y, x), [pi / 4, 3 * pi / 4, -3 * pi / 4, pi], "float32")


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_rounding(dtype: str) -> None:
    x = tensor([-2.5, -0.5, 0.5, 1.5, 2.5, 2.7], dtype)
    check(tf_math.floor(x), [-3, -1, 0, 1, 2, 2], dtype)
    check(tf_math.ceil(x), [-2, 0, 1, 2, 3, 3], dtype)
    # The even one of two that are as near.
    check(tf_math.round(x), [-2, 0, 0, 2, 2, 3], dtype)
    if dtype != "float16":  # halves have no kernel
        check(tf_math.rint(x), [-2, 0, 0, 2, 2, 3], dtype)


def test_the_logarithm_of_nearly_one_is_exact_for_complex_numbers() -> None:
    made = tf_math.log1p(tensor([1e-5, 1e-5 + 1e-5j, 3 + 4j], "complex128")).numpy()
    wanted = [9.99995000033333e-06, 9.999999999333344e-06 + 9.999900000666666e-06j, cmath.log(4 + 4j)]
    np.testing.assert_allclose(made, wanted, rtol=1e-15)


def test_special_functions_far_from_one() -> None:
    np.testing.assert_allclose(
        tf_math.digamma(tensor(-4.999738259731843, "float64")), -3818.874468120915, rtol=1e-15
    )
    large = tensor([1e30, 1e30, 1e30], "float64")
    check(tf_math.zeta(large, tensor([3.0, 1.0, 0.5], "float64")), [0.0, 1.0, np.inf], "float64")
    check(tf_math.polygamma(large[:2], tensor([0.5, 0.86], "float64")), [np.inf, np.inf], "float64")


def test_integers_are_round() -> None:
    x = tensor([1, 2])
    assert tf_math.round(x) is x


def test_names_and_descriptions() -> None:
    assert tf_math.exp.__name__ == "exp"
    assert "As ``tf.exp``" in (tf_math.exp.__doc__ or "")

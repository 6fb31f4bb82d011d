"""Compares gradients with central differences of a weighted sum of results along random directions."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import allotment.tf as tf
from allotment.tf.ops.autodiff import differentiation

Function = Callable[..., Any]


def floating(tensor: Any) -> bool:
    """Whether a tensor's type is differentiable."""
    return bool(differentiation.is_differentiable(tensor.dtype))


def flat(result: Any) -> list[Any]:
    """Flatten a result and return its differentiable tensors."""
    return [each for each in tf.nest.flatten(result) if floating(each)]


def weights_of(results: Sequence[Any]) -> list[Any]:
    """Return random output gradients of the results' shapes and types."""
    random = np.random.default_rng(5)
    made = []
    for each in results:
        array = random.normal(size=tuple(each.shape))
        if each.dtype.is_complex:
            array = array + 1j * random.normal(size=tuple(each.shape))
        made.append(tf.constant(array, each.dtype))
    return made


def taped(function: Function, arrays: Sequence[Any], weights: Sequence[Any] | None = None) -> list[Any]:
    """Return the gradient of a weighted sum of a function's results for each argument, computed by a tape.

    The gradients are arrays, or ``None`` for unconnected arguments.
    """
    inputs = [tf.constant(each) for each in arrays]
    with tf.GradientTape() as tape:
        tape.watch([each for each in inputs if floating(each)])
        results = flat(function(*inputs))
    given = weights_of(results) if weights is None else weights
    found = tape.gradient(results, inputs, output_gradients=list(given))
    for each, argument in zip(found, inputs, strict=True):
        assert each is None or (each.dtype, each.shape) == (argument.dtype, argument.shape)
    return [None if each is None else tf.convert_to_tensor(each).numpy() for each in found]


def loss(function: Function, arrays: Sequence[Any]) -> float:
    """Return the weighted sum of a function's results; for complex ones the real part of the product."""
    results = flat(function(*map(tf.constant, arrays)))
    weights = weights_of(results)
    return float(
        sum(
            np.sum(np.real(np.conj(weight.numpy()) * result.numpy()))
            for weight, result in zip(weights, results, strict=True)
        )
    )


def check(
    function: Function, arrays: Sequence[Any], step: float = 1e-6, tolerance: float = 2e-6, tries: int = 3
) -> None:
    """Compare the gradients of a function of float64 and complex128 arrays with central differences."""
    found = taped(function, arrays)
    random = np.random.default_rng(7)
    for index, slopes in enumerate(found):
        if arrays[index].dtype.kind not in "fc" or not arrays[index].size:
            continue
        for _ in range(tries):
            direction = random.normal(size=arrays[index].shape)
            if arrays[index].dtype.kind == "c":
                direction = direction + 1j * random.normal(size=arrays[index].shape)
            ends = []
            for sign in (1, -1):
                moved = list(arrays)
                moved[index] = arrays[index] + sign * step * direction
                ends.append(loss(function, moved))
            expected = (ends[0] - ends[1]) / (2 * step)
            # TensorFlow's gradient of a complex number is the conjugate of the derivative.
            actual = 0.0 if slopes is None else float(np.sum(np.real(np.conj(slopes) * direction)))
            scale = max(1.0, abs(expected), abs(actual))
            assert abs(actual - expected) <= tolerance * scale, (
                f"argument {index}: the tape says {actual}, differences say {expected}"
            )


def slope(function: Function) -> Function:
    """Return the gradient of a function as a function of the same arguments, for second derivatives."""

    def call(*inputs: Any) -> list[Any]:
        watched = [each for each in inputs if floating(each)]
        with tf.GradientTape() as tape:
            tape.watch(watched)
            results = flat(function(*inputs))
        found = tape.gradient(results, watched, output_gradients=weights_of(results))
        return [tf.convert_to_tensor(each) for each in found if each is not None]

    return call

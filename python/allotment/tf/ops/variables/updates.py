"""What optimizers do to variables, each as one operation: changed in place, with one array in between at most.

The names and the formulas are TensorFlow's ``ResourceApply...``; those of moments have the storages they keep them
in behind the gradient, and change those, too.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import numpy as np

from allotment.tf.ops.arrays import Array
from allotment.tf.ops.inference.common import stated
from allotment.tf.ops.table import Operation, dims, operation
from allotment.tf.ops.types.element_types import FLOATS
from allotment.tf.ops.variables import resources
from allotment.tf.ops.variables.resources import Storage


def _row(name: str, function: Callable[..., None]) -> Operation:
    """A row whose function gets arrays it may change: the variable's, the gradient's, and those of further storages."""

    def fault(gradient: Array, *args: Any) -> str | None:
        storage: Storage = args[-1]
        if gradient.shape == storage.array.shape:
            return None
        return f"var and grad do not have the same shape{dims(storage.array)} {dims(gradient)}"

    def changed(
        gradient: Array, kept: tuple[Storage, ...], numbers: tuple[Any, ...], storage: Storage
    ) -> Array:
        for each in kept:
            each.array = resources.writable(each)
        array = resources.writable(storage)
        # NumPy's functions make numbers of arrays without axes, which cannot be changed.
        operands = [
            each.reshape(each.shape or 1) for each in (array, gradient, *(each.array for each in kept))
        ]
        function(*operands, *numbers)
        return array

    return operation(name, changed, shape=stated, fault=fault, takes=FLOATS.__contains__)


def _momentum(variable: Array, gradient: Array, velocity: Array, rate: float, *rest: Any) -> None:
    change_by_momentum(variable, gradient * rate, velocity, *rest)


def change_by_momentum(
    variable: Array, step: Array, velocity: Array, momentum: float, nesterov: bool
) -> None:
    """Update a variable and its velocity by a gradient times the rate, an array that may be changed."""
    velocity *= momentum
    velocity -= step
    if nesterov:
        np.subtract(velocity * momentum, step, out=step)
        variable += step
    else:
        variable += velocity


def change_by_adam(
    variable: Array,
    gradient: Array,
    square: Callable[[Array], object],
    first: Array,
    second: Array,
    largest: Array | None,
    rate: float,
    beta_1: float,
    beta_2: float,
    epsilon: float,
) -> None:
    """Update a variable and its means; ``square`` writes the squares of the gradient into an array."""
    step = gradient - first
    step *= 1 - beta_1
    first += step
    square(step)
    step -= second
    step *= 1 - beta_2
    second += step
    if largest is not None:
        np.maximum(largest, second, out=largest)
    np.sqrt(second if largest is None else largest, out=step)
    step += epsilon
    np.divide(first * rate, step, out=step)
    variable -= step


def _adam(variable: Array, gradient: Array, first: Array, second: Array, *numbers: float) -> None:
    change_by_adam(variable, gradient, partial(np.square, gradient), first, second, None, *numbers)


def _adam_with_largest(variable: Array, gradient: Array, *rest: Any) -> None:
    change_by_adam(variable, gradient, partial(np.square, gradient), *rest)


def _rms_prop(
    variable: Array,
    gradient: Array,
    squares: Array,
    *rest: Any,
) -> None:
    *kept, rate, rho, momentum, epsilon, centered = rest
    step = np.square(gradient)
    step *= 1 - rho
    squares *= rho
    squares += step
    if centered:
        mean = kept.pop(0)
        np.multiply(gradient, 1 - rho, out=step)
        mean *= rho
        mean += step
        np.square(mean, out=step)
        np.subtract(squares, step, out=step)
        step += epsilon
    else:
        np.add(squares, epsilon, out=step)
    np.sqrt(step, out=step)
    np.divide(gradient * rate, step, out=step)
    if momentum:
        velocity = kept.pop(0)
        velocity *= momentum
        velocity += step
        variable -= velocity
    else:
        variable -= step


def _adagrad(variable: Array, gradient: Array, squares: Array, rate: float, epsilon: float) -> None:
    step = np.square(gradient)
    squares += step
    np.add(squares, epsilon, out=step)
    np.sqrt(step, out=step)
    np.divide(gradient * rate, step, out=step)
    variable -= step


def _descent(variable: Array, gradient: Array, rate: float) -> None:
    variable -= gradient * rate


def _decayed(kept: tuple[Storage, ...], numbers: tuple[float, float], storage: Storage) -> Array:
    decay, rate = numbers
    array = resources.writable(storage)
    step = array * decay
    step *= rate
    array -= step
    return array


_decay: Final = operation("ResourceApplyKerasWeightDecay", _decayed, shape=stated)


def decay(variable: Any, factor: float, rate: float) -> None:
    """Shrink a variable by a factor times a rate."""
    resources.change(_decay, variable._storage, (), (factor, rate))


_overwrite: Final = _row("ResourceApplyKerasOverwrite", np.copyto)
DESCENT: Final = _row("ResourceApplyGradientDescent", _descent)
MOMENTUM: Final = _row("ResourceApplyKerasMomentum", _momentum)
ADAM: Final = _row("ResourceApplyAdam", _adam)
ADAM_WITH_LARGEST: Final = _row("ResourceApplyAdamWithAmsgrad", _adam_with_largest)
RMS_PROP: Final = _row("ResourceApplyRMSProp", _rms_prop)
ADAGRAD: Final = _row("ResourceApplyAdagradV2", _adagrad)


def overwrite(variable: Any, value: Any) -> None:
    """Replace the value of a variable."""
    resources.change(_overwrite, variable._storage, value, (), ())


__all__ = [
    "ADAGRAD",
    "ADAM",
    "ADAM_WITH_LARGEST",
    "DESCENT",
    "MOMENTUM",
    "RMS_PROP",
    "change_by_adam",
    "change_by_momentum",
    "decay",
    "overwrite",
]

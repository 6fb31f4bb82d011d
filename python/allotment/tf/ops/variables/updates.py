"""What optimizers do to variables, each as one operation: changed in place, with one array in between at most.

The names and the formulas are TensorFlow's ``ResourceApply...``; those of moments have the storages they keep them
in behind the gradient, and change those, too.
"""

from collections.abc import Callable
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


def _momentum(
    variable: Array, gradient: Array, velocity: Array, rate: float, momentum: float, nesterov: bool
) -> None:
    step = gradient * rate
    velocity *= momentum
    velocity -= step
    if nesterov:
        np.subtract(velocity * momentum, step, out=step)
        variable += step
    else:
        variable += velocity


def _adam(
    variable: Array,
    gradient: Array,
    first: Array,
    second: Array,
    largest: Array | None,
    rate: float,
    beta_1: float,
    beta_2: float,
    epsilon: float,
) -> None:
    step = gradient - first
    step *= 1 - beta_1
    first += step
    np.square(gradient, out=step)
    step -= second
    step *= 1 - beta_2
    second += step
    if largest is not None:
        np.maximum(largest, second, out=largest)
    np.sqrt(second if largest is None else largest, out=step)
    step += epsilon
    np.divide(first * rate, step, out=step)
    variable -= step


def _plain_adam(variable: Array, gradient: Array, first: Array, second: Array, *numbers: float) -> None:
    _adam(variable, gradient, first, second, None, *numbers)


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


def _decay(variable: Array, gradient: Array, decay: float, rate: float) -> None:
    step = variable * decay
    step *= rate
    variable -= step


DECAY: Final = _row("ResourceApplyKerasWeightDecay", _decay)
OVERWRITE: Final = _row("ResourceApplyKerasOverwrite", np.copyto)
DESCENT: Final = _row("ResourceApplyGradientDescent", _descent)
MOMENTUM: Final = _row("ResourceApplyKerasMomentum", _momentum)
ADAM: Final = _row("ResourceApplyAdam", _plain_adam)
ADAM_WITH_LARGEST: Final = _row("ResourceApplyAdamWithAmsgrad", _adam)
RMS_PROP: Final = _row("ResourceApplyRMSProp", _rms_prop)
ADAGRAD: Final = _row("ResourceApplyAdagradV2", _adagrad)


def apply(row: Operation, variable: Any, gradient: Any, kept: tuple[Any, ...], *numbers: Any) -> None:
    """Change a variable, and those that belong to it, by a gradient."""
    resources.change(row, variable._storage, gradient, tuple(each._storage for each in kept), numbers)


__all__ = [
    "ADAGRAD",
    "ADAM",
    "ADAM_WITH_LARGEST",
    "DECAY",
    "DESCENT",
    "MOMENTUM",
    "OVERWRITE",
    "RMS_PROP",
    "apply",
]

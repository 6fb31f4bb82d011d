"""What optimizers do to variables by ``IndexedSlices``: the updates of ``updates``, with rows in place of a gradient.

Keras computes with the rows as they are: where a number occurs twice, the squares are those of both rows, and not of
their sum. Where an update needs the gradient of all elements, the rows are added up in one array in between.
"""

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from allotment.tf.ops.arrays import Array, is_host
from allotment.tf.ops.inference.common import stated
from allotment.tf.ops.reduction.rows import at
from allotment.tf.ops.table import Operation, operation
from allotment.tf.ops.variables import resources, updates
from allotment.tf.ops.variables.resources import Storage
from allotment.tf.ops.variables.row_scatters import row_fault
from allotment.tf.tensors.indexed_slices import IndexedSlices

_add: Final = at(np.add)
_subtract: Final = at(np.subtract)


def _row(name: str, function: Callable[..., None]) -> Operation:
    """A row with a function that gets arrays: the variable's, the slices', and those of further storages.

    It may change all but those of the slices.
    """

    def fault(values: Array, indices: Array, *args: Any) -> str | None:
        return row_fault(values, indices, args[-1])

    def changed(
        values: Array, indices: Array, kept: tuple[Storage, ...], numbers: tuple[Any, ...], storage: Storage
    ) -> Array:
        for each in kept:
            each.array = resources.writable(each)
        array = resources.writable(storage)
        function(array, values, indices, *(each.array for each in kept), *numbers)
        return array

    return operation(name, changed, shape=stated, fault=fault, same_dtype=False)


def _summed(values: Array, indices: Array, like: Array) -> Array:
    """The whole gradient: rows of the same number are added up."""
    whole = np.zeros_like(like)
    _add(whole, indices, values)
    return whole


def _descent(variable: Array, values: Array, indices: Array, rate: float) -> None:
    _subtract(variable, indices, values * rate)


def _momentum(
    variable: Array, values: Array, indices: Array, velocity: Array, rate: float, *rest: Any
) -> None:
    updates.change_by_momentum(variable, _summed(values * rate, indices, variable), velocity, *rest)


def _adam_with_largest(
    variable: Array, values: Array, indices: Array, first: Array, second: Array, *rest: Any
) -> None:
    def square(out: Array) -> None:
        out[...] = 0
        _add(out, indices, np.square(values))

    updates.change_by_adam(variable, _summed(values, indices, variable), square, first, second, *rest)


def _adam(
    variable: Array, values: Array, indices: Array, first: Array, second: Array, *numbers: float
) -> None:
    _adam_with_largest(variable, values, indices, first, second, None, *numbers)


def _rms_prop(variable: Array, values: Array, indices: Array, squares: Array, *rest: Any) -> None:
    *kept, rate, rho, momentum, epsilon, centered = rest
    squares *= rho
    _add(squares, indices, np.square(values) * (1 - rho))
    if centered:
        mean = kept.pop(0)
        mean *= rho
        _add(mean, indices, values * (1 - rho))
        divisor = np.square(mean)
        np.subtract(squares, divisor, out=divisor)
        divisor += epsilon
    else:
        divisor = squares + epsilon
    np.sqrt(divisor, out=divisor)
    steps, others = _divided(values * rate, indices, divisor)
    if momentum:
        velocity = kept.pop(0)
        velocity *= momentum
        _add(velocity, indices, steps)
        if others is not None:
            velocity += others
        variable -= velocity
    else:
        _step(variable, indices, steps, others)


def _adagrad(
    variable: Array, values: Array, indices: Array, squares: Array, rate: float, epsilon: float
) -> None:
    _add(squares, indices, np.square(values))
    divisor = squares + epsilon
    np.sqrt(divisor, out=divisor)
    _step(variable, indices, *_divided(values * rate, indices, divisor))


def _step(variable: Array, indices: Array, steps: Array, others: Array | None) -> None:
    _subtract(variable, indices, steps)
    if others is not None:
        variable -= others


def _divided(values: Array, indices: Array, divisor: Array) -> tuple[Array, Array | None]:
    """Divide rows by those of a whole divisor, which may be changed.

    Returns:
        The quotients, and what is to be added to the variable beside them: where the divisor is zero or no number,
        quotients of the rows that are not there are no numbers. ``None`` stands for zeros.
    """
    quotients = values / divisor[indices]
    # Of no elements there is no least one. An element of a device is not read.
    if is_host(divisor) and (not divisor.size or np.min(divisor) > 0):
        return quotients, None
    others = np.divide(np.zeros_like(divisor), divisor, out=divisor)
    others[indices] = 0
    return quotients, others


#: The row for slices of each row for tensors.
_ROWS: Final[dict[Operation, Operation]] = {
    updates.DESCENT: _row("ResourceSparseApplyKerasGradientDescent", _descent),
    updates.MOMENTUM: _row("ResourceSparseApplyKerasMomentum", _momentum),
    updates.ADAM: _row("ResourceSparseApplyKerasAdam", _adam),
    updates.ADAM_WITH_LARGEST: _row("ResourceSparseApplyKerasAdamWithAmsgrad", _adam_with_largest),
    updates.RMS_PROP: _row("ResourceSparseApplyKerasRMSProp", _rms_prop),
    updates.ADAGRAD: _row("ResourceSparseApplyKerasAdagrad", _adagrad),
}


def apply(row: Operation, variable: Any, gradient: Any, kept: tuple[Any, ...], *numbers: Any) -> None:
    """Change a variable, and those that belong to it, by a gradient: a tensor, or ``IndexedSlices``.

    Args:
        row: A row of ``updates``.
        variable: The variable.
        gradient: Its gradient.
        kept: Further variables that the row changes.
        *numbers: Arguments of the row.
    """
    storages = tuple(each._storage for each in kept)
    if isinstance(gradient, IndexedSlices):
        inputs = gradient.values, gradient.indices
        resources.change(_ROWS[row], variable._storage, *inputs, storages, numbers)
    else:
        resources.change(row, variable._storage, gradient, storages, numbers)


__all__ = ["apply"]

"""Sample calls of the rows that change variables: which row, the arrays of its inputs, and its arguments."""

from typing import Any, NamedTuple

import numpy as np


class StorageCall(NamedTuple):
    """A call of a row whose last argument is the storage of a variable."""

    name: str
    #: The value of the variable.
    first: Any
    arrays: tuple[Any, ...]
    #: The values of the variables that belong to it, for moments.
    kept: tuple[Any, ...] | None = None
    numbers: tuple[Any, ...] = ()


def _reals(seed: int, *shape: int) -> Any:
    return np.random.default_rng(seed).uniform(0.5, 2, shape).astype(np.float32)


_VALUE, _GRADIENT, _SQUARES = _reals(1, 4, 3), _reals(2, 4, 3), _reals(3, 4, 3)
_ROWS, _PLACES = np.array([2, 0]), np.array([[1], [3]])
_OPTIMIZERS: Any = {
    "ResourceApplyAdagradV2": (1, (0.1, 1e-7)),
    "ResourceApplyAdam": (2, (0.1, 0.9, 0.99, 1e-7)),
    "ResourceApplyAdamWithAmsgrad": (3, (0.1, 0.9, 0.99, 1e-7)),
    "ResourceApplyGradientDescent": (0, (0.1,)),
    "ResourceApplyKerasMomentum": (1, (0.1, 0.9, True)),
    "ResourceApplyKerasOverwrite": (0, ()),
    "ResourceApplyRMSProp": (3, (0.1, 0.9, 0.9, 1e-7, True)),
}

_REPEATED = np.array([2, 0, 2])
_BY_SLICES: Any = {
    "Adagrad": (1, (0.1, 1e-7)),
    "Adam": (2, (0.1, 0.9, 0.99, 1e-7)),
    "AdamWithAmsgrad": (3, (0.1, 0.9, 0.99, 1e-7)),
    "GradientDescent": (0, (0.1,)),
    "Momentum": (1, (0.1, 0.9, True)),
    "RMSProp": (3, (0.1, 0.9, 0.9, 1e-7, True)),
}

STORAGE_CALLS = (
    *(
        StorageCall(name, _VALUE, (_GRADIENT,), tuple(_SQUARES + at for at in range(count)), numbers)
        for name, (count, numbers) in _OPTIMIZERS.items()
    ),
    StorageCall("ResourceApplyKerasWeightDecay", _VALUE, (), (), (0.1, 0.1)),
    *(
        StorageCall(
            f"ResourceSparseApplyKeras{name}",
            _VALUE,
            (_GRADIENT[:3], _REPEATED),
            tuple(_SQUARES + at for at in range(count)),
            numbers,
        )
        for name, (count, numbers) in _BY_SLICES.items()
    ),
    StorageCall("AssignAddVariableOp", _VALUE, (_GRADIENT,)),
    StorageCall("AssignSubVariableOp", _VALUE, (_GRADIENT,)),
    *(
        StorageCall(f"ResourceScatter{name}", _VALUE, (_GRADIENT[:2], _ROWS))
        for name in ("Add", "Sub", "Mul", "Div", "Max", "Min", "Update")
    ),
    StorageCall("ResourceScatterAdd", _VALUE, (np.float32(3).reshape(()), _ROWS)),
    StorageCall("ResourceScatterAdd", _VALUE.astype(np.int8), (_GRADIENT[:2].astype(np.int8), _ROWS)),
    StorageCall("ResourceScatterMax", _VALUE.astype(np.float16), (_GRADIENT[:2].astype(np.float16), _ROWS)),
    StorageCall("ResourceScatterAdd", _VALUE * 1j, (_GRADIENT[:2] * 1j, _ROWS)),
    *(
        StorageCall(f"ResourceScatterNd{name}", _VALUE, (_GRADIENT[:2], _PLACES))
        for name in ("Add", "Sub", "Update")
    ),
)

__all__ = ["STORAGE_CALLS", "StorageCall"]

"""The shapes that a layer gives, found by trying: for layers that do not say.

A layer is called with zeros twice, with two lengths in the place of those that are not known. Where the results
differ, a length is not known either.
"""

from typing import Any

from allotment.tf import nest
from allotment.tf.keras.engine.symbolic import KerasTensor, Shape
from allotment.tf.ops.array.creation import zeros
from allotment.tf.tensors.tensor import EagerTensor

#: Lengths in the place of those that are not known.
_TRIED = (2, 3)


def outputs_by_trial(layer: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What a call with symbolic tensors gives, as symbolic tensors.

    Raises:
        TypeError: The layer gives something that is no tensor.
    """
    first, second = (_called(layer, args, kwargs, length) for length in _TRIED)
    layer._forget_losses()
    return nest.map_structure(lambda *values: _symbolic(layer, *values), first, second)


def _called(layer: Any, args: tuple[Any, ...], kwargs: dict[str, Any], length: int) -> Any:
    def put(value: Any) -> Any:
        if not isinstance(value, KerasTensor):
            return value
        return zeros([length if each is None else each for each in value.shape], value.dtype)

    tried = nest.map_structure(put, {"args": list(args), "kwargs": kwargs})
    return layer(*tried["args"], **tried["kwargs"])


def _symbolic(layer: Any, first: Any, second: Any) -> KerasTensor:
    if not isinstance(first, EagerTensor):
        raise TypeError(f"a layer of a functional model gives tensors, but {layer.name!r} gave: {first!r}")
    shape: Shape = tuple(
        one if one == other else None
        for one, other in zip(first._array.shape, second._array.shape, strict=True)
    )
    return KerasTensor(shape, first._dtype)


__all__ = ["outputs_by_trial"]

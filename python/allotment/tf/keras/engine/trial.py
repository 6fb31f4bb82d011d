"""Output shapes of layers without ``compute_output_shape``, inferred from two calls with zeros.

The two calls have different lengths in the place of unknown ones. A length that differs between the outputs is unknown.
"""

from typing import Any

from allotment.tf import nest
from allotment.tf.keras.engine.symbolic import KerasTensor, RecordedLayer, Shape
from allotment.tf.ops.array.creation import zeros
from allotment.tf.tensors.tensor import EagerTensor

#: Lengths in the place of unknown ones.
_TRIED = (2, 3)


def outputs_by_trial(layer: RecordedLayer, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Infer the outputs of a call with symbolic tensors, as symbolic tensors.

    Raises:
        TypeError: An output is no tensor.
    """
    first, second = (_call(layer, args, kwargs, length) for length in _TRIED)
    layer._forget_losses()
    return nest.map_structure(lambda *values: _symbolic(layer, *values), first, second)


def _call(layer: RecordedLayer, args: tuple[Any, ...], kwargs: dict[str, Any], length: int) -> Any:
    def put(value: Any) -> Any:
        if not isinstance(value, KerasTensor):
            return value
        return zeros([length if each is None else each for each in value.shape], value.dtype)

    tried = nest.map_structure(put, {"args": list(args), "kwargs": kwargs})
    return layer(*tried["args"], **tried["kwargs"])


def _symbolic(layer: RecordedLayer, first: Any, second: Any) -> KerasTensor:
    if not isinstance(first, EagerTensor):
        raise TypeError(
            f"a layer of a functional model must return tensors, but {layer.name!r} returned: {first!r}"
        )
    shape: Shape = tuple(
        one if one == other else None
        for one, other in zip(first._array.shape, second._array.shape, strict=True)
    )
    return KerasTensor(shape, first._dtype)


__all__ = ["outputs_by_trial"]

"""Outputs of layers without ``compute_output_shape``: ``call`` is recorded in a graph that never runs.

As in Keras, the program's ``call`` sees tensors without values, which have ``None`` in place of unknown lengths, and
its assignments to variables have no effect.
"""

from typing import Any

from allotment.tf import nest
from allotment.tf.graph.scratch import ScratchGraph
from allotment.tf.keras.engine.calls import calls
from allotment.tf.keras.engine.symbolic import KerasTensor, RecordedLayer
from allotment.tf.ops.convert import to_tensor
from allotment.tf.tensors.dtype import as_dtype
from allotment.tf.tensors.tensor import Tensor
from allotment.tf.tensors.tensor_shape import TensorShape


def outputs_by_tracing(layer: RecordedLayer, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Infer the outputs of a call with symbolic tensors, as symbolic tensors.

    Raises:
        TypeError: An output is no tensor.
        ValueError: The number of axes of an output is unknown.
    """
    graph = ScratchGraph()

    def put(value: Any) -> Any:
        return (
            graph._placeholder(as_dtype(value.dtype), TensorShape(value.shape))
            if isinstance(value, KerasTensor)
            else value
        )

    before = calls.inside, calls.tracing
    calls.inside = calls.tracing = True
    try:
        with graph.recording():
            given = nest.map_structure(put, {"args": list(args), "kwargs": kwargs})
            made = layer(*given["args"], **given["kwargs"])
    finally:
        calls.inside, calls.tracing = before
    return nest.map_structure(lambda value: _symbolic(layer, value), made)


def _symbolic(layer: RecordedLayer, value: Any) -> KerasTensor:
    if not isinstance(value, Tensor):
        if not hasattr(value, "_as_tensor"):
            raise TypeError(
                f"a layer of a functional model must return tensors, but {layer.name!r} returned: {value!r}"
            )
        value = to_tensor(value)
    if value.shape.rank is None:
        raise ValueError(
            f"the number of axes of the output of layer {layer.name!r} is unknown: call `set_shape` on it, or define "
            "`compute_output_shape`"
        )
    return KerasTensor(tuple(value.shape), value._dtype)


__all__ = ["outputs_by_tracing"]

"""``Input`` and the layer that it makes."""

from typing import Any

from allotment.tf.keras.absent import refuse_unless_none
from allotment.tf.keras.engine.arguments import shape_of_sample
from allotment.tf.keras.engine.symbolic import KerasTensor, Node, Shape
from allotment.tf.keras.layers.bases import SameShapeLayer


class InputLayer(SameShapeLayer):
    """The layer of a model's input. ``Input`` makes one and returns its symbolic tensor."""

    _keeps_dtype = True

    def __init__(
        self,
        shape: Any = None,
        batch_size: int | None = None,
        dtype: Any = None,
        batch_shape: Any = None,
        name: str | None = None,
    ) -> None:
        super().__init__(name=name, dtype=dtype)
        if (shape is None) == (batch_shape is None):
            raise ValueError(
                "You must pass a `shape` argument."
                if shape is None
                else "You cannot pass both `shape` and `batch_shape` at the same time."
            )
        self.batch_shape: Shape = (
            (batch_size, *shape_of_sample(shape)) if batch_shape is None else shape_of_sample(batch_shape)
        )
        self.built = True
        Node(self, (), {}, KerasTensor(self.batch_shape, self.dtype, self.name))

    def call(self, inputs: Any) -> Any:
        """Return the inputs."""
        return inputs


def Input(  # noqa: N802 - Keras' name
    shape: Any = None,
    batch_size: int | None = None,
    dtype: Any = None,
    batch_shape: Any = None,
    name: str | None = None,
    sparse: Any = None,
    ragged: Any = None,
    tensor: Any = None,
) -> KerasTensor:
    """Make a symbolic input of a functional model. As ``keras.Input``.

    Args:
        shape: The shape of one sample, ``None`` for unknown lengths.
        batch_size: The number of samples in a batch, if that is fixed.
        dtype: The type of the elements, float32 if not given.
        batch_shape: The shape of a batch, instead of ``shape`` and ``batch_size``.
        name: The name of the input.
        sparse: Not offered.
        ragged: Not offered.
        tensor: Not offered.

    Raises:
        ValueError: There is no shape, or it is invalid.
    """
    refuse_unless_none("Input", sparse=sparse, ragged=ragged, tensor=tensor)
    made: KerasTensor = InputLayer(shape, batch_size, dtype, batch_shape, name).output
    return made


__all__ = ["Input", "InputLayer"]

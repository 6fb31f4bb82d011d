"""The inputs and outputs of models that know them: their shapes, and the conversion of data to them."""

from typing import Any

from allotment.tf.keras.engine.symbolic import KerasTensor, shapes_of
from allotment.tf.ops.array.array import cast
from allotment.tf.ops.array.layout import expand_dims, squeeze
from allotment.tf.tensors.tensor import EagerTensor


class KnownEnds:
    """A mixin with the shapes of ``input`` and ``output``. ``Layer`` has none: a subclass may set them."""

    name: str
    input: Any
    output: Any

    @property
    def input_shape(self) -> Any:
        """The shape of the input, or a structure of shapes."""
        return shapes_of(self.input)

    @property
    def output_shape(self) -> Any:
        """The shape of the output, or a structure of shapes."""
        return shapes_of(self.output)

    def _fitted(self, value: EagerTensor, wanted: KerasTensor) -> EagerTensor:
        """Convert a value to the type of an input, and add or remove a last axis of length 1 if needed.

        Raises:
            ValueError: The value has another shape.
        """
        more = value._array.ndim - wanted.ndim
        if more == 1 and value._array.shape[-1] == 1:
            value = squeeze(value, -1)
        elif more == -1 and wanted.shape[-1] == 1:
            value = expand_dims(value, -1)
        shape = value._array.shape
        if len(shape) != wanted.ndim or any(
            length not in (None, own) for length, own in zip(wanted.shape, shape, strict=True)
        ):
            raise ValueError(
                f"Invalid input shape for input with name {wanted.name!r} of model {self.name!r}. Expected shape "
                f"{wanted.shape}, but input has incompatible shape {shape}"
            )
        return value if value._dtype.name == wanted.dtype else cast(value, wanted.dtype)


__all__ = ["KnownEnds"]

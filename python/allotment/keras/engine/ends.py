"""The shapes of a model whose inputs and outputs are known."""

from typing import Any

from allotment.keras.engine.symbolic import shapes_of


class KnownEnds:
    """What follows from ``input`` and ``output``. No property of all layers: those of the user's own may set it."""

    input: Any
    output: Any

    @property
    def input_shape(self) -> Any:
        """The shape of the input, or the shapes, arranged as the inputs are."""
        return shapes_of(self.input)

    @property
    def output_shape(self) -> Any:
        """The shape of the output, or the shapes, arranged as the outputs are."""
        return shapes_of(self.output)


__all__ = ["KnownEnds"]

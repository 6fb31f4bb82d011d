"""Sequential models: layers one after the other."""

from collections.abc import Iterable, Sequence
from typing import Any

from allotment.tf import nest
from allotment.tf.keras.engine.calls import required_arguments
from allotment.tf.keras.engine.layer import Layer
from allotment.tf.keras.engine.symbolic import KerasTensor, Shape
from allotment.tf.keras.layers.inputs import Input, InputLayer
from allotment.tf.keras.models.ends import KnownEnds
from allotment.tf.keras.models.model import Model


class Sequential(Model, KnownEnds):
    """A model of layers one after the other. As ``keras.Sequential``.

    Args:
        layers: The layers; with an ``Input`` first, or a first layer with ``input_shape``, they are built at once,
            otherwise by the first call.
        name: The name.
        trainable: Whether gradients and optimizers see its variables.

    Raises:
        ValueError: One of them is no layer.
    """

    _internal = Model._internal | {"_layers", "_ends", "_outputs"}
    _closes = False

    def __init__(
        self, layers: Iterable[Any] | None = None, name: str | None = None, trainable: bool = True
    ) -> None:
        super().__init__(name=name, trainable=trainable)
        self._layers: list[Layer] = []
        #: The symbolic input and output, once they are known.
        self._ends: tuple[KerasTensor, KerasTensor] | None = None
        #: The symbolic outputs of the layers, once they are known.
        self._outputs: list[KerasTensor] = []
        for layer in layers or ():
            self.add(layer)

    @property
    def _casts_inputs(self) -> bool:  # type: ignore[override]
        # A known input has a type of its own.
        return self._ends is None

    def _sublayers(self) -> Sequence[Layer]:
        # As in Keras, other layers among the attributes are not those of the model.
        return self._layers

    @property
    def layers(self) -> list[Layer]:
        """The layers, without that of the input."""
        return [layer for layer in self._layers if not isinstance(layer, InputLayer)]

    def add(self, layer: Any) -> None:
        """Append a layer.

        Raises:
            ValueError: No layer, another layer of this name, or a layer with a ``call`` that needs several arguments.
        """
        if (
            isinstance(layer, KerasTensor)
            and layer.node is not None
            and isinstance(layer.node.layer, InputLayer)
        ):
            layer = layer.node.layer
        if not isinstance(layer, Layer):
            raise ValueError(
                "Only instances of `keras.Layer` can be added to a Sequential model. "
                f"Received: {layer} (of type {type(layer)})"
            )
        if any(each.name == layer.name and each is not layer for each in self._layers):
            raise ValueError(
                "All layers added to a Sequential model should have unique names. "
                f"Name '{layer.name}' is already the name of a layer in this model. Update the `name` argument to pass "
                "a unique name."
            )
        required = required_arguments(type(layer).call)
        if len(required) > 1:
            raise ValueError(
                f"A layer of a Sequential model gets one argument, and `call` of {type(layer).__name__} has several "
                f"without a default: {', '.join(required)}. Give the others one, or make a model with keras.Model."
            )
        if isinstance(layer, InputLayer):
            if self._layers:
                raise ValueError(
                    f"Sequential model '{self.name}' has layers already; an Input must be the first."
                )
            self._layers.append(layer)
            self._ends = (layer.output, layer.output)
            return
        if not self._layers and layer._shape_of_sample is not None:
            self.add(Input(layer._shape_of_sample))
        self._layers.append(layer)
        if self._ends is not None:
            self._call_on_end(layer)
            self.built = True

    def _call_on_end(self, layer: Layer) -> None:
        """Call a layer with the symbolic output, which becomes that of the layer."""
        assert self._ends is not None, "there is an input"
        start, end = self._ends
        self._outputs.append(layer(end))
        self._ends = start, self._outputs[-1]

    def pop(self) -> Layer:
        """Remove and return the last layer."""
        layer = self._layers.pop()
        if self._ends is not None:
            start, end = self._ends
            if end.node in layer.nodes:
                layer.nodes.remove(end.node)
            del self._outputs[-1:]
            self._ends = (start, self._outputs[-1] if self._outputs else start) if self._layers else None
        return layer

    @property
    def inputs(self) -> list[KerasTensor]:
        """The symbolic input in a list."""
        return [self._built_ends()[0]]

    @property
    def outputs(self) -> list[KerasTensor]:
        """The symbolic output in a list."""
        return [self._built_ends()[1]]

    @property
    def input(self) -> KerasTensor:
        """The symbolic input."""
        return self._built_ends()[0]

    @property
    def output(self) -> KerasTensor:
        """The symbolic output."""
        return self._built_ends()[1]

    def _built_ends(self) -> tuple[KerasTensor, KerasTensor]:
        if self._ends is None or not self.layers:
            raise AttributeError(
                f"Sequential model '{self.name}' has no defined input shape yet: start it with an Input "
                "and a layer, or build it."
            )
        return self._ends

    def build(self, input_shape: Any = None) -> None:
        """Make the variables of all layers for inputs of this shape; the batch size does not matter.

        Raises:
            ValueError: There are no layers.
        """
        self._check_layers()
        if self._ends is None and input_shape is not None:
            start = Input(tuple(input_shape)[1:])
            self._ends = (start, start)
            for layer in self._layers:
                self._call_on_end(layer)
        self.built = True

    def _check_layers(self) -> None:
        if not self.layers:
            raise ValueError(
                f"Sequential model {self.name!r} has no layers, so that it computes nothing: call `add(layer)` first."
            )

    def _build_with(self, batch: Any) -> None:
        self.build(nest.map_structure(lambda array: tuple(array.shape), batch.x))

    def call(self, inputs: Any, training: bool | None = None) -> Any:  # noqa: ARG002 - the layers are told
        """Compute the output."""
        self._check_layers()
        value = inputs[0] if isinstance(inputs, list | tuple) and len(inputs) == 1 else inputs
        if self._ends is not None:
            value = self._fitted(value, self._ends[0])
        # Free the input as soon as the first layer has used it.
        del inputs
        for layer in self.layers:
            value = layer(value)
        return value

    def compute_output_shape(self, input_shape: Shape) -> Any:
        """Return the shape of the last layer's output."""
        shape: Any = input_shape
        for layer in self.layers:
            shape = layer.compute_output_shape(shape)
        return shape


__all__ = ["Sequential"]

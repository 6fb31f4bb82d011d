"""Functional models: ``Model(inputs, outputs)``."""

from collections.abc import Iterator
from typing import Any

from allotment.tf import nest
from allotment.tf.keras.engine.layer import Layer
from allotment.tf.keras.engine.symbolic import KerasTensor, Node, shapes_of
from allotment.tf.keras.models.ends import KnownEnds
from allotment.tf.keras.models.model import Model
from allotment.tf.keras.models.plan import Plan


class Functional(Model, KnownEnds):
    """A model that performs the recorded calls between symbolic tensors. ``Model(inputs, outputs)`` makes one.

    Args:
        inputs: Symbolic tensors, one or several in a list, tuple or dictionary.
        outputs: Symbolic tensors computed from them, in the same way.
        name: The name.

    Raises:
        ValueError: A value is no symbolic tensor, or outputs depend on other tensors than the inputs.
    """

    _internal = Model._internal | {"_given", "_made", "_plan"}
    # A program may set further layers.
    _closes = False
    # The inputs have types of their own.
    _casts_inputs = False

    def __init__(self, inputs: Any, outputs: Any, name: str | None = None, **kwargs: Any) -> None:
        super().__init__(name=name, **kwargs)
        for what, given in (("inputs", inputs), ("outputs", outputs)):
            for tensor in nest.flatten(given):
                if not isinstance(tensor, KerasTensor):
                    raise ValueError(
                        f"All `{what}` values must be KerasTensors. Received: {what}={given} including invalid value "
                        f"{tensor} of type {type(tensor)}"
                    )
        self._given, self._made = inputs, outputs
        self._plan = Plan(self.inputs, self.outputs)
        self._tracker.track_all(self._plan.layers)
        self.built = True
        self._build_shape = shapes_of(inputs)

    @property
    def _nodes(self) -> frozenset[Node]:
        return self._plan.nodes

    @property
    def layers(self) -> list[Layer]:
        """The layers between the inputs and the outputs, those of the inputs among them."""
        return list(self._plan.layers)  # type: ignore[arg-type]

    def _checkpoint_parts(self) -> Iterator[tuple[str, Any]]:
        yield from super()._checkpoint_parts()
        yield "_layers", list(self._plan.layers)

    @property
    def inputs(self) -> list[KerasTensor]:
        """The symbolic inputs in a list."""
        return nest.flatten(self._given)

    @property
    def outputs(self) -> list[KerasTensor]:
        """The symbolic outputs in a list."""
        return nest.flatten(self._made)

    @property
    def input(self) -> Any:
        """The symbolic inputs in their structure."""
        return self._given

    @property
    def output(self) -> Any:
        """The symbolic outputs in their structure."""
        return self._made

    @property
    def output_names(self) -> list[str]:
        """The names of the outputs in losses and metrics: their keys, or the names of their layers."""
        if isinstance(self._made, dict):
            return sorted(self._made)
        return [tensor.node.layer.name for tensor in self.outputs if tensor.node is not None]

    def call(self, inputs: Any, training: bool | None = None) -> Any:  # noqa: ARG002 - the layers are told
        """Compute the outputs."""
        values = [self._fitted(*pair) for pair in zip(self._flat(inputs), self.inputs, strict=True)]
        made = self._plan.run(values)
        return made[0] if isinstance(self._made, KerasTensor) else nest.pack_sequence_as(self._made, made)

    def _flat(self, inputs: Any) -> list[Any]:
        wanted = self.inputs
        if isinstance(inputs, dict) and not isinstance(self._given, dict):
            # By the names of the inputs.
            names = [tensor.name for tensor in wanted]
            missing = [name for name in names if name not in inputs]
            if missing:
                raise ValueError(
                    f"Missing data for input {missing[0]!r}. You passed a data dictionary with keys {list(inputs)}. "
                    f"Expected the following keys: {names}"
                )
            return [inputs[name] for name in names]
        flat = nest.flatten(inputs)
        if len(flat) != len(wanted):
            raise ValueError(
                f"Layer {self.name!r} expected {len(wanted)} input(s). Received {len(flat)} instead."
            )
        return flat

    def compute_output_shape(self, input_shape: Any) -> Any:
        """Return the shapes of the outputs for inputs of these shapes."""
        if input_shape == self._build_shape:
            return shapes_of(self._made)
        return super().compute_output_shape(input_shape)

    def build(self, input_shape: Any) -> None:
        """Do nothing: the layers were built when they were called."""


Model._functional = Functional

__all__ = ["Functional"]

"""The variables of a layer and of the layers inside it: creation, lists, values."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from allotment.tf.keras import constraints, initializers, regularizers
from allotment.tf.keras.engine.arguments import shape_of_sample
from allotment.tf.keras.engine.tracking import Tracker, without_repeats
from allotment.tf.tensors.dtype import as_dtype
from allotment.tf.variables.aggregation import VariableAggregation, VariableSynchronization
from allotment.tf.variables.variable import Variable


class LayerVariables:
    """The part of ``Layer`` that makes and lists variables, and keeps what a program sets as its attributes.

    Args:
        trainable: Whether gradients and optimizers see the variables.
        dtype: The default type of variables.
        name: The name of the layer.
    """

    _tracked_as: ClassVar = "layers"
    #: The attributes that this package sets, and in which no layer, variable or metric of a program is.
    _internal: ClassVar[frozenset[str]] = frozenset({"_weights", "_regularizers"})
    #: The layers, variables and metrics among the attributes, since the object was made.
    _tracker: Tracker

    def __init__(self, trainable: bool, dtype: str, name: str) -> None:
        self.name, self.dtype, self.built = name, dtype, False
        self._trainable = trainable
        #: The variables that ``add_weight`` made, in order.
        self._weights: list[Variable] = []
        #: Functions of its variables that return losses, by the variable's identity.
        self._regularizers: dict[int, Callable[[Any], Any]] = {}

    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value if name in self._internal else self._tracker.track(value))

    def __delattr__(self, name: str) -> None:
        value = vars(self).get(name)
        object.__delattr__(self, name)
        if isinstance(value, Variable):
            # Layers stay, as in Keras.
            self._tracker.forget(value)

    def add_weight(
        self,
        shape: Any = None,
        initializer: Any = None,
        dtype: Any = None,
        trainable: bool = True,
        name: str | None = None,
        regularizer: Any = None,
        constraint: Any = None,
        aggregation: VariableAggregation = VariableAggregation.NONE,
        synchronization: VariableSynchronization = VariableSynchronization.AUTO,
    ) -> Variable:
        """Make a variable of the layer.

        Args:
            shape: Its shape, a scalar if not given.
            initializer: The initializer, or its name; by default ``glorot_uniform`` for floats, otherwise zeros.
            dtype: Its type, the layer's if not given.
            trainable: Whether gradients and optimizers see it.
            name: The name, which follows that of the layer.
            regularizer: A function of the variable that returns a loss, or its name.
            constraint: A projection that optimizers apply, or its name.
            aggregation: The aggregation of values that replicas assign.
            synchronization: When copies on several devices are made equal.

        Raises:
            ValueError: A length of the shape is unknown, or the layer is built.
        """
        regularize = regularizers.get(regularizer)
        lengths = () if shape is None else shape_of_sample(shape)
        whole = f"{self.name}/{'variable' if name is None else name}"
        if None in lengths:
            raise ValueError(
                "Shapes used to initialize variables must be fully-defined (no `None` dimensions). "
                f"Received: shape={lengths} for variable path='{whole}'"
            )
        wanted = as_dtype(self.dtype if dtype is None else dtype)
        make = initializers.get(
            ("glorot_uniform" if wanted.is_floating else "zeros") if initializer is None else initializer
        )
        variable = Variable(
            lambda: make(lengths, dtype=wanted),
            trainable=trainable,
            name=whole,
            constraint=constraints.get(constraint),
            aggregation=aggregation,
            synchronization=synchronization,
        )
        variable._is_weight = True
        self._tracker.track(variable)
        self._weights.append(variable)
        if regularize is not None:
            self._regularizers[id(variable)] = regularize
        return variable

    @property
    def trainable(self) -> bool:
        """Whether gradients and optimizers see the variables; setting it sets that of all layers inside."""
        return self._trainable

    @trainable.setter
    def trainable(self, value: bool) -> None:
        self._trainable = bool(value)
        for layer in self._sublayers():
            layer.trainable = value

    def _sublayers(self) -> Sequence["LayerVariables"]:
        """Return the layers that were set as attributes."""
        return tuple(self._tracker.layers)

    def _own_variables(self) -> list[Variable]:
        """Return the variables of this layer alone, trainable ones first."""
        return sorted(self._tracker.variables, key=lambda variable: not variable.trainable)

    def _with_sublayers(self) -> Iterator["LayerVariables"]:
        yield self
        for layer in self._sublayers():
            yield from layer._with_sublayers()

    def _all_regularizers(self) -> Iterator[tuple[int, Callable[[Any], Any]]]:
        yield from self._regularizers.items()
        for layer in self._sublayers():
            yield from layer._all_regularizers()

    @property
    def weights(self) -> list[Variable]:
        """All variables: the layer's own, trainable ones first, then those of the layers inside."""
        inner = (variable for layer in self._sublayers() for variable in layer.weights)
        return without_repeats(iter([*self._own_variables(), *inner]))

    @property
    def trainable_weights(self) -> list[Variable]:
        """The trainable variables."""
        if not self._trainable:
            return []
        own = (variable for variable in self._own_variables() if variable.trainable)
        inner = (variable for layer in self._sublayers() for variable in layer.trainable_weights)
        return without_repeats(iter([*own, *inner]))

    @property
    def non_trainable_weights(self) -> list[Variable]:
        """The variables that are not trainable."""
        trained = {id(variable) for variable in self.trainable_weights}
        return [variable for variable in self.weights if id(variable) not in trained]

    variables = weights
    trainable_variables = trainable_weights
    non_trainable_variables = non_trainable_weights

    def count_params(self) -> int:
        """Return the number of elements in all variables.

        Raises:
            ValueError: The layer is not built.
        """
        if not self.built:
            raise ValueError(
                f"You tried to call `count_params` on layer {self.name!r}, but the layer isn't built. You can build it "
                "manually via: `layer.build(input_shape)`."
            )
        return elements_of(self.weights)

    def get_weights(self) -> list[Any]:
        """Return the values of all variables as arrays."""
        return [variable.numpy() for variable in self.weights]

    def set_weights(self, weights: Sequence[Any]) -> None:
        """Set all variables, in the order of ``weights``; if a shape differs, none changes.

        Raises:
            ValueError: Their number differs, or a shape.
        """
        mine = self.weights
        if len(weights) != len(mine):
            raise ValueError(
                f"You called `set_weights(weights)` on layer {self.name!r} with a weight list of length "
                f"{len(weights)}, but the layer was expecting {len(mine)} weights."
            )
        values = [np.asarray(value) for value in weights]
        for variable, value in zip(mine, values, strict=True):
            if variable.shape != value.shape:
                raise ValueError(
                    f"Layer {self.name} weight shape {tuple(variable.shape)} is not compatible with provided weight "
                    f"shape {value.shape}."
                )
        for variable, value in zip(mine, values, strict=True):
            variable.assign(value.astype(variable.dtype.as_numpy_dtype))


def elements_of(variables: Sequence[Variable]) -> int:
    """Return the number of elements in variables."""
    return sum(variable.shape.num_elements() or 0 for variable in variables)


__all__ = ["LayerVariables", "elements_of"]

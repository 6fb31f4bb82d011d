"""Symbolic tensors: the inputs and outputs of layers in a functional model, which have shapes and no values.

A call of a layer with symbolic tensors records a node. A tensor refers to the node that it is an output of, so that
``plan.py`` finds a model by walking back from its outputs.
"""

from collections.abc import Callable, Sequence
from typing import Any, NoReturn, Protocol

from allotment.tf import nest
from allotment.tf.keras.engine.names import unique_name
from allotment.tf.tensors.dtype import as_dtype
from allotment.tf.tensors.tensor import Operands

#: The lengths of a tensor's axes; ``None`` for an unknown length, such as that of a batch.
Shape = tuple[int | None, ...]


class KerasTensor(Operands):
    """A placeholder for a tensor of a functional model. Python's operators on it record layers of the model.

    Args:
        shape: The lengths of its axes, ``None`` for unknown ones.
        dtype: The type of its elements.
        name: The name, made if not given.
    """

    def __init__(self, shape: Sequence[int | None], dtype: Any = "float32", name: str | None = None) -> None:
        self.shape: Shape = tuple(shape)
        self.dtype = as_dtype(dtype).name
        self.name = unique_name("keras_tensor") if name is None else name
        #: The call that it is an output of, and its number among the outputs.
        self.node: Node | None = None
        self.index = 0

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    def _as_tensor(self) -> NoReturn:
        """Refuse: operations need values."""
        raise ValueError(
            "A KerasTensor cannot be used as input to a TensorFlow function. A KerasTensor is a symbolic placeholder "
            "for a shape and dtype, used when constructing Keras Functional models. You can only use it as input to "
            "a Keras layer (from the namespace `keras.layers`). Call the function in the `call` of a layer of your "
            "own instead."
        )

    def __array__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise ValueError(
            f"A KerasTensor is symbolic: it has no values that could be an array. Received: {self}"
        )

    def __bool__(self) -> NoReturn:
        raise TypeError("A symbolic KerasTensor cannot be used as a boolean.")

    def __float__(self) -> NoReturn:
        raise ValueError(
            f"A KerasTensor is symbolic: it has no value that could be a number. Received: {self}"
        )

    __int__ = __float__

    def __iter__(self) -> NoReturn:
        raise NotImplementedError("Iterating over a symbolic KerasTensor is not supported.")

    def __repr__(self) -> str:
        return f"<KerasTensor shape={self.shape}, dtype={self.dtype}, name={self.name}>"


class RecordedLayer(Protocol):
    """A layer as the nodes of a functional model see it; ``Layer`` implements it."""

    name: str
    #: Its calls with symbolic tensors.
    nodes: "list[Node]"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the output."""

    def _forget_losses(self) -> None:
        """Drop the losses that the last call added."""


class Node:
    """One call of a layer with symbolic tensors.

    Args:
        layer: The layer that was called.
        args: Its positional arguments, with symbolic tensors in them.
        kwargs: Its keyword arguments.
        outputs: The symbolic outputs.
    """

    def __init__(
        self, layer: RecordedLayer, args: tuple[Any, ...], kwargs: dict[str, Any], outputs: Any
    ) -> None:
        self.layer = layer
        self.arguments = (args, kwargs)
        self.inputs = symbolic_in(self.arguments)
        self.outputs = outputs
        #: The number of the call among those of the layer.
        self.number = len(layer.nodes)
        for index, tensor in enumerate(nest.flatten(outputs)):
            tensor.node, tensor.index = self, index
        layer.nodes.append(self)

    def arguments_with(
        self, value_of: Callable[[KerasTensor], Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments with ``value_of(tensor)`` in the place of each symbolic tensor."""

        def put(value: Any) -> Any:
            return value_of(value) if isinstance(value, KerasTensor) else value

        args, kwargs = self.arguments
        return (
            tuple(nest.map_structure(put, arg) for arg in args),
            {key: nest.map_structure(put, arg) for key, arg in kwargs.items()},
        )


def symbolic_in(structure: Any) -> list[KerasTensor]:
    """Return the symbolic tensors in a nested structure."""
    return [value for value in nest.flatten(structure) if isinstance(value, KerasTensor)]


def shapes_of(structure: Any) -> Any:
    """Return the shapes of a structure of tensors, symbolic or not, in the same structure."""
    return nest.map_structure(lambda value: tuple(value.shape), structure)


__all__ = ["KerasTensor", "Node", "RecordedLayer", "Shape", "shapes_of", "symbolic_in"]

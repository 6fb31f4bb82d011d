"""Symbolic tensors: what a layer was called with and will give, before there are values.

A functional model is recorded by calling layers with these. Each call is a node; a tensor knows the node it came
from, so that a model can be found by walking back from its outputs.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from allotment.tf import nest
from allotment.tf.keras.engine.names import unique_name
from allotment.tf.tensors.dtype import as_dtype
from allotment.tf.tensors.tensor import Operands

if TYPE_CHECKING:
    from allotment.tf.keras.engine.layer import Layer

#: The lengths of a tensor's axes; ``None`` where a length is not known, as that of a batch.
Shape = tuple[int | None, ...]


class KerasTensor(Operands):
    """Stands for a tensor of a functional model. What Python's operators make of it is part of the model.

    Args:
        shape: The lengths of its axes, ``None`` where one is not known.
        dtype: The type of its elements.
        name: The name, made if not given.
    """

    def __init__(self, shape: Sequence[int | None], dtype: Any = "float32", name: str | None = None) -> None:
        self.shape: Shape = tuple(shape)
        self.dtype = as_dtype(dtype).name
        self.name = unique_name("keras_tensor") if name is None else name
        #: The call that gives it, and its number among that call's outputs.
        self.node: Node | None = None
        self.index = 0

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    def _as_tensor(self) -> NoReturn:
        """What operations ask values for."""
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

    def __iter__(self) -> NoReturn:
        raise TypeError("Iterating over a symbolic KerasTensor is not supported.")

    def __repr__(self) -> str:
        return f"<KerasTensor shape={self.shape}, dtype={self.dtype}, name={self.name}>"


class Node:
    """One call of a layer with symbolic tensors.

    Args:
        layer: The layer that was called.
        args: Its positional arguments, with symbolic tensors in them.
        kwargs: Its keyword arguments, with or without.
        outputs: What the call gave.
    """

    def __init__(self, layer: "Layer", args: tuple[Any, ...], kwargs: dict[str, Any], outputs: Any) -> None:
        self.layer = layer
        self.arguments = (args, kwargs)
        self.inputs = symbolic_in(self.arguments)
        self.outputs = outputs
        #: Number of the call among the layer's.
        self.number = len(layer.nodes)
        for index, tensor in enumerate(nest.flatten(outputs)):
            tensor.node, tensor.index = self, index
        layer.nodes.append(self)

    def arguments_with(
        self, value_of: Callable[[KerasTensor], Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments with something else in the place of each symbolic tensor."""

        def put(value: Any) -> Any:
            return value_of(value) if isinstance(value, KerasTensor) else value

        args, kwargs = self.arguments
        return (
            tuple(nest.map_structure(put, arg) for arg in args),
            {key: nest.map_structure(put, arg) for key, arg in kwargs.items()},
        )


def symbolic_in(structure: Any) -> list[KerasTensor]:
    """The symbolic tensors anywhere in lists, tuples and dictionaries."""
    return [value for value in nest.flatten(structure) if isinstance(value, KerasTensor)]


def shapes_of(structure: Any) -> Any:
    """The shapes of tensors, symbolic or not: a single one, or arranged as they are."""
    return nest.map_structure(lambda value: tuple(value.shape), structure)


__all__ = ["KerasTensor", "Node", "Shape", "shapes_of", "symbolic_in"]

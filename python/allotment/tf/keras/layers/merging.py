"""Layers that merge several tensors into one: ``Add`` and ``Concatenate``."""

from typing import Any

from allotment.tf.keras.engine.calls import calls
from allotment.tf.keras.engine.layer import Layer
from allotment.tf.keras.engine.precision import promoted
from allotment.tf.keras.engine.symbolic import Shape
from allotment.tf.ops.array.joining import concat
from allotment.tf.ops.math import arithmetic as math
from allotment.tf.tensors.tensor import EagerTensor


class Add(Layer):
    """The sum of tensors, which broadcast except along the batch. As ``keras.layers.Add``."""

    _keeps_dtype = True
    _makes_variables = False

    def build(self, input_shape: Any) -> None:
        """Check the shapes.

        Raises:
            ValueError: There is one input only, or shapes do not match.
        """
        self.compute_output_shape(input_shape)
        self.built = True

    def call(self, inputs: Any) -> EagerTensor:
        """Compute the output."""
        if not calls.tracing:
            _check_batches([each._array.shape for each in inputs])
        total, *others = promoted(inputs)
        for each in others:
            total = math.add(total, each)
        return total

    def compute_output_shape(self, input_shape: Any) -> Shape:
        """Return the shape that the inputs broadcast to.

        Raises:
            ValueError: There is one input only, or shapes do not match.
        """
        shapes = several(input_shape, "A merge layer should be called on a list of inputs.")
        _check_batches(shapes)
        result = shapes[0]
        for shape in shapes[1:]:
            result = _broadcast(result, shape)
        return result


def _check_batches(shapes: list[Shape]) -> None:
    if len({shape[0] for shape in shapes if shape} - {None}) > 1:
        raise ValueError(
            f"Cannot merge tensors with different batch sizes. Received tensors with shapes {shapes}"
        )


def _broadcast(one: Shape, other: Shape) -> Shape:
    if len(one) != len(other):
        raise ValueError(f"Inputs have incompatible shapes. Received shapes {one[1:]} and {other[1:]}")
    return tuple(_length(a, b, one, other) for a, b in zip(one, other, strict=True))


def _length(a: int | None, b: int | None, one: Shape, other: Shape) -> int | None:
    if a == b or b == 1:
        return a
    if a == 1:
        return b
    if a is None or b is None:
        return a if b is None else b
    raise ValueError(f"Inputs have incompatible shapes. Received shapes {one[1:]} and {other[1:]}")


class Concatenate(Layer):
    """The concatenation of tensors along an axis. As ``keras.layers.Concatenate``."""

    _keeps_dtype = True
    _makes_variables = False

    def __init__(self, axis: int = -1, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.axis = axis

    def build(self, input_shape: Any) -> None:
        """Check the shapes.

        Raises:
            ValueError: There is one input only, or shapes do not match.
        """
        self._checked(input_shape)
        self.built = True

    def call(self, inputs: Any) -> EagerTensor:
        """Compute the output."""
        return concat(promoted(inputs), self.axis)

    def compute_output_shape(self, input_shape: Any) -> Shape:
        """Return the shape of the concatenation.

        Raises:
            ValueError: There is one input only, or shapes do not match.
        """
        shapes = self._checked(input_shape)
        result, lengths = list(shapes[0]), [shape[self.axis] for shape in shapes]
        result[self.axis] = None if None in lengths else sum(each or 0 for each in lengths)
        return tuple(result)

    def _checked(self, input_shape: Any) -> list[Shape]:
        """Check and return the shapes of the inputs. An axis after the last one is left to the operation, as in Keras.

        Raises:
            IndexError: A negative axis is out of range.
            ValueError: There is one input only, or shapes do not match.
        """
        shapes = several(input_shape, "A `Concatenate` layer should be called on a list of inputs.")
        first = shapes[0]
        axis = self.axis % len(first) if self.axis < len(first) or not first else None
        if self.axis < -len(first):
            raise IndexError(f"axis {self.axis} is out of range for inputs of shape {first}")
        for shape in shapes:
            others = [(a, b) for at, (a, b) in enumerate(zip(first, shape, strict=False)) if at != axis]
            if len(shape) != len(first) or any(None not in pair and pair[0] != pair[1] for pair in others):
                raise ValueError(
                    "A `Concatenate` layer requires inputs with matching shapes except for the concatenation axis. "
                    f"Received: input_shape={shapes}"
                )
        return shapes


def add(inputs: Any, **kwargs: Any) -> Any:
    """Add tensors, symbolic or not: ``Add(...)(inputs)``. As ``keras.layers.add``."""
    return Add(**kwargs)(inputs)


def concatenate(inputs: Any, axis: int = -1, **kwargs: Any) -> Any:
    """Concatenate tensors: ``Concatenate(axis, ...)(inputs)``. As ``keras.layers.concatenate``."""
    return Concatenate(axis, **kwargs)(inputs)


def several(input_shape: Any, told: str) -> list[Shape]:
    """Check that there are several inputs, and return their shapes.

    Raises:
        ValueError: There is one.
    """
    if not isinstance(input_shape, list | tuple) or not all(isinstance(each, tuple) for each in input_shape):
        raise ValueError(f"{told} Received: input_shape={input_shape} (not a list of shapes)")
    return list(input_shape)


__all__ = ["Add", "Concatenate", "add", "concatenate"]

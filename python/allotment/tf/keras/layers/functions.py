"""Layers of functions: ``Lambda``, ``Rescaling``, and Python's operators between symbolic tensors."""

import inspect
from collections.abc import Callable
from typing import Any

from allotment.tf.keras.absent import refuse_unless_none
from allotment.tf.keras.engine.layer import Layer
from allotment.tf.keras.engine.names import unique_name
from allotment.tf.keras.engine.symbolic import KerasTensor
from allotment.tf.keras.layers.bases import SameShapeLayer
from allotment.tf.ops.array.array import cast
from allotment.tf.ops.convert import to_tensor
from allotment.tf.ops.math.arithmetic import add, multiply
from allotment.tf.ops.operators import OPERATORS, attach
from allotment.tf.tensors.tensor import EagerTensor


class Lambda(Layer):
    """A function as a layer. As ``keras.layers.Lambda``. Variables that it uses are not those of the layer.

    Args:
        function: A function of the inputs, and of ``training`` if it has that argument.
        output_shape: Has no effect: two calls with zeros find the shape.
        mask: Not offered.
        arguments: Further arguments of the function.
        **kwargs: Arguments of ``Layer``.

    Raises:
        TypeError: ``function`` is not callable.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        output_shape: Any = None,  # noqa: ARG002 - tells nothing that trying does not
        mask: Any = None,
        arguments: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        refuse_unless_none("Lambda", mask=mask)
        super().__init__(**kwargs)
        if not callable(function):
            raise TypeError(f"a Lambda layer takes a function of the inputs, not {function!r}")
        self.function = function
        self.arguments = dict(arguments or {})
        self._is_told = _wants_training(function)

    def call(self, inputs: Any, training: bool | None = None) -> Any:
        """Compute the output."""
        told = {"training": training} if self._is_told and "training" not in self.arguments else {}
        return self.function(inputs, **self.arguments, **told)


def _wants_training(function: Callable[..., Any]) -> bool:
    try:
        return "training" in inspect.signature(function).parameters
    except ValueError:
        # Python does not know the arguments of everything that is written in C.
        return False


class Rescaling(SameShapeLayer):
    """``inputs * scale + offset``, in the type of the layer. As ``keras.layers.Rescaling``."""

    def __init__(self, scale: Any, offset: Any = 0.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.scale, self.offset = scale, offset

    def __call__(self, inputs: Any, **kwargs: Any) -> Any:
        """Compute the output; as a preprocessing layer, it takes lists and numbers, too."""
        is_plain = isinstance(inputs, list | tuple | int | float)
        return super().__call__(to_tensor(inputs) if is_plain else inputs, **kwargs)

    def call(self, inputs: EagerTensor) -> EagerTensor:
        """Compute the output."""
        return add(multiply(cast(inputs, self.dtype), self.scale), self.offset)


class Operation(Layer):
    """A Python operator between symbolic tensors, or between symbolic tensors and values.

    Args:
        name: The name of its method, such as ``__add__``.
        operands: The operands.
    """

    def __init__(self, name: str, operands: tuple[Any, ...]) -> None:
        first = next(each for each in operands if isinstance(each, KerasTensor))
        super().__init__(name=unique_name(name.strip("_")), dtype=first.dtype)
        self._function = OPERATORS[name]
        #: The operands that are no symbolic tensors, by position.
        self._values = {at: each for at, each in enumerate(operands) if not isinstance(each, KerasTensor)}

    def call(self, *tensors: EagerTensor) -> EagerTensor:
        """Compute the output."""
        given = iter(tensors)
        count = len(tensors) + len(self._values)
        operands = [self._values[at] if at in self._values else next(given) for at in range(count)]
        return self._function(*operands)  # type: ignore[no-any-return]


def _symbolic(name: str) -> Callable[..., Any]:
    def call(*operands: Any) -> Any:
        return Operation(name, operands)(*(each for each in operands if isinstance(each, KerasTensor)))

    return call


# Not ``==``: symbolic tensors are compared by identity.
attach(KerasTensor, {name: _symbolic(name) for name in OPERATORS if name not in ("__eq__", "__ne__")})

__all__ = ["Lambda", "Operation", "Rescaling"]

"""``tf.function``: a decorator that keeps a function eager and converts its arguments and results."""

import functools
import inspect
import logging
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from allotment.tf import nest
from allotment.tf.ops.convert import to_tensor
from allotment.tf.ops.functions import across_boundary, are_recorded, inside_function
from allotment.tf.tensors.tensor import Tensor
from allotment.tf.tensors.tensor_spec import TensorSpec

_logger: Final = logging.getLogger("allotment.tf.tf_function")
_POSITIONAL: Final = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
#: Types of the results that a compiled function would return as tensors.
_VALUES = (bool, int, float, complex, str, bytes, np.ndarray, np.generic)


class Function:
    """Wrapper that calls a Python function eagerly with the argument and result types of TensorFlow's functions.

    Every call runs eagerly, as after ``tf.config.run_functions_eagerly(True)``: prints and other side effects happen
    at each call, and Python's ``if`` and ``while`` see values.
    """

    #: The name of the Python function.
    __name__: str

    def __init__(self, python_function: Callable[..., Any], input_signature: Any = None) -> None:
        self._python_function = python_function
        self._signature = None if input_signature is None else tuple(input_signature)
        self.__name__ = type(python_function).__name__
        functools.update_wrapper(self, python_function)
        if self._signature is not None:
            self._check_signature(len(self._signature))

    @property
    def python_function(self) -> Callable[..., Any]:
        """The wrapped Python function."""
        return self._python_function

    @property
    def input_signature(self) -> Any:
        """The ``TensorSpec`` of each positional argument; ``None`` without a signature."""
        return self._signature

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the Python function and convert the numbers and arrays in its result to tensors.

        Raises:
            TypeError: An argument does not match the input signature.
        """
        if self._signature is not None:
            args = self._check_arguments(args)
        given, named = _arrays_to_tensors(args), _arrays_to_tensors(kwargs)
        with inside_function(are_recorded()):
            made = self._python_function(*given, **named)
        return nest.map_structure(_to_tensors, made)

    def _check_signature(self, length: int) -> None:
        """Check that the function takes as many arguments as the input signature has.

        Raises:
            TypeError: It takes fewer.
        """
        try:
            parameters = inspect.signature(self._python_function).parameters.values()
        except (TypeError, ValueError):
            return
        positional = [each for each in parameters if each.kind in _POSITIONAL]
        extra = length - len(positional)
        if extra > 0 and not any(each.kind is each.VAR_POSITIONAL for each in parameters):
            raise TypeError(
                f"input_signature contains {extra} extra type constraints: {self.__name__} takes {len(positional)} "
                "arguments."
            )

    def _check_arguments(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        assert self._signature is not None
        if len(args) > len(self._signature):
            raise TypeError(
                f"{self.__name__} takes {len(self._signature)} arguments by its input_signature, and got {len(args)}"
            )
        return tuple(
            self._check_argument(spec, value)
            if isinstance(spec, TensorSpec)
            else nest.map_structure(self._check_argument, spec, value)
            for spec, value in zip(self._signature, args, strict=False)
        )

    def _check_argument(self, spec: Any, value: Any) -> Any:
        if hasattr(type(value), "_with_values"):
            if not spec.is_compatible_with(value):
                raise TypeError(
                    f"{self.__name__} takes {spec!r} by its input_signature, and got values of replicas that do not "
                    f"match it: {value!r}"
                )
            return value
        tensor = value if isinstance(value, Tensor) else to_tensor(value, spec.dtype)
        if tensor.dtype is not spec.dtype or not spec.shape.is_compatible_with(tensor.shape):
            raise TypeError(
                f"{self.__name__} takes {spec!r} by its input_signature, and got a tensor of shape {tensor.shape} and "
                f"type {tensor.dtype.name}"
            )
        return tensor

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """Bind the function to an object, as a method."""
        if instance is None:
            return self
        return Function(self._python_function.__get__(instance, owner), self._signature)

    def get_concrete_function(self, *args: Any, **kwargs: Any) -> Any:
        """Raise ``NotImplementedError``: functions run eagerly and have no graph to return."""
        raise NotImplementedError(
            "get_concrete_function: functions run eagerly here and have no graph. Call the function itself, or record "
            "a graph with tf.compat.v1.Graph()."
        )

    def __repr__(self) -> str:
        return f"<allotment.tf.tf_function {self.__name__}>"


def function(
    func: Callable[..., Any] | None = None,
    input_signature: Any = None,
    autograph: bool = True,  # noqa: ARG001 - eager code needs none
    jit_compile: bool | None = None,
    reduce_retracing: bool = False,  # noqa: ARG001 - nothing is traced
) -> Any:
    """Decorate a function as ``tf.function`` does, but run it eagerly; see :class:`Function`.

    Args:
        func: The function; without it the call returns a decorator.
        input_signature: A ``TensorSpec``, or a structure of them, for each positional argument.
        autograph: Has no effect.
        jit_compile: Has no effect; the first ``True`` logs a warning.
        reduce_retracing: Has no effect.

    Returns:
        A :class:`Function`, or a decorator.

    Raises:
        TypeError: ``func`` is not callable.
    """
    if jit_compile:
        warn_jit_compile_ignored()
    if func is None:
        return functools.partial(function, input_signature=input_signature)
    if not callable(func):
        raise TypeError(f"tf.function takes a function, not {func!r}")
    return Function(func, input_signature)


@functools.cache
def warn_jit_compile_ignored() -> None:
    """Log, at the first call, a warning that ``jit_compile=True`` has no effect."""
    _logger.warning("jit_compile=True has no effect: functions run eagerly here, none is compiled.")


def _arrays_to_tensors(arguments: Any) -> Any:
    """Convert the NumPy arrays among a function's arguments to tensors; Python's numbers stay as they are."""
    return nest.map_structure(
        lambda each: to_tensor(each) if isinstance(each, np.ndarray | np.generic) else _crossing(each),
        arguments,
    )


def _to_tensors(value: Any) -> Any:
    if hasattr(value, "_with_values"):
        # Per-replica values, as `Strategy.run` returns them, cannot be one tensor: convert each.
        return value._with_values([nest.map_structure(_to_tensors, each) for each in value.values])
    if isinstance(value, _VALUES) or hasattr(value, "_as_tensor"):
        return to_tensor(value)
    return _crossing(value)


def _crossing(value: Any) -> Any:
    """Return an argument or a result as the other side of the function's boundary sees it."""
    return across_boundary(value) if are_recorded() else value


__all__ = ["Function", "function", "warn_jit_compile_ignored"]

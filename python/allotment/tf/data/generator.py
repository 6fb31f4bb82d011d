"""Elements of Python generators, checked against their declared types and shapes."""

from collections.abc import Callable, Iterable, Iterator
from traceback import format_tb
from typing import Any, Final

from allotment.errors import (
    InvalidArgumentError,
    OpError,
    ResourceExhaustedError,
    UnimplementedError,
    UnknownError,
)
from allotment.tf.data.resumable import Resumable
from allotment.tf.data.structure import flatten, on_host, pack, same_structure
from allotment.tf.ops.convert import to_tensor
from allotment.tf.tensors.dtype import as_dtype
from allotment.tf.tensors.tensor import EagerTensor
from allotment.tf.tensors.tensor_shape import TensorShape
from allotment.tf.tensors.tensor_spec import TensorSpec

#: The classes of errors for those that a generator raises. All others are an ``UnknownError``.
_CLASSES: Final[dict[Any, Callable[[None, None, str], OpError]]] = {
    (TypeError, ValueError): InvalidArgumentError,
    MemoryError: ResourceExhaustedError,
    NotImplementedError: UnimplementedError,
}
_END: Final = object()


def signature(output_types: Any, output_shapes: Any, output_signature: Any) -> Any:
    """Return the spec of a generator's elements from types and shapes, or from a signature.

    Raises:
        TypeError: Both or none are given, or a value of the signature is no ``TensorSpec``.
    """
    if output_signature is not None:
        for given, name in ((output_types, "output_types"), (output_shapes, "output_shapes")):
            if given is not None:
                raise TypeError(
                    f"The `{name}` argument can not be used together with the `output_signature` argument."
                )
        for spec in flatten(output_signature):
            if not isinstance(spec, TensorSpec):
                raise TypeError(
                    "`output_signature` must contain objects that are subclass of `tf.TypeSpec` but found "
                    f"{type(spec)} which is not."
                )
        return output_signature
    if output_types is None:
        raise TypeError(
            "To specify the output signature you need to provide either the `output_signature` argument or the "
            "`output_types` argument."
        )
    types = flatten(output_types)
    shapes: list[Any] = [None] * len(types)
    if output_shapes is not None:
        # For a single type, a tuple is a shape and no structure.
        single = not isinstance(output_types, dict | tuple)
        shapes = [output_shapes] if single else _flatten_up_to(output_types, output_shapes)
    specs = [
        TensorSpec(TensorShape(shape), as_dtype(dtype)) for shape, dtype in zip(shapes, types, strict=True)
    ]
    return pack(output_types, specs)


def _flatten_up_to(structure: Any, other: Any) -> list[Any]:
    """Return the parts of ``other`` in the places of the values of a structure."""
    if isinstance(structure, dict):
        return [part for key in sorted(structure) for part in _flatten_up_to(structure[key], other[key])]
    if isinstance(structure, tuple):
        return [part for pair in zip(structure, other, strict=True) for part in _flatten_up_to(*pair)]
    return [other]


def generated(make: Callable[[], Iterable[Any]], spec: Any) -> Iterator[Any]:
    """Make an iterator over the values of a generator as tensors of the declared types and shapes.

    An iteration raises:
        InvalidArgumentError: A value of another structure, type or shape.
        OpError: The generator raises an error, which is the cause of this one.
    """
    values: Iterator[Any] | None = None

    def following() -> Any:
        nonlocal values
        try:
            if values is None:
                values = iter(make())
            value = next(values, _END)
        except ResourceExhaustedError:
            raise
        except Exception as error:
            failed = _failed(error)
            # The text has the lines: the frames would keep the arrays of the generator.
            error.__traceback__ = None
            raise failed from error
        if value is _END:
            raise StopIteration
        element = tuple(value) if isinstance(value, list) and isinstance(spec, tuple) else value
        if not same_structure(spec, element, up_to=True):
            raise _unexpected(spec, value)
        pairs = zip(flatten(spec), _flatten_up_to(spec, element), strict=True)
        return pack(spec, [_checked(one, each, spec, value) for one, each in pairs])

    return Resumable(following)


def _failed(error: Exception) -> Exception:
    """Return the error of an iteration in which a generator raised ``error``, of the class that TensorFlow chooses."""
    text = f"{type(error).__name__}: {error}\n{''.join(format_tb(error.__traceback__))}"
    for kinds, made in _CLASSES.items():
        if isinstance(error, kinds):
            return made(None, None, text)
    return UnknownError(None, None, text)


def _checked(spec: TensorSpec, given: Any, whole: Any, value: Any) -> EagerTensor:
    try:
        with on_host():
            tensor = to_tensor(given, spec.dtype)
    except (TypeError, ValueError) as error:
        error.__traceback__ = None
        raise _unexpected(whole, value) from None
    if not spec.shape.is_compatible_with(tensor.shape):
        raise InvalidArgumentError(
            None,
            None,
            f"TypeError: `generator` yielded an element of shape {tensor.shape} where an element of shape {spec.shape} "
            "was expected.",
        )
    return tensor


def _unexpected(spec: Any, value: Any) -> InvalidArgumentError:
    return InvalidArgumentError(
        None,
        None,
        "TypeError: `generator` yielded an element that did not match the expected structure. The expected structure "
        f"was {spec}, but the yielded element was {value}.",
    )


__all__ = ["generated", "signature"]

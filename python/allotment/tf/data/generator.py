"""Elements of Python generators, checked against their declared types and shapes."""

from collections.abc import Callable, Iterator
from typing import Any

from allotment.errors import InvalidArgumentError
from allotment.tf.data.structure import flatten, map_values, on_host, pack, same_structure
from allotment.tf.ops.convert import to_tensor
from allotment.tf.tensors.dtype import as_dtype
from allotment.tf.tensors.tensor import EagerTensor
from allotment.tf.tensors.tensor_shape import TensorShape
from allotment.tf.tensors.tensor_spec import TensorSpec


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
        shapes = [output_shapes] if single else _shapes(output_types, output_shapes)
    specs = [
        TensorSpec(TensorShape(shape), as_dtype(dtype)) for shape, dtype in zip(shapes, types, strict=True)
    ]
    return pack(output_types, specs)


def _shapes(types: Any, shapes: Any) -> list[Any]:
    if isinstance(types, dict):
        return [shape for key in sorted(types) for shape in _shapes(types[key], shapes[key])]
    if isinstance(types, tuple):
        return [shape for pair in zip(types, shapes, strict=True) for shape in _shapes(*pair)]
    return [shapes]


def generated(make: Callable[[], Iterator[Any]], spec: Any) -> Iterator[Any]:
    """Yield the values of a generator as tensors of the declared types and shapes.

    Raises:
        InvalidArgumentError: A value of another structure, type or shape.
    """
    for value in make():
        element = tuple(value) if isinstance(value, list) and isinstance(spec, tuple) else value
        if not same_structure(spec, element):
            raise _unexpected(spec, value)
        yield map_values(lambda one, each, value=value: _checked(one, each, spec, value), spec, element)


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

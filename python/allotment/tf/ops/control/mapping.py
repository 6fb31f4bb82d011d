"""Functions called for every slice along the first axis."""

from collections.abc import Callable
from typing import Any

from allotment import errors
from allotment.tf import nest
from allotment.tf.ops.array.creation import zeros
from allotment.tf.ops.array.joining import stack
from allotment.tf.ops.control.traced import is_traced, repeated
from allotment.tf.ops.convert import to_tensor
from allotment.tf.tensors.dtype import DType, as_dtype
from allotment.tf.tensors.tensor import EagerTensor
from allotment.tf.tensors.tensor_shape import TensorShape


def _slices(elems: Any) -> tuple[list[EagerTensor], int | None]:
    """The tensors of a structure and the length of their first axes; ``None`` while a function is traced."""
    flat = [to_tensor(each) for each in nest.flatten(elems)]
    if not flat:
        raise ValueError(
            f"elems must be a Tensor or (possibly nested) sequence of Tensors. Got {elems}, which does not contain "
            "any Tensors."
        )
    if any(not tensor.ndim for tensor in flat):
        raise ValueError("Elements in elems must be 1+ dimensional Tensors, not scalars")
    lengths = [tensor.shape[0] for tensor in flat]
    count: int | None = lengths[0]
    for length in lengths:
        if count is not None and length is not None and length != count:
            raise ValueError(f"Dimensions {count} and {length} are not compatible")
    if count is None and not is_traced(flat[0]):
        raise ValueError(
            f"the function is called once for each slice, and how many {flat[0]!r} has must be known when the graph is "
            "built. Give placeholders a full shape, or use `set_shape`."
        )
    return flat, count


def map_fn(
    fn: Callable[..., Any],
    elems: Any,
    dtype: Any = None,
    parallel_iterations: int | None = None,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    name: str | None = None,
    fn_output_signature: Any = None,
) -> Any:
    """Call a function with each slice along the first axis and stack what it returns. As ``tf.map_fn``.

    Args:
        fn: Gets one slice, or a structure of them if ``elems`` is one.
        elems: A tensor, or a structure of tensors with equally long first axes.
        dtype: The old name of ``fn_output_signature``.
        parallel_iterations: Not looked at.
        back_prop: Not looked at.
        swap_memory: Not looked at.
        infer_shape: Not looked at.
        name: Not looked at.
        fn_output_signature: The types of what ``fn`` returns; without it those of ``elems``.

    Raises:
        ValueError: There is a scalar among ``elems``, or ``fn`` returns another structure than was said.
        InvalidArgumentError: ``fn`` returns another type than was said.
    """
    tensors, count = _slices(elems)
    signature = dtype if fn_output_signature is None else fn_output_signature
    if signature is None:
        kinds = nest.pack_sequence_as(elems, [tensor._dtype for tensor in tensors])
    else:
        kinds = nest.map_structure(lambda each: as_dtype(getattr(each, "dtype", each)), signature)
    flat_kinds: list[DType] = nest.flatten(kinds)
    shapes = [TensorShape(getattr(each, "shape", None)) for each in nest.flatten(signature)]
    shapes = shapes if len(shapes) == len(flat_kinds) else [TensorShape(None)] * len(flat_kinds)
    columns: list[list[EagerTensor]] = [[] for _ in flat_kinds]
    for index in range(1 if count is None else count):
        result = fn(nest.pack_sequence_as(elems, [tensor[index] for tensor in tensors]))
        nest.assert_same_structure(kinds, result, check_types=False)
        for place, (kind, value) in enumerate(zip(flat_kinds, nest.flatten(result), strict=True)):
            made = _of_type(to_tensor(value), kind)
            if not shapes[place].is_compatible_with(made.shape):
                raise ValueError(
                    f"Incompatible shape for value ({made.shape}), expected ({shapes[place]}): the function returns "
                    "tensors of other shapes than were said, or than the first"
                )
            shapes[place] = made.shape
            columns[place].append(made)
    if count is None:
        return nest.pack_sequence_as(kinds, [repeated(column[0], tensors[0]) for column in columns])
    stacked = [
        stack(column) if column else zeros([0, *(shape if shape.is_fully_defined() else [])], kind)
        for column, kind, shape in zip(columns, flat_kinds, shapes, strict=True)
    ]
    return nest.pack_sequence_as(kinds, stacked)


def _of_type(tensor: EagerTensor, kind: DType) -> EagerTensor:
    if tensor._dtype is not kind:
        raise errors.InvalidArgumentError(
            None,
            None,
            f"TensorArray dtype is {kind.name} but Op is trying to write dtype {tensor._dtype.name} ",
        )
    return tensor


def _fold(
    fn: Callable[..., Any], elems: Any, initializer: Any, backwards: bool, of_one_type: bool = False
) -> tuple[Any, list[Any]]:
    tensors, count = _slices(elems)
    # While a function is traced, the first slice stands for all.
    order = list(range(2 if count is None else count))[:: -1 if backwards else 1]
    parts = [nest.pack_sequence_as(elems, [tensor[index] for tensor in tensors]) for index in order]
    so_far: list[Any] = []
    if initializer is None:
        if not parts:
            raise errors.OutOfRangeError(
                None, None, "there is nothing to begin with: elems are empty and there is no initializer"
            )
        so_far.append(parts.pop(0))
        value = so_far[0]
    else:
        value = nest.map_structure(to_tensor, initializer)
    kinds = nest.map_structure(lambda each: each._dtype, value)
    for part in parts:
        result = fn(value, part)
        nest.assert_same_structure(value, result)
        value = nest.map_structure(to_tensor, result)
        if of_one_type:
            nest.map_structure(_of_type, value, kinds)
        so_far.append(value)
    return value, so_far


def foldl(
    fn: Callable[..., Any],
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str | None = None,
) -> Any:
    """Call a function with what it returned before and the next slice, from the first on. As ``tf.foldl``."""
    return _fold(fn, elems, initializer, False)[0]


def foldr(
    fn: Callable[..., Any],
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str | None = None,
) -> Any:
    """Call a function with what it returned before and the next slice, from the last on. As ``tf.foldr``."""
    return _fold(fn, elems, initializer, True)[0]


def scan(
    fn: Callable[..., Any],
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    reverse: bool = False,
    name: str | None = None,
) -> Any:
    """As ``foldl``, but return all that the function returned, stacked. As ``tf.scan``."""
    last, values = _fold(fn, elems, initializer, reverse, of_one_type=True)
    if not values:
        return nest.map_structure(lambda each: zeros([0, *each.shape], each._dtype), last)
    if is_traced(nest.flatten(elems)[0]) and nest.flatten(elems)[0].shape[0] is None:
        return nest.map_structure(lambda each: repeated(each, nest.flatten(elems)[0]), last)
    flat = [nest.flatten(value) for value in (values[::-1] if reverse else values)]
    return nest.pack_sequence_as(last, [stack(column) for column in zip(*flat, strict=True)])


__all__ = ["foldl", "foldr", "map_fn", "scan"]

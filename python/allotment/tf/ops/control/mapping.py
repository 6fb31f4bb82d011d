"""Functions called for every slice along the first axis."""

from collections.abc import Callable
from typing import Any

from allotment import errors
from allotment.tf import nest
from allotment.tf.dispatch import thread
from allotment.tf.ops.array.creation import zeros
from allotment.tf.ops.array.joining import concat, stack
from allotment.tf.ops.array.layout import expand_dims
from allotment.tf.ops.convert import to_tensor
from allotment.tf.tensors.dtype import DType, as_dtype
from allotment.tf.tensors.tensor import EagerTensor
from allotment.tf.tensors.tensor_shape import TensorShape


def _slices(elems: Any) -> tuple[list[EagerTensor], int | None]:
    """The tensors of a structure and the length of their first axes; ``None`` if a graph does not know it."""
    flat = [to_tensor(each) for each in nest.flatten(elems)]
    if not flat:
        raise ValueError(
            f"elems must be a Tensor or (possibly nested) sequence of Tensors. Got {elems}, which does not contain "
            "any Tensors."
        )
    if any(tensor.shape.rank == 0 for tensor in flat):
        raise ValueError("Elements in elems must be 1+ dimensional Tensors, not scalars")
    lengths = [None if tensor.shape.rank is None else tensor.shape[0] for tensor in flat]
    count: int | None = lengths[0]
    for length in lengths:
        if count is not None and length is not None and length != count:
            raise ValueError(f"Dimensions {count} and {length} are not compatible")
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

    def called(slices: list[Any]) -> list[EagerTensor]:
        result = fn(nest.pack_sequence_as(elems, slices))
        nest.assert_same_structure(kinds, result, check_types=False)
        found = []
        for place, (kind, value) in enumerate(zip(flat_kinds, nest.flatten(result), strict=True)):
            made = _of_type(to_tensor(value), kind)
            if not shapes[place].is_compatible_with(made.shape):
                raise ValueError(
                    f"Incompatible shape for value ({made.shape}), expected ({shapes[place]}): the function returns "
                    "tensors of other shapes than were said, or than the first"
                )
            shapes[place] = made.shape
            found.append(made)
        return found

    graph = thread.state.graph
    if count is None and graph is not None:
        _, outs = graph.loop(lambda _, slices: ([], called(slices)), tensors, [], False, name or "map")
        return nest.pack_sequence_as(kinds, outs)
    rows = [called([tensor[index] for tensor in tensors]) for index in range(count or 0)]
    if not rows:
        lengths: list[Any] = [shape if shape.is_fully_defined() else [] for shape in shapes]
        empty = [zeros([0, *shape], kind) for shape, kind in zip(lengths, flat_kinds, strict=True)]
        return nest.pack_sequence_as(kinds, empty)
    return nest.pack_sequence_as(kinds, [stack(column) for column in zip(*rows, strict=True)])


def _of_type(tensor: EagerTensor, kind: DType) -> EagerTensor:
    if tensor._dtype is not kind:
        raise errors.InvalidArgumentError(
            None,
            None,
            f"TensorArray dtype is {kind.name} but Op is trying to write dtype {tensor._dtype.name} ",
        )
    return tensor


def _fold(
    fn: Callable[..., Any], elems: Any, initializer: Any, backwards: bool, name: str, stacks: bool = False
) -> tuple[Any, Any]:
    """Return the last value and, with ``stacks``, all values stacked in the order of the slices."""
    tensors, count = _slices(elems)
    if initializer is None and count == 0:
        raise errors.OutOfRangeError(
            None, None, "there is nothing to begin with: elems are empty and there is no initializer"
        )
    begun = initializer is None
    if begun:
        # The first slice is the first value.
        initializer = nest.pack_sequence_as(elems, [tensor[-1 if backwards else 0] for tensor in tensors])
        tensors = [tensor[:-1] if backwards else tensor[1:] for tensor in tensors]
    first = nest.map_structure(to_tensor, initializer)

    def called(value: Any, slices: list[Any], is_typed: bool) -> Any:
        result = fn(value, nest.pack_sequence_as(elems, slices))
        nest.assert_same_structure(first, result)
        made = nest.map_structure(to_tensor, result)
        if is_typed:
            nest.map_structure(lambda each, start: _of_type(each, start._dtype), made, first)
        return made

    graph = thread.state.graph
    if count is None and graph is not None:

        def step(values: list[Any], slices: list[Any]) -> tuple[list[Any], list[Any]]:
            made = nest.flatten(called(nest.pack_sequence_as(first, values), slices, True))
            return made, made if stacks else []

        finals, outs = graph.loop(step, tensors, nest.flatten(first), backwards, name)
        if begun and stacks:
            starts = [expand_dims(each, 0) for each in nest.flatten(first)]
            pairs = zip(starts, outs, strict=True)
            outs = [concat([rest, one] if backwards else [one, rest], 0) for one, rest in pairs]
        return nest.pack_sequence_as(first, finals), nest.pack_sequence_as(first, outs) if stacks else None
    value, values = first, [first] if begun else []
    order = range((count or 0) - begun)
    for index in reversed(order) if backwards else order:
        value = called(value, [tensor[index] for tensor in tensors], stacks)
        values.append(value)
    if not stacks:
        return value, None
    if not values:
        return value, nest.map_structure(lambda each: zeros([0, *each.shape], each._dtype), first)
    flat = [nest.flatten(each) for each in (values[::-1] if backwards else values)]
    return value, nest.pack_sequence_as(first, [stack(column) for column in zip(*flat, strict=True)])


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
    return _fold(fn, elems, initializer, False, name or "foldl")[0]


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
    return _fold(fn, elems, initializer, True, name or "foldr")[0]


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
    return _fold(fn, elems, initializer, reverse, name or "scan", stacks=True)[1]


__all__ = ["foldl", "foldr", "map_fn", "scan"]

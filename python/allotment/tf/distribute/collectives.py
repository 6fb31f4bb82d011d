"""All-reduce and all-gather among the replicas of a step, with their gradients."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from allotment.tf import nest
from allotment.tf.differentiation.custom_gradients import custom_gradient
from allotment.tf.dispatch import thread
from allotment.tf.distribute.extended import StrategyExtended
from allotment.tf.distribute.reductions.reduce_op import ReduceOp
from allotment.tf.distribute.scopes import Channel
from allotment.tf.ops.convert import to_tensor
from allotment.tf.ops.math.division import truediv
from allotment.tf.tensors.indexed_slices import IndexedSlices
from allotment.tf.tensors.tensor import EagerTensor

#: The longest description of a structure in a message, in characters.
_LONGEST_FORM: Final = 100

#: Makes the results for each replica of the tensors of each replica, value by value.
_Combine = Callable[[list[tuple[EagerTensor, ...]]], Sequence[Sequence[EagerTensor]]]


class Caller(NamedTuple):
    """The replica that calls a collective."""

    extended: StrategyExtended
    channel: Channel


def all_reduce(caller: Caller, reduce_op: ReduceOp, value: Any) -> Any:
    """Reduce the values of all replicas; every replica gets the result. See ``ReplicaContext.all_reduce``."""

    def reduced(*flat: EagerTensor) -> tuple[list[EagerTensor], Callable[..., Any]]:
        # A replica's value is part of the results of all, so its gradient is the sum of those of all.
        made = _all_reduced(caller, reduce_op, flat, form)
        return made, lambda *back: _all_reduced(caller, reduce_op, back)

    form = _form(value)
    flat = nest.flatten(value)
    slices = [each for each in flat if isinstance(each, IndexedSlices)]
    if not slices:
        return _for_each(value, reduced)
    tensors = [each for each in flat if not isinstance(each, IndexedSlices)]
    joined = iter(_joined(caller, reduce_op, slices, form))
    sums = iter(_for_each(tensors, reduced) if tensors else ())
    made = [next(joined if isinstance(each, IndexedSlices) else sums) for each in flat]
    return nest.pack_sequence_as(value, made) if nest.is_nested(value) else made[0]


def _joined(
    caller: Caller, reduce_op: ReduceOp, slices: Sequence[IndexedSlices], form: str
) -> list[IndexedSlices]:
    """Join the rows of all replicas: the slices stand for the sums. The rows of a mean are divided before."""
    flat: list[Any] = []
    for each in slices:
        rows = each.values
        if reduce_op is ReduceOp.MEAN:
            rows = truediv(rows, to_tensor(caller.extended._num_replicas, rows.dtype))
        flat += [rows, each.indices]
    made = _gathered(caller, flat, 0, form)
    return [
        IndexedSlices(rows, indices, each.dense_shape)
        for rows, indices, each in zip(made[::2], made[1::2], slices, strict=True)
    ]


def all_gather(caller: Caller, value: Any, axis: int) -> Any:
    """Join the values of all replicas along an axis. See ``ReplicaContext.all_gather``."""
    if any(isinstance(each, IndexedSlices) for each in nest.flatten(value)):
        raise NotImplementedError("all_gather does not support IndexedSlices")
    return _gathered(caller, value, axis, _form(value))


def _gathered(caller: Caller, value: Any, axis: int, form: str) -> Any:
    extended = caller.extended

    def combine(values: list[tuple[EagerTensor, ...]]) -> Sequence[Sequence[EagerTensor]]:
        return [extended._gather(each, axis, extended._devices) for each in values]

    def gathered(*flat: EagerTensor) -> tuple[list[EagerTensor], Callable[..., Any]]:
        lengths = [each._array.shape[axis] for each in flat if each._array.ndim]
        made = _call_together(caller, f"all_gather(axis={axis})", axis, combine, flat, form)
        return made, lambda *back: _own_rows(caller, _all_reduced(caller, ReduceOp.SUM, back), lengths, axis)

    return _for_each(value, gathered)


def _for_each(value: Any, function: Callable[..., Any]) -> Any:
    """Call a function with the tensors of a structure; it returns their results and their gradient function."""
    flat = [to_tensor(each) for each in nest.flatten(value)]
    if thread.state.recorder is None:
        made, _ = function(*flat)
    else:
        made = custom_gradient(function)(*flat)
    return nest.pack_sequence_as(value, made) if nest.is_nested(value) else made[0]


def _all_reduced(
    caller: Caller, reduce_op: ReduceOp, flat: Sequence[EagerTensor], form: str = ""
) -> list[EagerTensor]:
    extended = caller.extended

    def combine(values: list[tuple[EagerTensor, ...]]) -> Sequence[Sequence[EagerTensor]]:
        return extended._all_reduce(reduce_op, values)

    return _call_together(caller, f"all_reduce({reduce_op.name})", (), combine, flat, form)


def _own_rows(
    caller: Caller, whole: Sequence[EagerTensor], lengths: Sequence[int], axis: int
) -> list[EagerTensor]:
    """Return this replica's part of gathered values, given the length of its part of each."""

    def perform(given: list[Sequence[int]]) -> list[list[int]]:
        columns = list(zip(*given, strict=True))
        before = caller.extended._before([sum(column) for column in columns])
        return [
            [first + sum(column[:index]) for first, column in zip(before, columns, strict=True)]
            for index in range(len(given))
        ]

    starts = caller.channel.call_together("the gradient of all_gather", "starts", perform, lengths)
    behind = (slice(None),) * (-axis - 1)
    before = (slice(None),) * axis if axis >= 0 else (...,)
    return [
        each[(*before, slice(start, start + length), *behind)]
        for each, start, length in zip(whole, starts, lengths, strict=True)
    ]


def _call_together(
    caller: Caller,
    name: str,
    detail: Hashable,
    combine: _Combine,
    flat: Sequence[EagerTensor],
    form: str,
) -> list[EagerTensor]:
    def perform(given: list[Sequence[EagerTensor]]) -> list[list[EagerTensor]]:
        made = combine(list(zip(*given, strict=True)))
        return [[of_value[index] for of_value in made] for index in range(len(given))]

    what = f"{name} of {len(flat)} tensor{'s' * (len(flat) != 1)}"
    # For a plain list the number of tensors is enough.
    description = what if form in ("", f"[{', '.join('·' * len(flat))}]") else f"{what} in {_shortened(form)}"
    made: list[EagerTensor] = caller.channel.call_together(description, (what, detail, form), perform, flat)
    return made


def _form(value: Any) -> str:
    """Describe the structure of values, which must be equal on all replicas: ``{'a': ·, 'b': [·, ·]}``."""
    return _nesting(value) if nest.is_nested(value) or isinstance(value, IndexedSlices) else ""


def _shortened(form: str) -> str:
    return form if len(form) <= _LONGEST_FORM else form[:_LONGEST_FORM] + "…"


def _nesting(value: Any) -> str:
    if not nest.is_nested(value):
        return "slices" if isinstance(value, IndexedSlices) else "·"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key!r}: {_nesting(value[key])}" for key in sorted(value)) + "}"
    inner = ", ".join(map(_nesting, value))
    return (
        f"[{inner}]"
        if type(value) is list
        else f"{'' if type(value) is tuple else type(value).__name__}({inner})"
    )


__all__ = ["Caller", "all_gather", "all_reduce"]

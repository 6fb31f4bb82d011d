"""What replicas do together: each gives values, waits for the others, and gets results."""

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from allotment import nest
from allotment.distribute.reduce_op import ReduceOp
from allotment.distribute.replica_context import ReplicaContext
from allotment.ops.convert import to_tensor
from allotment.tensor import EagerTensor

#: From the tensors of each replica, value by value, to the results for each replica.
_Combine = Callable[[list[tuple[EagerTensor, ...]]], Sequence[Sequence[EagerTensor]]]


def all_reduce(context: ReplicaContext, reduce_op: ReduceOp, value: Any) -> Any:
    """See ``ReplicaContext.all_reduce``."""
    extended = context.strategy.extended

    def combine(values: list[tuple[EagerTensor, ...]]) -> Sequence[Sequence[EagerTensor]]:
        return extended._all_reduce(reduce_op, values)

    return _together(context, f"all_reduce({reduce_op.name})", (), combine, value)


def all_gather(context: ReplicaContext, value: Any, axis: int) -> Any:
    """See ``ReplicaContext.all_gather``."""
    extended = context.strategy.extended

    def combine(values: list[tuple[EagerTensor, ...]]) -> Sequence[Sequence[EagerTensor]]:
        return [extended._gather(each, axis, extended._devices) for each in values]

    return _together(context, f"all_gather(axis={axis})", axis, combine, value)


def _together(context: ReplicaContext, name: str, detail: Hashable, combine: _Combine, value: Any) -> Any:
    flat = [to_tensor(each) for each in nest.flatten(value)]

    def perform(given: list[list[EagerTensor]]) -> list[list[EagerTensor]]:
        made = combine(list(zip(*given, strict=True)))
        return [[of_value[index] for of_value in made] for index in range(len(given))]

    what = f"{name} of {len(flat)} tensors"
    made = context._line.meet(what, (what, detail), perform, flat)
    return nest.pack_sequence_as(value, made) if nest.is_nested(value) else made[0]


__all__ = ["all_gather", "all_reduce"]

"""Reductions of tensors on several devices into one, on one device or on all.

A reduction has two phases. The first, reduce-scatter, makes *parts*: pieces of the total, each in the memory of one
device. The second, all-gather, copies all parts to every destination, so that results are equal bit by bit. Between
the two, the parts may be added up with those of other processes. Algorithms differ in the first phase:

    one device   ``to_one_device``   all copies go to one device, one after the other; one part
    tree         ``tree``                      pairs of devices, pairs of pairs, ...; one part
    ring         ``ring``                      each device adds its share and passes it on; a part for each device
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from allotment import errors
from allotment.devices.device_tuples import LogicalDevice
from allotment.tf.distribute.device_names import full_name
from allotment.tf.distribute.reductions.members import Array, Member, members
from allotment.tf.distribute.reductions.parallel import run_parallel
from allotment.tf.distribute.reductions.reduce_op import ReduceOp, reduce_op_argument
from allotment.tf.distribute.values import DistributedValues, Mirrored, regroup
from allotment.tf.ops.convert import to_tensor
from allotment.tf.ops.types.element_types import NUMBERS
from allotment.tf.tensors.dtype import DType
from allotment.tf.tensors.tensor import EagerTensor

#: Adds arrays up with those of other processes, in place; each process gets the same.
Exchange = Callable[[list[Array]], None]


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of the total, as an array with one axis."""

    #: The range of elements of the total that it holds.
    start: int
    stop: int
    array: Array
    #: The member whose memory holds it.
    member: Member


class CrossDeviceOps(ABC):
    """An algorithm for reductions and broadcasts between devices. As ``tf.distribute.CrossDeviceOps``.

    A subclass implements ``_sum``.
    """

    @abstractmethod
    def _sum(self, rows: Sequence[Array], sources: Sequence[Member], first: Member) -> list[Part]:
        """Add up arrays of one axis, at least two, each in its member's memory, into parts.

        ``first`` is the first destination. The array of a part is new, and no other object holds it.
        """

    def reduce(
        self, reduce_op: Any, per_replica_value: Any, destinations: Any, options: Any = None
    ) -> EagerTensor | Mirrored:
        """Reduce the values of all replicas to one, and copy it to devices.

        Args:
            reduce_op: ``"SUM"``, ``"MEAN"`` or a ``ReduceOp``.
            per_replica_value: A tensor of each replica.
            destinations: A device's name, several, or a value that is on the requested devices.
            options: Has no effect.

        Raises:
            InvalidArgumentError: Shapes or types differ between replicas.
        """
        made: EagerTensor | Mirrored = self.batch_reduce(
            reduce_op, [(per_replica_value, destinations)], options
        )[0]
        return made

    def batch_reduce(
        self,
        reduce_op: Any,
        value_destination_pairs: Sequence[tuple[Any, Any]],
        options: Any = None,
    ) -> list[Any]:
        """``reduce`` for several values."""
        op = reduce_op_argument(reduce_op)
        made = []
        for value, destinations in value_destination_pairs:
            tensors = [to_tensor(each) for each in _values(value)]
            made.append(regroup(self.combine(op, [tensors], devices_of(destinations))[0], Mirrored))
        return made

    def broadcast(self, tensor: Any, destinations: Any) -> EagerTensor | Mirrored:
        """Copy a tensor to devices."""
        given = to_tensor(tensor)
        made = [
            each.tensor(each.copy_in(given._array, given._home))
            for each in members(devices_of(destinations), given._dtype)
        ]
        return regroup(made, Mirrored)  # type: ignore[no-any-return]

    def combine(
        self,
        reduce_op: ReduceOp,
        values: Sequence[Sequence[EagerTensor]],
        destinations: Sequence[str],
        count: int | None = None,
        exchange: Exchange | None = None,
    ) -> list[list[EagerTensor]]:
        """Reduce several values, and copy each to all destinations.

        Args:
            reduce_op: Sum or mean.
            values: For each value its tensors, one of each replica of this process.
            destinations: Names of devices.
            count: The number of replicas in all processes, those of this one unless given.
            exchange: Adds up with other processes. It is called once, with the parts of all values.

        Returns:
            For each value its tensors, one for each destination.

        Raises:
            InvalidArgumentError: Shapes or types differ between replicas, or numbers are needed.
        """
        if exchange is None:
            # One after the other: the parts of a value are freed before those of the next are made.
            return [
                self._distribute(
                    reduce_op, each, self._parts(each, destinations, False), destinations, count or len(each)
                )
                for each in values
            ]
        parts = _exchange_on_host(exchange, [self._parts(each, destinations, True) for each in values])
        return [
            self._distribute(reduce_op, each, of_value, destinations, count or len(each))
            for each, of_value in zip(values, parts, strict=True)
        ]

    def _parts(self, tensors: Sequence[EagerTensor], destinations: Sequence[str], copy: bool) -> list[Part]:
        """Return the total in parts. That of one tensor is its array; with ``copy``, a copy if it is NumPy's."""
        _check_alike(tensors)
        sources = [Member(each._device, each._home) for each in tensors]
        rows = [
            source.compute(np.ravel, tensor._array) for source, tensor in zip(sources, tensors, strict=True)
        ]
        if len(rows) > 1:
            return self._sum(rows, sources, members(destinations[:1], tensors[0]._dtype)[0])
        # What is on a device is copied to the host anyway.
        copy = copy and sources[0].home.library is None
        row = sources[0].copied(rows[0], sources[0].home) if copy else rows[0]
        return [Part(0, row.size, row, sources[0])]

    def _distribute(
        self,
        reduce_op: ReduceOp,
        tensors: Sequence[EagerTensor],
        parts: list[Part],
        destinations: Sequence[str],
        count: int,
    ) -> list[EagerTensor]:
        if reduce_op is ReduceOp.MEAN and count > 1:
            parts = [
                Part(each.start, each.stop, each.member.compute(_divide, each.array, count), each.member)
                for each in parts
            ]
        shape = tensors[0]._array.shape
        goals = members(destinations, tensors[0]._dtype)
        made = run_parallel(
            [partial(_assemble, parts, goal) for goal in goals],
            tensors[0]._array.nbytes,
        )
        return [goal.tensor(array.reshape(shape)) for goal, array in zip(goals, made, strict=True)]


def _exchange_on_host(exchange: Exchange, parts: list[list[Part]]) -> list[list[Part]]:
    """Return the sums of parts with those of other processes, which exchange arrays in host memory, in place."""
    arrays = [[each.member.to_host(each.array) for each in of_value] for of_value in parts]
    exchange([array for of_value in arrays for array in of_value])
    places = [[(each.start, each.stop, each.member) for each in of_value] for of_value in parts]
    # The memory of a device need not hold the parts of this process beside the sums.
    parts.clear()
    return [
        [
            Part(start, stop, member.from_host(array), member)
            for (start, stop, member), array in zip(places_of_value, of_value, strict=True)
        ]
        for places_of_value, of_value in zip(places, arrays, strict=True)
    ]


def _divide(array: Array, count: int) -> Any:
    """Divide a sum by the number of replicas; the quotient of integers is a float64, as with TensorFlow."""
    if array.dtype.kind in "fc":
        return np.divide(array, count, out=array)
    return np.true_divide(array, count)


def _assemble(parts: Sequence[Part], member: Member) -> Array:
    """Join all parts to one array in a member's memory."""
    if len(parts) == 1:
        return member.copy_in(parts[0].array, parts[0].member.home)
    size = sum(part.stop - part.start for part in parts)
    made = member.empty(size, parts[0].array.dtype)
    for part in parts:
        # Without a copy between them, unless one is NumPy's array and the other is none.
        alike = (part.member.home.library is None) == (member.home.library is None)
        row = part.array if alike else member.copy_in(part.array, part.member.home)
        member.compute(np.copyto, made[part.start : part.stop], row)
    return made


def _check_alike(tensors: Sequence[EagerTensor]) -> None:
    first = tensors[0]
    if first._dtype not in NUMBERS and len(tensors) > 1:
        raise errors.InvalidArgumentError(
            None, None, f"Values of type {first._dtype.name} cannot be reduced: they are no numbers."
        )
    for index, each in enumerate(tensors):
        if each._dtype is not first._dtype or each._array.shape != first._array.shape:
            raise errors.InvalidArgumentError(
                None,
                None,
                f"Replicas gave values that do not go together: {_describe(first)} on replica 0 and "
                f"{_describe(each)} on replica {index}. A reduction takes the same shape and type of each.",
            )


def _describe(tensor: EagerTensor) -> str:
    """Return the type and shape of a tensor for a message: ``float32[2, 3]``."""
    dtype: DType = tensor._dtype
    return f"{dtype.name}{list(tensor._array.shape)}"


def check_packs(title: str, num_packs: Any) -> None:
    """Check a ``num_packs=`` argument, which has no effect: values are not packed.

    Raises:
        ValueError: Negative, or no integer.
    """
    if not isinstance(num_packs, int) or num_packs < 0:
        raise ValueError(f"{title} requires num_packs >= 0, but {num_packs} is specified")


def _values(value: Any) -> Sequence[Any]:
    return value.values if isinstance(value, DistributedValues) else [value]


def devices_of(destinations: Any) -> list[str]:
    """Return the full names of the devices of ``destinations``.

    Raises:
        TypeError: Neither a name, nor names, nor a value that is on devices.
    """
    if isinstance(destinations, DistributedValues):
        return [each.device for each in destinations.values]
    if isinstance(destinations, str | LogicalDevice):
        return [full_name(destinations)]
    if isinstance(destinations, list | tuple):
        return [full_name(each) for each in destinations]
    device = getattr(destinations, "device", None)
    if isinstance(device, str):
        return [device]
    raise TypeError(
        f"destinations must be a device's name, a list of names, or a value that lives on devices, not {destinations!r}"
    )


__all__ = ["CrossDeviceOps", "Exchange", "Part", "check_packs", "devices_of"]

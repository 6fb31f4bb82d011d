"""Data sets whose batches are divided among replicas."""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

from allotment.tf.data.cardinality import UNKNOWN, of_batches
from allotment.tf.data.dataset import Dataset
from allotment.tf.data.iterators import ElementIterator
from allotment.tf.data.options import AutoShardPolicy, Options
from allotment.tf.data.resumable import Resumable
from allotment.tf.data.structure import flatten, map_values, on_host, pack, same_structure
from allotment.tf.distribute.input.context import InputContext
from allotment.tf.distribute.reductions.members import member
from allotment.tf.distribute.values import PerReplica, PerReplicaSpec, regroup
from allotment.tf.ops.convert import to_tensor
from allotment.tf.ops.random.draws import Source
from allotment.tf.ops.random.seeds import InCommon
from allotment.tf.tensors.dtype import int64
from allotment.tf.tensors.tensor import EagerTensor
from allotment.tf.tensors.tensor_spec import TensorSpec

_logger: Final = logging.getLogger("tensorflow")


class DistributedIterator(ElementIterator):
    """An iterator over a distributed data set. As ``tf.distribute.DistributedIterator``."""

    @staticmethod
    def _spec_of(element: Any) -> Any:
        return map_values(_spec_of_value, element)


def _spec_of_value(value: Any) -> Any:
    values = value.values if isinstance(value, PerReplica) else (value,)
    return _replica_spec([TensorSpec(each.shape, each.dtype) for each in values])


def _replica_spec(specs: Sequence[TensorSpec]) -> Any:
    """Return the spec of a distributed value, which of one replica is that of the value itself."""
    return specs[0] if len(specs) == 1 else PerReplicaSpec(*specs)


class DistributedDataset:
    """A data set whose elements are distributed values. As ``tf.distribute.DistributedDataset``.

    It can be iterated over as often as the data set that it is made of.

    Args:
        dataset: The batches.
        distribute: Makes the elements of an iterator over the batches.
        part_spec: Makes the spec of a distributed value of the spec of a batch.
        batches: The number of batches in one element.
        common: The random numbers that all processes share that read the same batches, if there are several.
    """

    def __init__(
        self,
        dataset: Iterable[Any],
        distribute: Callable[[Iterator[Any]], Iterator[Any]],
        part_spec: Callable[[TensorSpec], Any],
        batches: int = 1,
        common: Source | None = None,
    ) -> None:
        self._dataset = dataset
        self._distribute = distribute
        self._part_spec = part_spec
        self._batches = batches
        self._common = common

    def __iter__(self) -> DistributedIterator:
        def spec() -> Any:
            return self.element_spec

        if self._common is None:
            return DistributedIterator(self._distribute(iter(self._dataset)), spec)
        elements = InCommon(self._common, lambda: iter(self._dataset))
        return DistributedIterator(self._distribute(elements), spec)

    @property
    def element_spec(self) -> Any:
        """Types and shapes of the elements: with several replicas a ``PerReplicaSpec`` of each value.

        Raises:
            AttributeError: The data set is none of ``tf.data``, and has no ``element_spec``.
        """
        return map_values(self._part_spec, self._dataset.element_spec)  # type: ignore[attr-defined]

    @property
    def cardinality(self) -> Any:
        """The number of elements, ``UNKNOWN_CARDINALITY`` for a data set that is none of ``tf.data``."""
        count = getattr(self._dataset, "_count", UNKNOWN)
        with on_host():
            return to_tensor(of_batches(count, self._batches, drop_remainder=False), like=int64)


def divide_batches(
    dataset: Any, names: tuple[str, ...], first: int, count: int, common: Callable[[], Source | None]
) -> DistributedDataset:
    """Divide each batch of a data set among the replicas. See ``Strategy.experimental_distribute_dataset``.

    Args:
        dataset: The batches.
        names: Full names of the devices of this process's replicas.
        first: The number of the first of them among all replicas.
        count: The number of all replicas.
        common: Makes the random numbers that all processes share.

    Raises:
        TypeError: The data set cannot be iterated over.
    """
    _check_iterable(dataset, "dataset")

    def divide(elements: Iterator[Any]) -> Iterator[Any]:
        return Resumable(lambda: _divide(next(elements), names, first, count))

    _check_shard_policy(dataset, count // len(names))
    return DistributedDataset(
        dataset,
        divide,
        lambda spec: _replica_spec([_part_of(spec, count)] * len(names)),
        common=common(),
    )


def distribute_batches(
    dataset_fn: Callable[[Any], Any], context: InputContext, names: tuple[str, ...]
) -> DistributedDataset:
    """Give each replica every n-th batch of a data set. See ``Strategy.distribute_datasets_from_function``.

    Raises:
        TypeError: The function returns an object that cannot be iterated over.
    """
    dataset = dataset_fn(context)
    _check_iterable(dataset, "the result of dataset_fn")

    def deal(elements: Iterator[Any]) -> Iterator[Any]:
        def following() -> Any:
            # A replica for which no batch is left gets one without rows.
            return _one_per_replica([next(elements), *(next(elements, None) for _ in names[1:])], names)

        return Resumable(following)

    def part_spec(spec: TensorSpec) -> Any:
        # With several replicas some may get a batch without rows in the end.
        return _replica_spec([spec if len(names) == 1 else _part_of(spec, None)] * len(names))

    return DistributedDataset(dataset, deal, part_spec, len(names))


def _part_of(spec: TensorSpec, count: int | None) -> TensorSpec:
    """Return the spec of one of ``count`` parts of a batch; with ``None`` the length of the part is unknown."""
    dims = spec.shape.dims
    if count == 1 or not dims:
        return spec
    rows = dims[0]
    known = rows is not None and count is not None and rows % count == 0
    return TensorSpec([rows // count if known else None, *dims[1:]], spec.dtype)  # type: ignore[operator]


def _check_shard_policy(dataset: Any, processes: int) -> None:
    """Warn of an auto-shard policy that several processes do not follow."""
    options = dataset.options() if isinstance(dataset, Dataset) else Options()
    policy = options.experimental_distribute.auto_shard_policy
    if processes > 1 and policy not in (AutoShardPolicy.AUTO, AutoShardPolicy.DATA):
        _logger.warning(
            "auto_shard_policy=%s has no effect: each process goes through all elements and takes its part of each "
            "batch, as with AutoShardPolicy.DATA.",
            policy.name,
        )


def _check_iterable(dataset: Any, what: str) -> None:
    if not hasattr(dataset, "__iter__"):
        raise TypeError(f"{what} must be a tf.data.Dataset, or another iterable of batches, not {dataset!r}")


def _divide(element: Any, names: tuple[str, ...], first: int, count: int) -> Any:
    """Divide a batch among the replicas of this process, of which the first is number ``first`` of ``count``."""
    leaves = _on_host(flatten(element))
    if count == 1:
        return pack(element, [_copy_to(leaf, names[0]) for leaf in leaves])
    rows = {leaf._array.shape[:1] for leaf in leaves}
    if len(rows) > 1 or () in rows:
        shapes = ", ".join(str(leaf.shape) for leaf in leaves)
        raise ValueError(
            "an element of a data set is divided among the replicas along its first axis, which must be the same for "
            f"all of it: a batch. There are shapes {shapes}; Dataset.batch makes batches."
        )
    total = next(iter(rows), (0,))[0]
    parts = [
        regroup(
            [
                _copy_to(leaf, name, rows_of_part(total, index, count))
                for index, name in enumerate(names, first)
            ]
        )
        for leaf in leaves
    ]
    return pack(element, parts)


def rows_of_part(rows: int, index: int, count: int) -> slice:
    """Return the rows of a batch for replica ``index`` of ``count``: equally many, and the last ones may have fewer."""
    size = -(-rows // count)
    return slice(index * size, (index + 1) * size)


def _one_per_replica(batches: list[Any], names: tuple[str, ...]) -> Any:
    """Make one element of a batch for each replica."""
    first = batches[0]
    whole = _on_host(flatten(first))
    if len(names) == 1:
        return pack(first, [_copy_to(leaf, names[0]) for leaf in whole])
    by_replica = []
    for batch, name in zip(batches, names, strict=True):
        if batch is None:
            by_replica.append([_copy_to(leaf, name, slice(0, 0)) for leaf in whole])
        else:
            if not same_structure(first, batch):
                raise ValueError(f"batches of a data set are nested differently: {first!r} and {batch!r}")
            by_replica.append([_copy_to(leaf, name) for leaf in _on_host(flatten(batch))])
    return pack(first, [PerReplica(values) for values in zip(*by_replica, strict=True)])


def _on_host(leaves: list[Any]) -> list[EagerTensor]:
    with on_host():
        return [to_tensor(leaf) for leaf in leaves]


def _copy_to(tensor: EagerTensor, name: str, rows: slice | None = None) -> EagerTensor:
    """Copy a tensor, or rows of it, to the memory of a device."""
    goal = member(name, tensor._dtype)
    array = tensor._array if rows is None else tensor._array[rows]
    return goal.tensor(goal.copy_in(array, tensor._home))


__all__ = [
    "DistributedDataset",
    "DistributedIterator",
    "distribute_batches",
    "divide_batches",
    "rows_of_part",
]

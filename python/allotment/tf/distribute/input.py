"""Data sets whose batches are divided among replicas."""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from allotment.tf.data.cardinality import UNKNOWN, of_batches
from allotment.tf.data.dataset import Dataset
from allotment.tf.data.iterators import ElementIterator
from allotment.tf.data.options import AutoShardPolicy, Options
from allotment.tf.data.structure import flatten, map_values, on_host, pack, same_structure
from allotment.tf.distribute.members import member
from allotment.tf.distribute.values import PerReplica, PerReplicaSpec, regroup
from allotment.tf.ops.convert import to_tensor
from allotment.tf.ops.random.draws import Source
from allotment.tf.ops.random.seeds import in_common
from allotment.tf.tensors.dtype import int64
from allotment.tf.tensors.tensor import EagerTensor
from allotment.tf.tensors.tensor_spec import TensorSpec

if TYPE_CHECKING:
    from allotment.tf.distribute.strategy import Strategy

_logger: Final = logging.getLogger("tensorflow")


class DistributedIterator(ElementIterator):
    """Goes through a distributed data set. As ``tf.distribute.DistributedIterator``."""

    @staticmethod
    def _spec_of(element: Any) -> Any:
        return map_values(_spec_of_value, element)


def _spec_of_value(value: Any) -> Any:
    values = value.values if isinstance(value, PerReplica) else (value,)
    return _for_replicas([TensorSpec(each.shape, each.dtype) for each in values])


def _for_replicas(specs: Sequence[TensorSpec]) -> Any:
    """What is known of the values of all replicas, of the value itself if there is one replica."""
    return specs[0] if len(specs) == 1 else PerReplicaSpec(*specs)


class DistributedDataset:
    """A data set whose elements are distributed values. As ``tf.distribute.DistributedDataset``.

    It can be gone through as often as the data set that it is made of.

    Args:
        dataset: What gives the batches.
        distribute: Makes the elements of it.
        part_spec: Makes of what is known of a batch what is known of the values of all replicas.
        batches: How many batches make one element.
        common: Where all processes draw numbers from that go through the same batches, if there are several.
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
        elements = in_common(self._common, lambda: iter(self._dataset))
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


def distribute_dataset(strategy: "Strategy", dataset: Any) -> DistributedDataset:
    """See ``Strategy.experimental_distribute_dataset``.

    Raises:
        TypeError: It cannot be iterated over.
    """
    _check_iterable(dataset, "dataset")
    names = strategy.extended._devices
    first, count = strategy.extended._first_replica, strategy.num_replicas_in_sync

    def divided(elements: Iterator[Any]) -> Iterator[Any]:
        return (_divided(element, names, first, count) for element in elements)

    _check_shard_policy(dataset, count // len(names))
    return DistributedDataset(
        dataset,
        divided,
        lambda spec: _for_replicas([_part_of(spec, count)] * len(names)),
        common=strategy.extended._common_source(),
    )


def from_function(strategy: "Strategy", dataset_fn: Callable[[Any], Any]) -> DistributedDataset:
    """See ``Strategy.distribute_datasets_from_function``.

    Raises:
        TypeError: What the function returns cannot be iterated over.
    """
    dataset = dataset_fn(strategy.extended._input_context())
    _check_iterable(dataset, "what dataset_fn returns")
    names = strategy.extended._devices

    def dealt(elements: Iterator[Any]) -> Iterator[Any]:
        for element in elements:
            # A replica for which nothing is left gets a batch without rows.
            yield _dealt([element, *(next(elements, None) for _ in names[1:])], names)

    def part_spec(spec: TensorSpec) -> Any:
        # With several replicas some may get a batch without rows in the end.
        return _for_replicas([spec if len(names) == 1 else _part_of(spec, None)] * len(names))

    return DistributedDataset(dataset, dealt, part_spec, len(names))


def _part_of(spec: TensorSpec, count: int | None) -> TensorSpec:
    """What is known of one of ``count`` parts of a batch, or of a part of any length."""
    dims = spec.shape.dims
    if count == 1 or not dims:
        return spec
    rows = dims[0]
    known = rows is not None and count is not None and rows % count == 0
    return TensorSpec([rows // count if known else None, *dims[1:]], spec.dtype)  # type: ignore[operator]


def _check_shard_policy(dataset: Any, processes: int) -> None:
    """Warn of a policy by which several processes would divide a data set otherwise than they do."""
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
        raise TypeError(
            f"{what} must be a tf.data.Dataset, or something else that can be iterated over and gives batches, not "
            f"{dataset!r}"
        )


def _divided(element: Any, names: tuple[str, ...], first: int, count: int) -> Any:
    """A batch in the parts of this process's replicas, of which the first one is number ``first`` of ``count``."""
    leaves = _on_host(flatten(element))
    if count == 1:
        return pack(element, [_brought(leaf, names[0]) for leaf in leaves])
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
                _brought(leaf, name, rows_of_part(total, index, count))
                for index, name in enumerate(names, first)
            ]
        )
        for leaf in leaves
    ]
    return pack(element, parts)


def rows_of_part(rows: int, index: int, count: int) -> slice:
    """The rows of a batch for replica number ``index`` of ``count``: as many for each, what is left for the last."""
    size = -(-rows // count)
    return slice(index * size, (index + 1) * size)


def _dealt(batches: list[Any], names: tuple[str, ...]) -> Any:
    """The batches of all replicas in one element."""
    first = batches[0]
    whole = _on_host(flatten(first))
    if len(names) == 1:
        return pack(first, [_brought(leaf, names[0]) for leaf in whole])
    by_replica = []
    for batch, name in zip(batches, names, strict=True):
        if batch is None:
            by_replica.append([_brought(leaf, name, slice(0, 0)) for leaf in whole])
        else:
            if not same_structure(first, batch):
                raise ValueError(f"batches of a data set are nested differently: {first!r} and {batch!r}")
            by_replica.append([_brought(leaf, name) for leaf in _on_host(flatten(batch))])
    return pack(first, [PerReplica(values) for values in zip(*by_replica, strict=True)])


def _on_host(leaves: list[Any]) -> list[EagerTensor]:
    with on_host():
        return [to_tensor(leaf) for leaf in leaves]


def _brought(tensor: EagerTensor, name: str, rows: slice | None = None) -> EagerTensor:
    """A tensor, or rows of it, in the memory of a device."""
    goal = member(name, tensor._dtype)
    array = tensor._array if rows is None else tensor._array[rows]
    return goal.tensor(goal.bring(array, tensor._home))


__all__ = ["DistributedDataset", "DistributedIterator", "distribute_dataset", "from_function", "rows_of_part"]

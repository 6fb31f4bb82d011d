"""The seeds of the orders of a shuffled data set."""

from typing import Any

from allotment.tf.ops.random.seeds import common_source, dataset_generator


class Orders:
    """The seeds of the orders, one for each iteration over a data set.

    Without a seed of their own, processes that divide batches among them use the same order: otherwise some elements
    would go to several replicas, and others to none.

    Args:
        seed: The seed of the data set.
        change: Whether each iteration has a new order.
    """

    def __init__(self, seed: Any, change: bool) -> None:
        self._has_seed = seed is not None
        self._numbers = dataset_generator("ShuffleDatasetV3", seed)
        self._change = change
        self._only = None if change else int(self._numbers.integers(2**63))
        #: The constant seed that all processes share, once it is drawn.
        self._only_in_common: int | None = None

    def next(self) -> int:
        """Return the seed of the next order."""
        common = None if self._has_seed else common_source()
        if common is not None and not self._change:
            if self._only_in_common is None:
                self._only_in_common = int(common.integers(2**63))
            return self._only_in_common
        if self._only is not None:
            return self._only
        return int((common or self._numbers).integers(2**63))


__all__ = ["Orders"]

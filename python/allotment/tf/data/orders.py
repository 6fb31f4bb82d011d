"""In which orders a shuffled data set gives its elements."""

from typing import Any

from allotment.tf.ops.random.seeds import common_source, dataset_generator


class Orders:
    """The seeds of the orders, one for each time that somebody goes through a data set.

    Processes that divide the batches of a data set among them go through it in one order, if no seed was given:
    otherwise they would give some elements to several replicas, and others to none.

    Args:
        seed: That of the data set.
        change: Whether each order is another one.
    """

    def __init__(self, seed: Any, change: bool) -> None:
        self._has_seed = seed is not None
        self._numbers = dataset_generator("ShuffleDatasetV3", seed)
        self._change = change
        self._only = None if change else int(self._numbers.integers(2**63))
        #: The only one that processes have in common, once they do.
        self._only_in_common: int | None = None

    def next(self) -> int:
        """The seed of the next order."""
        common = None if self._has_seed else common_source()
        if common is not None and not self._change:
            if self._only_in_common is None:
                self._only_in_common = int(common.integers(2**63))
            return self._only_in_common
        if self._only is not None:
            return self._only
        return int((common or self._numbers).integers(2**63))


__all__ = ["Orders"]

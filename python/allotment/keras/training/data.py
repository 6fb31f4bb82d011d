"""Batches: of arrays, or of something that gives them."""

import math
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

import numpy as np

from allotment import nest
from allotment.distribute.input import DistributedDataset, DistributedIterator, rows_of_part
from allotment.distribute.values import DistributedValues
from allotment.keras.engine.arguments import positive
from allotment.keras.engine.warnings import warn
from allotment.ops.random import shuffle as shuffled
from allotment.tensor import Tensor

#: Rows in a batch of arrays, unless it is said.
BATCH_SIZE = 32

#: What comes after the last batch. Not ``None``: that may come by mistake.
_END: Final = object()

#: The cardinality of a ``Dataset`` that never ends.
_ENDLESS = -1


class Batch(NamedTuple):
    """Some samples: arrays, or structures of them."""

    x: Any
    y: Any = None
    sample_weight: Any = None

    @property
    def rows(self) -> int:
        """Number of samples."""
        return len(nest.flatten(self.x)[0])

    def part(self, index: int, count: int) -> "Batch":
        """One of ``count`` parts of consecutive rows, as strategies divide data sets."""
        rows = rows_of_part(self.rows, index, count)
        return self.map(lambda array: array[rows])

    def map(self, function: Any) -> "Batch":
        """The batch with something else in the place of each array."""
        return Batch(*(None if each is None else nest.map_structure(function, each) for each in self))

    def as_data(self) -> tuple[Any, ...]:
        """What a model's own steps are given: ``x``, then ``y`` and weights if there are any."""
        if self.sample_weight is not None:
            return (self.x, self.y, self.sample_weight)
        return (self.x,) if self.y is None else (self.x, self.y)


class Arrays:
    """Arrays whose rows are samples, in batches.

    Args:
        x: An array, or a structure of them.
        y: What should come out, as ``x``.
        sample_weight: A weight for each sample.
        batch_size: Rows in a batch; the last one has what is left.
        shuffle: Whether the rows come in another order each time.

    Raises:
        ValueError: Arrays have no rows, or not as many as each other.
    """

    def __init__(self, x: Any, y: Any, sample_weight: Any, batch_size: int | None, shuffle: Any) -> None:
        self._all = Batch(x, y, sample_weight).map(host_array)
        self._rows = _common_rows(self._all)
        self._size = BATCH_SIZE if batch_size is None else batch_size
        if not hasattr(self._size, "__index__") or self._size < 1:
            raise ValueError(f"`batch_size` must be at least 1. Received: batch_size={batch_size}")
        if not isinstance(shuffle, bool | np.bool_ | int):
            raise ValueError(f"`shuffle` must be True or False. Received: shuffle={shuffle!r}")
        self._shuffle = bool(shuffle)

    @property
    def steps(self) -> int:
        """Number of batches."""
        return math.ceil(self._rows / self._size)

    def batches(self) -> Iterator[Batch]:
        """Give all rows once."""
        order = np.asarray(shuffled(np.arange(self._rows))) if self._shuffle else None
        for start in range(0, self._rows, self._size):
            rows: Any = slice(start, start + self._size)
            if order is not None:
                rows = order[rows]
            yield self._all.map(lambda array, rows=rows: array[rows])

    def limited(self, steps: int | None) -> "Arrays | Stream":
        """The same with so many batches in a pass; the next pass goes on behind them."""
        return self if steps is None or steps == self.steps else Stream(_Again(self), steps)

    def divided(self, share: float) -> tuple["Arrays", "Arrays"]:
        """The first rows, and the share of rows at the end.

        Raises:
            ValueError: One of them is empty.
        """
        first = math.floor(self._rows * (1.0 - share))
        if first in (0, self._rows):
            raise ValueError(
                f"Training data contains {self._rows} samples, which is not sufficient to split it into a validation "
                f"and training set as specified by `validation_split={share}`. Either provide more data, or a "
                "different value for the `validation_split` argument."
            )
        halves = [
            self._all.map(lambda array, rows=rows: array[rows]) for rows in (slice(first), slice(first, None))
        ]
        return (
            Arrays(*halves[0], self._size, self._shuffle),
            Arrays(*halves[1], self._size, False),
        )


class Stream:
    """Batches from a ``Dataset``, or from anything that can be iterated over and gives ``x``, ``(x, y)``, ....

    Args:
        source: What gives them.
        steps: How many belong to one pass; all there are if not given.
    """

    def __init__(self, source: Iterable[Any], steps: int | None) -> None:
        self._source = source
        self._wanted = steps
        #: Where the next pass goes on, if a pass is not all there is.
        self._reader: Iterator[Any] | None = None
        self.steps = _count(source) if steps is None else steps

    def batches(self) -> Iterator[Batch]:
        """Give the batches of one pass.

        Raises:
            ValueError: An element is no batch.
        """
        if self._wanted is None:
            yield from map(_batch_of, self._source)
            return
        for _ in range(self._wanted):
            element = self._next()
            if element is _END:
                return
            yield _batch_of(element)

    def _next(self) -> Any:
        if self._reader is None:
            self._reader = iter(self._source)
        try:
            return next(self._reader)
        except StopIteration:
            self._reader = None
            return _END


def data_of(
    x: Any,
    y: Any = None,
    sample_weight: Any = None,
    batch_size: int | None = None,
    steps: int | None = None,
    shuffle: Any = False,
    steps_name: str = "steps",
) -> Arrays | Stream:
    """What gives batches.

    Raises:
        ValueError: No data, or arguments that do not go with them.
    """
    if x is None:
        raise ValueError("there is no data: pass `x`, arrays or a Dataset")
    if steps is not None:
        steps = positive(steps, steps_name)
    if isinstance(x, DistributedDataset | DistributedIterator | DistributedValues):
        raise ValueError(
            f"Received what a strategy has distributed already, a {type(x).__name__}: pass the Dataset itself. A model "
            "that was made in the scope of a strategy divides its batches among the replicas."
        )
    if not isinstance(x, np.ndarray | Tensor | list | tuple | dict) and not hasattr(x, "__array__"):
        if not hasattr(x, "__iter__"):
            raise ValueError(f"Unrecognized data type: x={x} (of type {type(x)})")
        for name, given in (("y", y), ("sample_weight", sample_weight)):
            if given is not None:
                raise ValueError(
                    f"When providing `x` as a Dataset or an iterable, `{name}` should not be passed. It gives both."
                )
        if batch_size is not None:
            raise ValueError(
                "When providing `x` as a Dataset or an iterable, `batch_size` should not be passed."
            )
        return Stream(x, steps)
    return Arrays(x, y, sample_weight, batch_size, shuffle).limited(steps)


def validation_of(validation_data: Any, batch_size: int | None, steps: int | None) -> Arrays | Stream:
    """What gives batches to evaluate a model with after an epoch.

    Raises:
        ValueError: No data, or arguments that do not go with them.
    """
    if isinstance(validation_data, tuple | list):
        if not 1 <= len(validation_data) <= 3:
            raise ValueError(
                "`validation_data` must be `(x, y)`, `(x, y, sample_weight)`, or a Dataset. "
                f"Received {len(validation_data)} values."
            )
        x, y, weight = [*validation_data, None, None][:3]
        return data_of(x, y, weight, batch_size, steps, steps_name="validation_steps")
    return data_of(validation_data, steps=steps, steps_name="validation_steps")


def check_all_came(done: int, wanted: int | None, what: str) -> None:
    """Warn if there were fewer batches than asked for, or none."""
    if done and (wanted is None or done >= wanted):
        return
    told = f"{done} of {wanted} batches" if wanted else "no batch"
    warn(
        f"Your input ran out of data: there was {told} for this {what}, which ends here. Give as many as "
        "`steps_per_epoch * epochs`, `validation_steps` or `steps` ask for, as `Dataset.repeat` does, and data that "
        "can be gone through again, which a generator cannot."
    )


def _count(source: Any) -> int | None:
    """How many batches something gives, ``None`` if it does not say.

    Raises:
        ValueError: It never ends.
    """
    cardinality = getattr(source, "cardinality", None)
    if not callable(cardinality):
        return len(source) if hasattr(source, "__len__") else None
    count = int(cardinality())
    if count == _ENDLESS:
        raise ValueError(
            "When passing an infinitely repeating dataset, please specify a `steps_per_epoch` value so that epoch "
            "level callbacks continue to work."
        )
    return count if count >= 0 else None


class _Again:
    """Batches of arrays that can be gone through in several goes."""

    def __init__(self, arrays: Arrays) -> None:
        self._arrays = arrays

    def __iter__(self) -> Iterator[Batch]:
        return self._arrays.batches()


def host_array(value: Any) -> Any:
    """Values as an array in NumPy's memory; floats in single precision, as Keras computes.

    Raises:
        ValueError: A single number.
    """
    array = value._array if isinstance(value, Tensor) else np.asarray(value)
    if array.ndim == 0:
        raise ValueError(
            f"data are arrays whose rows are samples. Received: {value!r} (of type {type(value)})"
        )
    return array.astype(np.float32) if array.dtype == np.float64 else array


def _batch_of(element: Any) -> Batch:
    if isinstance(element, Batch):
        return element
    if element is None:
        raise ValueError(
            "the data gave None in the place of a batch, which is `x`, `(x, y)`, or `(x, y, sample_weight)`"
        )
    parts = element if isinstance(element, tuple) else (element,)
    if not 1 <= len(parts) <= 3:
        raise ValueError(
            "Data is expected to be in format `x`, `(x,)`, `(x, y)`, or `(x, y, sample_weight)`, "
            f"found: {len(parts)} elements"
        )
    batch = Batch(*parts).map(host_array)
    _common_rows(batch)
    return batch


def _common_rows(batch: Batch) -> int:
    sizes = {
        name: [len(array) for array in nest.flatten(each)]
        for name, each in zip(("x", "y", "sample_weight"), batch, strict=True)
        if each is not None
    }
    counts = {count for each in sizes.values() for count in each}
    if len(counts) != 1:
        told = "\n".join(f"'{name}' sizes: {', '.join(map(str, each))}" for name, each in sizes.items())
        raise ValueError(
            "Data cardinality is ambiguous. Make sure all arrays contain the same number of samples. " + told
        )
    rows = counts.pop()
    if rows == 0:
        raise ValueError("there is no sample: the arrays have no rows")
    return rows


__all__ = ["Arrays", "Batch", "Stream", "check_all_came", "data_of", "host_array", "validation_of"]

"""Batches of training data, from arrays or from iterables.

Longer than 300 lines: Keras' checks and error messages of arguments.
"""

import math
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

import numpy as np

from allotment.tf import nest
from allotment.tf.distribute.input.dataset import DistributedDataset, DistributedIterator, rows_of_part
from allotment.tf.distribute.values import DistributedValues
from allotment.tf.keras.engine.arguments import positive
from allotment.tf.keras.engine.warnings import warn
from allotment.tf.ops.random.random import shuffle as shuffled
from allotment.tf.tensors.tensor import Tensor

#: The default number of rows in a batch of arrays.
BATCH_SIZE = 32

#: The end of the batches. Not ``None``, which a data set may yield by mistake.
_END: Final = object()

#: The cardinality of a ``Dataset`` that never ends.
_ENDLESS = -1


class Batch(NamedTuple):
    """A batch of samples: arrays, or structures of them."""

    x: Any
    y: Any = None
    sample_weight: Any = None

    @property
    def rows(self) -> int:
        """The number of samples."""
        return len(nest.flatten(self.x)[0])

    def part(self, index: int, count: int) -> "Batch":
        """Return one of ``count`` parts of consecutive rows, as strategies divide data sets."""
        rows = rows_of_part(self.rows, index, count)
        return self.map(lambda array: array[rows])

    def map(self, function: Any) -> "Batch":
        """Apply a function to each array."""
        return Batch(*(None if each is None else nest.map_structure(function, each) for each in self))

    def as_data(self) -> tuple[Any, ...]:
        """Return the argument of ``train_step``: ``x``, then ``y`` and weights if there are any."""
        if self.sample_weight is not None:
            return (self.x, self.y, self.sample_weight)
        return (self.x,) if self.y is None else (self.x, self.y)


class Arrays:
    """Batches of arrays whose rows are samples.

    Args:
        x: An array, or a structure of them.
        y: The targets, like ``x``.
        sample_weight: A weight for each sample.
        batch_size: The number of rows in a batch; the last one may have fewer.
        shuffle: Whether to shuffle the rows in each epoch.

    Raises:
        ValueError: Arrays have no rows, or different numbers of rows.
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
        """The number of batches."""
        return math.ceil(self._rows / self._size)

    def batches(self) -> Iterator[Batch]:
        """Yield the batches of an epoch."""
        order = np.asarray(shuffled(np.arange(self._rows))) if self._shuffle else None
        for start in range(0, self._rows, self._size):
            rows: Any = slice(start, start + self._size)
            if order is not None:
                rows = order[rows]
            yield self._all.map(lambda array, rows=rows: array[rows])

    def restart(self) -> None:
        """Do nothing: each epoch starts with the first row."""

    def limited(self, steps: int | None) -> "Arrays | Stream":
        """Limit the batches of an epoch; the next epoch continues after them."""
        return self if steps is None or steps == self.steps else Stream(_Again(self), steps)


class Stream:
    """Batches from a ``Dataset`` or another iterable of ``x``, ``(x, y)`` or ``(x, y, sample_weight)``.

    Args:
        source: The iterable.
        steps: The number of batches of an epoch, all if not given.
        class_weight: Weights of samples by class.
    """

    def __init__(self, source: Iterable[Any], steps: int | None, class_weight: Any = None) -> None:
        self._source, self._class_weight = source, class_weight
        self._wanted = steps
        #: The iterator that the next epoch continues, if an epoch is not the whole source.
        self._reader: Iterator[Any] | None = None
        #: The number of all batches, if known, and of those read.
        self._count, self._read = _count(source), 0
        if steps is None and self._count == _ENDLESS:
            raise ValueError(
                "When passing an infinitely repeating dataset, please specify a `steps_per_epoch` value so that epoch "
                "level callbacks continue to work."
            )
        self.steps = self._count if steps is None else steps

    def batches(self) -> Iterator[Batch]:
        """Yield the batches of an epoch.

        Raises:
            ValueError: An element is no batch.
        """
        if self._wanted is None:
            yield from map(self._batch, self._source)
            return
        for _ in range(self._wanted):
            element = self._next()
            if element is _END:
                return
            yield self._batch(element)
        if self._read == self._count:
            # A source at its end starts again; a generator, whose length is not known, cannot.
            self.restart()

    def restart(self) -> None:
        """Start the next epoch with the first batch."""
        self._reader = None

    def _batch(self, element: Any) -> Batch:
        batch = _batch_of(element)
        if self._class_weight is None:
            return batch
        return batch._replace(
            sample_weight=weights_of_classes(batch.y, batch.sample_weight, self._class_weight)
        )

    def _next(self) -> Any:
        if self._reader is None:
            self._reader, self._read = iter(self._source), 0
        try:
            element = next(self._reader)
        except StopIteration:
            self._reader = None
            return _END
        self._read += 1
        return element


def data_of(
    x: Any,
    y: Any = None,
    sample_weight: Any = None,
    batch_size: int | None = None,
    steps: int | None = None,
    shuffle: Any = False,
    steps_name: str = "steps",
    class_weight: Any = None,
) -> Arrays | Stream:
    """Make the source of batches for the arguments of ``fit``.

    Raises:
        ValueError: There are no data, or arguments do not match.
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
    if not _is_array(x):
        if not hasattr(x, "__iter__"):
            raise ValueError(f"Unrecognized data type: x={x} (of type {type(x)})")
        for name, given in (("y", y), ("sample_weight", sample_weight)):
            if given is not None:
                raise ValueError(
                    f"When providing `x` as a Dataset or an iterable, `{name}` should not be passed. It gives both."
                )
        # As in Keras, ``batch_size`` has no effect on batches.
        if class_weight is None:
            return Stream(x, steps)
        if not callable(getattr(x, "cardinality", None)):
            raise ValueError(
                "Argument `class_weight` is only supported for arrays and Datasets: let the generator give weights of "
                f"samples. Received: class_weight={class_weight}"
            )
        return Stream(x, steps, class_weight)
    if class_weight is not None:
        sample_weight = weights_of_classes(y, sample_weight, class_weight)
    if batch_size is None and steps is not None:
        batch_size = math.ceil(_common_rows(Batch(x, y, sample_weight).map(host_array)) / steps)
    return Arrays(x, y, sample_weight, batch_size, shuffle).limited(steps)


def weights_of_classes(y: Any, sample_weight: Any, class_weight: Any) -> Any:
    """Return a weight for each sample: that of its class, or 1.

    Raises:
        ValueError: There are sample weights, too, or several outputs.
    """
    if sample_weight is not None:
        raise ValueError("`class_weight` and `sample_weight` cannot be given at the same time.")
    if nest.is_nested(y):
        raise ValueError("`class_weight` is only supported for models with a single output.")
    labels = np.asarray(y)
    if labels.ndim > 1:
        labels = labels[..., 0] if labels.shape[-1] == 1 else labels.argmax(-1)
    classes = np.round(labels).astype(np.int32)
    return np.array([class_weight.get(int(each), 1.0) for each in classes], np.float32)


def split_arrays(x: Any, y: Any, sample_weight: Any, share: float) -> tuple[Batch, Batch]:
    """Split arrays into the first rows and the last ``share`` of the rows.

    Raises:
        ValueError: A part is empty, or they are no arrays.
    """
    if not _is_array(x):
        raise ValueError(
            f"`validation_split` is only supported for arrays. Received: x={x} (of type {type(x)})"
        )
    if not 0 < share < 1:
        raise ValueError(f"`validation_split` must be between 0 and 1. Received: validation_split={share}")
    whole = Batch(x, y, sample_weight).map(host_array)
    rows = _common_rows(whole)
    first = math.floor(rows * (1.0 - share))
    if not 0 < first < rows:
        raise ValueError(
            f"Training data contains {rows} samples, which is not sufficient to split it into a validation and "
            f"training set as specified by `validation_split={share}`. Either provide more data, or a different "
            "value for the `validation_split` argument."
        )
    return (whole.map(lambda array: array[:first]), whole.map(lambda array: array[first:]))


def _is_array(x: Any) -> bool:
    return isinstance(x, np.ndarray | Tensor | list | tuple | dict) or hasattr(x, "__array__")


def validation_of(validation_data: Any, batch_size: int | None, steps: int | None) -> Arrays | Stream:
    """Make the source of batches of ``validation_data``.

    Raises:
        ValueError: There are no data, or arguments do not match.
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


def warn_if_ended_early(done: int, wanted: int | None, what: str) -> None:
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
    """Return the number of batches of an iterable, ``None`` if unknown, ``_ENDLESS`` if infinite."""
    cardinality = getattr(source, "cardinality", None)
    if not callable(cardinality):
        return len(source) if hasattr(source, "__len__") else None
    count = int(cardinality())
    return count if count >= 0 or count == _ENDLESS else None


class _Again:
    """An iterable of the batches of arrays, whose iteration may span several epochs."""

    def __init__(self, arrays: Arrays) -> None:
        self._arrays = arrays

    def __iter__(self) -> Iterator[Batch]:
        return self._arrays.batches()

    def __len__(self) -> int:
        return self._arrays.steps


def host_array(value: Any) -> Any:
    """Convert values to a NumPy array; float64 becomes float32, as in Keras.

    Raises:
        ValueError: A scalar.
    """
    array = value._on_host() if isinstance(value, Tensor) else np.asarray(value)
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


__all__ = [
    "Arrays",
    "Batch",
    "Stream",
    "data_of",
    "host_array",
    "split_arrays",
    "validation_of",
    "warn_if_ended_early",
    "weights_of_classes",
]

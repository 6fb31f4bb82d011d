"""Transformations of data sets: from an iterator over elements to another.

After an error in one element an iterator goes on with the next, as in TensorFlow. A generator ends at an error, and so
does ``islice``: iterators over elements are made of functions, see ``Resumable``.

Longer than 300 lines: one transformation after the other.
"""

from collections.abc import Callable, Iterator
from itertools import count, islice
from typing import Any

from allotment.errors import InvalidArgumentError
from allotment.tf.data.resumable import Resumable
from allotment.tf.data.structure import called, flatten, normalized, on_host, pack
from allotment.tf.ops.array.joining import stack
from allotment.tf.ops.convert import to_tensor
from allotment.tf.ops.indexing.gathering import gather
from allotment.tf.ops.random.draws import Source
from allotment.tf.ops.table import dims
from allotment.tf.tensors.dtype import bool as bool_
from allotment.tf.tensors.dtype import int64
from allotment.tf.tensors.tensor import EagerTensor, tensor_of
from allotment.tf.tensors.tensor_spec import TensorSpec

Elements = Iterator[Any]

#: The number of random numbers to draw at a time.
_DRAWS = 1024


class Rows(Iterator[Any]):
    """An iterator over slices of tensors along the first axis, in the order of their numbers.

    Reordering changes the numbers only, and a batch is gathered from the tensors in one operation.
    """

    def __init__(self, tensors: Any, numbers: Iterator[int]) -> None:
        self.tensors = tensors
        self.numbers = numbers
        self._flat = flatten(tensors)

    def __next__(self) -> Any:
        number = next(self.numbers)
        return pack(self.tensors, [_row(tensor, number) for tensor in self._flat])

    def batches(self, size: int, drop_remainder: bool) -> Elements:
        """Yield batches of ``size`` slices."""
        while taken := list(islice(self.numbers, size)):
            if len(taken) < size and drop_remainder:
                return
            yield pack(self.tensors, [_rows(tensor, taken) for tensor in self._flat])


def reordered(elements: Elements, change: Callable[[Iterator[Any]], Iterator[Any]]) -> Elements:
    """Reorder elements, or their numbers if they are slices of tensors.

    ``change`` makes a generator, which is faster than a function and yields ``Failed`` in place of an error.
    """
    if isinstance(elements, Rows):
        return Rows(elements.tensors, change(elements.numbers))
    changed = change(elements)

    def following() -> Any:
        element = next(changed)
        if type(element) is Failed:
            raise element.error
        return element

    return Resumable(following)


class Failed:
    """Stands for an element that cannot be made: a generator that raised the error would end."""

    def __init__(self, error: Exception) -> None:
        self.error = error


def batched(elements: Elements, size: int, drop_remainder: bool) -> Elements:
    """Stack ``size`` elements to one; the last batch may be smaller."""
    return (
        elements.batches(size, drop_remainder)
        if isinstance(elements, Rows)
        else _batched(elements, size, drop_remainder)
    )


def _batched(elements: Elements, size: int, drop_remainder: bool) -> Elements:
    def following() -> Any:
        # An error in an element drops the elements of its batch before it.
        batch = list(islice(elements, size))
        if not batch or (len(batch) < size and drop_remainder):
            raise StopIteration
        columns = zip(*map(flatten, batch), strict=True)
        return pack(batch[0], [_stacked(number, column) for number, column in enumerate(columns)])

    return Resumable(following)


def _stacked(number: int, tensors: tuple[EagerTensor, ...]) -> EagerTensor:
    first = tensors[0]._array
    for index, tensor in enumerate(tensors):
        if tensor._array.shape != first.shape:
            raise InvalidArgumentError(
                None,
                None,
                f"Cannot batch tensors with different shapes in component {number}. First element had shape "
                f"{dims(first)} and element {index} had shape {dims(tensor._array)}. [Op:IteratorGetNext] name: ",
            )
    with on_host():
        return stack(list(tensors))


def shuffled(elements: Elements, size: int | None, source: Source) -> Elements:
    """Shuffle elements with a buffer of ``size`` elements, or of all."""
    return reordered(elements, lambda given: _shuffled(given, size, source))


def _shuffled(elements: Iterator[Any], size: int | None, source: Source) -> Iterator[Any]:
    kept: list[Any] = []
    while True:
        try:
            for element in islice(elements, None if size is None else size - len(kept)):
                kept.append(element)  # noqa: PERF402 - one after the other, so that an error loses none
            break
        except Exception as error:
            yield Failed(error)
    if not kept:
        return
    draws = _draws(source, len(kept))
    index = next(draws)
    yield kept[index]
    while True:
        try:
            for element, drawn in zip(elements, draws, strict=False):
                kept[index], index = element, drawn
                yield kept[index]
            break
        except Exception as error:
            yield Failed(error)
    del kept[index]
    for index in source.permutation(len(kept)).tolist():
        yield kept[index]


def _draws(source: Source, end: int) -> Iterator[int]:
    while True:
        yield from source.integers(end, size=_DRAWS).tolist()


def taken(elements: Elements, most: int) -> Elements:
    """Keep the first ``most`` elements; all if it is negative."""
    return elements if most < 0 else reordered(elements, lambda given: _taken(given, most))


def _taken(elements: Iterator[Any], most: int) -> Iterator[Any]:
    left = most
    while left:
        try:
            for element in islice(elements, left):
                left -= 1
                yield element
            return
        except Exception as error:
            yield Failed(error)


def every(elements: Elements, first: int, step: int) -> Elements:
    """Keep each ``step``-th element from number ``first`` on."""
    if isinstance(elements, Rows):
        return Rows(elements.tensors, islice(elements.numbers, first, None, step))
    skipped = first

    def following() -> Any:
        nonlocal skipped
        # After an error among the skipped elements, as many are skipped again; one in a kept element takes its place.
        for _ in islice(elements, skipped):
            pass
        skipped = 0
        element = next(elements)
        skipped = step - 1
        return element

    return Resumable(following)


def repeated(restart: Callable[[], Elements], times: int) -> Elements:
    """Repeat a data set ``times`` times; without end if it is negative and there are elements."""
    if not times:
        return iter(())

    def again() -> Iterator[Any]:
        made = restart()
        return made.numbers if isinstance(made, Rows) else made

    return reordered(restart(), lambda given: _repeated(given, again, times))


def _repeated(elements: Iterator[Any], restart: Callable[[], Iterator[Any]], times: int) -> Iterator[Any]:
    is_empty = True
    while True:
        try:
            for element in elements:
                is_empty = False
                yield element
        except Exception as error:
            yield Failed(error)
            continue
        times -= 1
        if times == 0 or (times < 0 and is_empty):
            return
        elements, is_empty = restart(), True


def mapped(elements: Elements, function: Callable[..., Any]) -> Elements:
    """Apply a function to each element."""
    return Resumable(lambda: result(called(function, next(elements))))


def result(value: Any) -> Any:
    """Convert the result of a mapped function to an element; an outer list becomes a tuple."""
    return normalized(tuple(value) if type(value) is list else value)


def filtered(elements: Elements, predicate: Callable[..., Any]) -> Elements:
    """Keep the elements for which a function returns true.

    Raises:
        ValueError: It returns no bool scalar.
    """

    def keeps(element: Any) -> bool:
        with on_host():
            kept = to_tensor(called(predicate, element))
        if kept._dtype is not bool_ or kept._array.ndim:
            raise ValueError(
                "Invalid `predicate`. `predicate` must return a `tf.bool` scalar tensor, but its return type is "
                f"{TensorSpec(kept.shape, kept._dtype)}."
            )
        return bool(kept)

    return filter(keeps, elements)


def counted(elements: Elements, start: int) -> Elements:
    """Number the elements."""
    return zipped((None, None), [map(_number, count(start)), elements])


def _number(number: int) -> EagerTensor:
    with on_host():
        return to_tensor(number, like=int64)


class Cache:
    """Keeps all elements after the first complete iteration.

    Args:
        restart: Starts from the first element.
    """

    def __init__(self, restart: Callable[[], Elements]) -> None:
        self._restart = restart
        self._kept: list[Any] | None = None

    def start(self) -> Elements:
        """Start from the first element."""
        return self._keep() if self._kept is None else iter(self._kept)

    def _keep(self) -> Elements:
        kept: list[Any] = []
        elements = self._restart()

        def following() -> Any:
            for element in elements:
                kept.append(element)
                return element
            self._kept = kept
            raise StopIteration

        return Resumable(following)


def zipped(structure: Any, iterators: list[Elements]) -> Elements:
    """Combine the elements of several data sets, until one of them ends."""

    def following() -> Any:
        values, errors = [], []
        for each in iterators:
            try:
                values.append(next(each))
            except StopIteration:
                # For good, even if an error goes first.
                iterators.clear()
                break
            except Exception as error:
                # The other iterators go on as well, so that elements stay together.
                errors.append(error)
        if errors:
            raise errors[0]
        if not iterators:
            raise StopIteration
        return pack(structure, values)

    return Resumable(following)


def rows(tensors: Any) -> Rows:
    """Iterate over the slices of tensors along the first axis.

    Raises:
        InvalidArgumentError: Their lengths differ; those of tensors of a graph are known only here.
    """
    lengths = {len(each) for each in flatten(tensors)}
    if len(lengths) > 1:
        raise InvalidArgumentError(
            None,
            None,
            f"Dimensions {min(lengths)} and {max(lengths)} are not compatible [Op:TensorSliceDataset] name: ",
        )
    return Rows(tensors, iter(range(min(lengths))))


def _row(tensor: EagerTensor, index: int) -> EagerTensor:
    # A view: tensors do not change. The ellipsis makes a slice of rank 0 an array.
    return tensor_of(tensor._array[index, ...], tensor._dtype, tensor._device, tensor._home)


def _rows(tensor: EagerTensor, numbers: list[int]) -> EagerTensor:
    with on_host():
        return gather(tensor, to_tensor(numbers, like=int64))


__all__ = [
    "Cache",
    "Elements",
    "Rows",
    "batched",
    "counted",
    "every",
    "filtered",
    "mapped",
    "reordered",
    "repeated",
    "result",
    "rows",
    "shuffled",
    "taken",
    "zipped",
]

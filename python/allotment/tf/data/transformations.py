"""Transformations of data sets: from an iterator over elements to another."""

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

from allotment.errors import InvalidArgumentError
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
    """Reorder elements, or their numbers if they are slices of tensors."""
    return (
        Rows(elements.tensors, change(elements.numbers)) if isinstance(elements, Rows) else change(elements)
    )


def batched(elements: Elements, size: int, drop_remainder: bool) -> Elements:
    """Stack ``size`` elements to one; the last batch may be smaller."""
    return (
        elements.batches(size, drop_remainder)
        if isinstance(elements, Rows)
        else _batched(elements, size, drop_remainder)
    )


def _batched(elements: Elements, size: int, drop_remainder: bool) -> Elements:
    while taken := list(islice(elements, size)):
        if len(taken) < size and drop_remainder:
            return
        columns = zip(*map(flatten, taken), strict=True)
        yield pack(taken[0], [_stacked(number, column) for number, column in enumerate(columns)])


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
    kept = list(islice(elements, size))
    for element, index in zip(elements, _draws(source, len(kept)), strict=False):
        chosen, kept[index] = kept[index], element
        yield chosen
    for index in source.permutation(len(kept)).tolist():
        yield kept[index]


def _draws(source: Source, end: int) -> Iterator[int]:
    while True:
        yield from source.integers(end, size=_DRAWS).tolist()


def repeated(restart: Callable[[], Elements], count: int) -> Elements:
    """Repeat a data set ``count`` times; without end if it is negative and there are elements."""
    if not count:
        return iter(())
    first = restart()
    if not isinstance(first, Rows):
        return _repeated(first, restart, count)

    def numbers() -> Iterator[int]:
        again = restart()
        assert isinstance(again, Rows)
        return again.numbers

    return Rows(first.tensors, _repeated(first.numbers, numbers, count))


def _repeated(elements: Iterator[Any], restart: Callable[[], Iterator[Any]], count: int) -> Iterator[Any]:
    while True:
        found = False
        for element in elements:
            found = True
            yield element
        count -= 1
        if not (found and count):
            return
        elements = restart()


def mapped(elements: Elements, function: Callable[..., Any]) -> Elements:
    """Apply a function to each element."""
    return (result(called(function, element)) for element in elements)


def result(value: Any) -> Any:
    """Convert the result of a mapped function to an element; an outer list becomes a tuple."""
    return normalized(tuple(value) if type(value) is list else value)


def filtered(elements: Elements, predicate: Callable[..., Any]) -> Elements:
    """Keep the elements for which a function returns true.

    Raises:
        ValueError: It returns no bool scalar.
    """
    for element in elements:
        with on_host():
            kept = to_tensor(called(predicate, element))
        if kept._dtype is not bool_ or kept._array.ndim:
            raise ValueError(
                "Invalid `predicate`. `predicate` must return a `tf.bool` scalar tensor, but its return type is "
                f"{TensorSpec(kept.shape, kept._dtype)}."
            )
        if kept:
            yield element


def counted(elements: Elements, start: int) -> Elements:
    """Number the elements."""
    # No device scope may be open while the caller runs.
    return ((_number(number), element) for number, element in enumerate(elements, start))


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
        kept = []
        for element in self._restart():
            kept.append(element)
            yield element
        self._kept = kept


def zipped(structure: Any, iterators: list[Elements]) -> Elements:
    """Combine the elements of several data sets, until one of them ends."""
    return (pack(structure, values) for values in zip(*iterators, strict=False))


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
    "filtered",
    "mapped",
    "reordered",
    "repeated",
    "result",
    "rows",
    "shuffled",
    "zipped",
]

"""What data sets do to elements: from one iterator to another, an element at a time."""

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

from allotment.data.structure import called, flatten, map_values, normalized, on_host, pack
from allotment.dtypes import bool as bool_
from allotment.dtypes import int64
from allotment.errors import InvalidArgumentError
from allotment.ops.convert import to_tensor
from allotment.ops.draws import Source
from allotment.ops.joining import stack
from allotment.ops.table import dims
from allotment.tensor import EagerTensor
from allotment.tensor_spec import TensorSpec

Elements = Iterator[Any]


def batched(elements: Elements, size: int, drop_remainder: bool) -> Elements:
    """Stack elements, ``size`` at a time; the last stack may be smaller."""
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
    """Keep ``size`` elements, all without one, and give one of them at random whenever another one comes."""
    kept = list(islice(elements, size))
    for element in elements:
        index = int(source.integers(len(kept)))
        chosen, kept[index] = kept[index], element
        yield chosen
    for index in source.permutation(len(kept)):
        yield kept[index]


def repeated(restart: Callable[[], Elements], count: int) -> Elements:
    """Go through a data set several times; for ever if the count is negative, but not through one without elements."""
    while count:
        found = False
        for element in restart():
            found = True
            yield element
        if not found:
            return
        count -= 1


def mapped(elements: Elements, function: Callable[..., Any]) -> Elements:
    """Call a function with each element."""
    return (result(called(function, element)) for element in elements)


def result(value: Any) -> Any:
    """What a mapped function returned, as an element: a list at the top is as good as a tuple."""
    return normalized(tuple(value) if type(value) is list else value)


def filtered(elements: Elements, predicate: Callable[..., Any]) -> Elements:
    """Keep the elements for which a function returns true.

    Raises:
        ValueError: It returns something else than a truth value.
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
    """Put a number before each element."""
    # No scope is open while an element is given: it would be the caller's, too.
    return ((_number(number), element) for number, element in enumerate(elements, start))


def _number(number: int) -> EagerTensor:
    with on_host():
        return to_tensor(number, like=int64)


class Cache:
    """Keeps elements, once somebody has gone through all of them.

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
    """Give the elements of several data sets together, until one of them ends."""
    return (pack(structure, values) for values in zip(*iterators, strict=False))


def rows(tensors: Any) -> Elements:
    """Give the slices of tensors along the first axis."""
    length = len(flatten(tensors)[0])
    for index in range(length):
        yield map_values(lambda tensor, index=index: _row(tensor, index), tensors)


def _row(tensor: EagerTensor, index: int) -> EagerTensor:
    made = EagerTensor()
    # A view: nobody changes the elements of a tensor. A slice of rank 0 is an array still, by the ellipsis.
    made._array = tensor._array[index, ...]
    made._dtype, made._device, made._home = tensor._dtype, tensor._device, tensor._home
    return made


__all__ = [
    "Cache",
    "Elements",
    "batched",
    "counted",
    "filtered",
    "mapped",
    "repeated",
    "result",
    "rows",
    "shuffled",
    "zipped",
]

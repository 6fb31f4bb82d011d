"""Arguments of operations that are tensors of a graph, whose numbers are known only when a session runs.

Sizes, axes and shapes are plain arguments of our rows and inputs in TensorFlow. Where a graph does not know such
an argument, a ``Deferred`` stands for it: the node gets the tensor as one more input behind its others, and the
numbers take the place of the ``Deferred`` when the node runs.
"""

from collections.abc import Callable, Iterator
from typing import Any, NoReturn

#: A vector of numbers of which some are known.
PartlyKnown = tuple[int | None, ...]


class Deferred:
    """Stands for the number, or the numbers, of a tensor among the arguments of an operation.

    Arithmetic makes tensors, and a vector of known length can be taken apart. Everything that needs the number
    itself is an error that says so.
    """

    __slots__ = ("known", "tensor")

    def __init__(self, tensor: Any, known: PartlyKnown | None) -> None:
        #: The tensor: a whole number, a vector of them, or a matrix.
        self.tensor = tensor
        #: The elements of a vector that are known while the graph is built; ``None`` where not even its length is.
        self.known = known

    def __len__(self) -> int:
        if self.known is None:
            self._refuse()
        return len(self.known)

    def __iter__(self) -> Iterator[Any]:
        return (self[place] for place in range(len(self)))

    def __getitem__(self, place: int) -> Any:
        if not -len(self) <= place < len(self):
            raise IndexError(f"{place} is no place of {len(self)} numbers")
        assert self.known is not None
        known = self.known[place]
        return Deferred(self.tensor[place], None) if known is None else known

    def __add__(self, other: Any) -> Any:
        return self.tensor + operand(other)

    def __radd__(self, other: Any) -> Any:
        return operand(other) + self.tensor

    def __sub__(self, other: Any) -> Any:
        return self.tensor - operand(other)

    def __rsub__(self, other: Any) -> Any:
        return operand(other) - self.tensor

    def __mul__(self, other: Any) -> Any:
        return self.tensor * operand(other)

    def __rmul__(self, other: Any) -> Any:
        return operand(other) * self.tensor

    def __neg__(self) -> Any:
        return -self.tensor

    def _refuse(self, *others: Any) -> NoReturn:  # noqa: ARG002 - one for operators of all sorts
        raise ValueError(
            f"the value of {self.tensor!r} must be known when the graph is built, and it is not. Give placeholders a "
            "full shape, use `set_shape`, or pass a Python value where a number is needed."
        )

    __hash__ = None  # type: ignore[assignment]
    __int__ = __index__ = __bool__ = __float__ = _refuse
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse


def operand(number: Any) -> Any:
    """Return an argument as an operand of arithmetic: the tensor of a ``Deferred``, a number as it is."""
    return number.tensor if isinstance(number, Deferred) else number


def listed(numbers: Any) -> Any:
    """Return numbers as an argument of another operation: the tensor of a ``Deferred``, else a list of operands."""
    return numbers.tensor if isinstance(numbers, Deferred) else [operand(each) for each in numbers]


def is_known(argument: Any) -> bool:
    """Whether an argument has no ``Deferred`` in it."""
    return not deferred_in(argument)


def deferred_in(argument: Any) -> list[Deferred]:
    """Return every ``Deferred`` in an argument: itself, in a tuple that may be named, or an end of a slice."""
    if type(argument) is Deferred:
        return [argument]
    if isinstance(argument, tuple):
        return [found for each in argument for found in deferred_in(each)]
    if type(argument) is slice:
        return [each for each in (argument.start, argument.stop, argument.step) if type(each) is Deferred]
    return []


def filled(argument: Any, numbers: Iterator[Any]) -> Any:
    """Replace every ``Deferred`` in an argument with a number, in the order of ``deferred_in``."""
    if type(argument) is Deferred:
        return next(numbers)
    if isinstance(argument, tuple) and deferred_in(argument):
        made = tuple(filled(each, numbers) for each in argument)
        return made if type(argument) is tuple else type(argument)(*made)
    if type(argument) is slice:
        return slice(*(filled(each, numbers) for each in (argument.start, argument.stop, argument.step)))
    return argument


def with_numbers(
    function: Callable[..., Any], count: int, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Callable[..., Any]:
    """Make a function of arrays and arguments that reads the numbers of each ``Deferred`` from further arrays.

    Args:
        function: Takes ``count`` arrays, ``args`` and ``kwargs``.
        count: How many arrays it takes; the numbers are those behind them.
        args: The arguments with every ``Deferred``.
        kwargs: The same.
    """
    more = sum(len(deferred_in(each)) for each in (*args, *kwargs.values()))

    def call(*arrays_and_args: Any, **named: Any) -> Any:
        numbers = iter([_plain(each.tolist()) for each in arrays_and_args[count : count + more]])
        # What comes behind the arguments is the session's, as a variable's storage.
        given = [filled(each, numbers) for each in arrays_and_args[count + more :]]
        named = {name: filled(each, numbers) for name, each in named.items()}
        return function(*arrays_and_args[:count], *given, **named)

    return call


def _plain(numbers: Any) -> Any:
    return tuple(_plain(each) for each in numbers) if type(numbers) is list else numbers


__all__ = [
    "Deferred",
    "PartlyKnown",
    "deferred_in",
    "filled",
    "is_known",
    "listed",
    "operand",
    "with_numbers",
]

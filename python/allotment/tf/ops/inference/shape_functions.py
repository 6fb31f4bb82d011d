"""What shape functions are made of: they find types and shapes of outputs from what a graph knows of inputs.

Each row of the operation table has one, in the file of its operation; ``common`` has those that many share. They
follow TensorFlow's. A shape function computes with lengths of which some are not
known, and with the numbers among the arguments, of which some may be known only when a session runs. No operation
runs to find a shape.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

from allotment.tf.ops.deferred import Deferred
from allotment.tf.ops.table import Operation
from allotment.tf.tensors.dtype import DType
from allotment.tf.tensors.tensor_shape import TensorShape, known_shape

#: Lengths of axes, ``None`` for one that is not known; ``None`` for the whole if their number is not known.
Dims = tuple[int | None, ...] | None
#: Element type and shape of an output.
Output = tuple[DType, Dims | TensorShape]


class Inference:
    """A call of an operation in a graph, for its shape function to look at."""

    __slots__ = ("inputs", "row")

    def __init__(self, row: Operation, inputs: Sequence[Any]) -> None:
        self.row = row
        #: The tensors that the operation computes with.
        self.inputs = inputs

    def dtype(self, index: int = 0) -> DType:
        """The element type of an input."""
        return self.inputs[index]._dtype  # type: ignore[no-any-return]

    def shape(self, index: int = 0) -> Dims:
        """Return the shape of an input as far as it is known."""
        return self.inputs[index]._shape._dims  # type: ignore[no-any-return]

    def shapes(self) -> list[Dims]:
        """Return the shape of each input as far as it is known."""
        return [each._shape._dims for each in self.inputs]

    def value(self, index: int) -> Any:
        """The value of an input as an array, ``None`` unless constants and known shapes decide it."""
        # Imported here: few shape functions ask, and eager programs import operations without this.
        from allotment.tf.ops.inference.known_values import constant_value

        return constant_value(self.inputs[index])

    def one(self, dims: Dims | TensorShape, dtype: DType | None = None) -> list[Output]:
        """The only output: of the type of the row or else of the first input, unless another one is given."""
        return [(dtype or self.row.result or self.inputs[0]._dtype, dims)]

    def ranked(self, index: int, rank: int) -> tuple[int | None, ...]:
        """The shape of an input that must have a number of axes.

        Raises:
            ValueError: It has another.
        """
        dims = self.shape(index)
        if dims is None:
            return (None,) * rank
        if len(dims) != rank:
            self.refuse(f"Shape must be rank {rank} but is rank {len(dims)}")
        return dims

    def at_least(self, index: int, rank: int) -> Dims:
        """The shape of an input that must have at least that many axes.

        Raises:
            ValueError: It has fewer.
        """
        dims = self.shape(index)
        if dims is not None and len(dims) < rank:
            self.refuse(f"Shape must be at least rank {rank} but is rank {len(dims)}")
        return dims

    def at_most(self, index: int, rank: int) -> Dims:
        """The shape of an input that must have at most that many axes.

        Raises:
            ValueError: It has more.
        """
        dims = self.shape(index)
        if dims is not None and len(dims) > rank:
            self.refuse(f"Shape must be at most rank {rank} but is rank {len(dims)}")
        return dims

    def axis(self, axis: Any, rank: int, what: str = "axis") -> int | None:
        """An axis counted from the start, ``None`` if it is not known.

        Raises:
            ValueError: There is no such axis.
        """
        if type(axis) is Deferred:
            return None
        if not -rank <= axis < rank:
            self.refuse(f"{what} {axis} is out of range: it must be in [{-rank}, {rank})")
        return axis + rank if axis < 0 else axis  # type: ignore[no-any-return]

    def requested(self, shape: Any, least: int = -1) -> Dims:
        """The shape that an argument asks for; -1 stands for a length that is not known.

        ``least`` is what the error calls the least length: TensorFlow's functions differ.

        Raises:
            ValueError: A length is below -1.
        """
        for each in numbers(shape) or ():
            if each is not None and each < -1:
                self.refuse(f"Dimension {each} must be >= {least}")
        return lengths(shape)

    def same(self, one: int | None, other: int | None) -> int | None:
        """The length of two axes that must be equal.

        Raises:
            ValueError: They are not.
        """
        if one is None or one == other:
            return other
        if other is not None:
            self.refuse(f"Dimensions must be equal, but are {one} and {other}")
        return one

    def merged(self, one: Dims, other: Dims) -> Dims:
        """The shape of two tensors whose shapes must be equal.

        Raises:
            ValueError: They are not.
        """
        if one is None or one == other:
            return other
        if other is None:
            return one
        if len(one) != len(other):
            self.refuse(f"Shapes must be equal rank, but are {len(one)} and {len(other)}")
        return tuple(self.same(a, b) for a, b in zip(one, other, strict=True))

    def all_merged(self, shapes: Iterable[Dims]) -> Dims:
        """The shape of several tensors whose shapes must be equal.

        Raises:
            ValueError: They are not.
        """
        found: Dims = None
        for each in shapes:
            found = self.merged(found, each)
        return found

    def broadcast(self, left: Dims, right: Dims) -> Dims:
        """The shape of two tensors that are broadcast to each other.

        Raises:
            ValueError: They do not go together.
        """
        if left is None or right is None:
            return None
        if left == right and None not in left:
            return left
        more = len(left) - len(right)
        if more < 0:
            left, right, more = right, left, -more
        dims = list(left)
        for place, b in enumerate(right, more):
            a = dims[place]
            if a == 1 or (a is None and b not in (None, 1)):
                dims[place] = b
            elif b != 1 and b != a and b is not None:
                self.refuse(f"Dimensions must be equal, but are {a} and {b}")
        return tuple(dims)

    def refuse(self, fault: str) -> NoReturn:
        """Raise the error of shapes that contradict each other.

        Raises:
            ValueError: Always.
        """
        shapes = ", ".join(map(shape_text, self.shapes()))
        raise ValueError(f"{fault} for '{self.row.name}' with input shapes: {shapes or 'none'}.")


def shape_text(dims: Dims) -> str:
    """A shape as error texts show it: ``[2,?]``."""
    return (
        "<unknown>" if dims is None else f"[{','.join('?' if each is None else str(each) for each in dims)}]"
    )


def number(argument: Any) -> int | None:
    """A number among the arguments, ``None`` if it is not known."""
    return None if type(argument) is Deferred else argument


def numbers(argument: Any) -> tuple[int | None, ...] | None:
    """A vector of numbers among the arguments, with ``None`` for what is not known."""
    if type(argument) is Deferred:
        return argument.known
    return tuple(None if type(each) is Deferred else each for each in argument)


def lengths(argument: Any) -> Dims:
    """A shape among the arguments; -1 stands for a length that is not known."""
    found = numbers(argument)
    return None if found is None else tuple(None if each == -1 else each for each in found)


def unknown(rank: int | None) -> Dims:
    """The shape of which only the number of axes is known."""
    return None if rank is None else (None,) * rank


def added(*lengths: int | None) -> int | None:
    """The sum of lengths, ``None`` if one is not known."""
    total = 0
    for each in lengths:
        if each is None:
            return None
        total += each
    return total


def multiplied(*lengths: int | None) -> int | None:
    """The product of lengths; zero times an unknown length is zero."""
    if 0 in lengths:
        return 0
    total = 1
    for each in lengths:
        if each is None:
            return None
        total *= each
    return total


def infer(
    row: Operation, inputs: Sequence[Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> list[tuple[DType, TensorShape]]:
    """The type and the shape of each output of a row.

    Raises:
        NotImplementedError: The row has no shape function, and so no place in a graph.
        ValueError: What is known of the shapes and arguments contradicts itself.
    """
    if row.shape is None:
        raise NotImplementedError(f"operation {row.name} has no shape function: it cannot be in a graph")
    return [
        (dtype, dims if type(dims) is TensorShape else known_shape(dims))
        for dtype, dims in row.shape(Inference(row, inputs), *args, **kwargs)
    ]


__all__ = [
    "Dims",
    "Inference",
    "Output",
    "added",
    "infer",
    "lengths",
    "multiplied",
    "number",
    "numbers",
    "shape_text",
    "unknown",
]

"""``tf.TensorShape``: static shapes of tensors."""

from collections.abc import Iterable, Iterator
from typing import Any, SupportsIndex, overload


class TensorShape:
    """The lengths of a tensor's axes. As ``tf.TensorShape``. Equal to a tuple or list of the same numbers.

    An eager tensor's shape is always fully known.

    Args:
        dims: The lengths, with ``None`` for an unknown length; ``None`` for an unknown rank.
    """

    __slots__ = ("_dims",)

    def __init__(self, dims: "Iterable[Any] | SupportsIndex | TensorShape | None") -> None:
        self._dims: tuple[int | None, ...] | None
        if dims is None:
            self._dims = None
        elif isinstance(dims, TensorShape):
            self._dims = dims._dims
        elif isinstance(dims, list | tuple):
            self._dims = tuple(_length(dim) for dim in dims)
        else:
            self._dims = _dims_of(dims)

    @property
    def rank(self) -> int | None:
        """Number of axes; ``None`` if unknown."""
        return None if self._dims is None else len(self._dims)

    @property
    def ndims(self) -> int | None:
        """Number of axes; ``None`` if unknown. The same as ``rank``."""
        return self.rank

    @property
    def dims(self) -> list[int | None] | None:
        """The lengths as a list; ``None`` if the rank is unknown."""
        return None if self._dims is None else list(self._dims)

    def as_list(self) -> list[int | None]:
        """Return the lengths as a list.

        Raises:
            ValueError: The rank is unknown.
        """
        if self._dims is None:
            raise ValueError("as_list() is not defined on an unknown TensorShape.")
        return list(self._dims)

    def num_elements(self) -> int | None:
        """Return the number of elements, the product of the lengths; ``None`` if a length is unknown."""
        if self._dims is None:
            return None
        count = 1
        for dim in self._dims:
            if dim is None:
                return None
            count *= dim
        return count

    def is_fully_defined(self) -> bool:
        """Whether every length is known."""
        return self._dims is not None and None not in self._dims

    def is_compatible_with(self, other: Any) -> bool:
        """Whether a tensor can have both shapes: where both lengths are known, they are equal."""
        theirs = as_shape(other)._dims
        if self._dims is None or theirs is None:
            return True
        pairs = zip(self._dims, theirs, strict=False)
        return len(self._dims) == len(theirs) and all(None in pair or pair[0] == pair[1] for pair in pairs)

    def assert_is_compatible_with(self, other: Any) -> None:
        """Check that a tensor can have both shapes.

        Raises:
            ValueError: The shapes are incompatible.
        """
        if not self.is_compatible_with(other):
            raise ValueError(f"Shapes {self} and {other} are incompatible")

    def assert_is_fully_defined(self) -> None:
        """Check that every length is known.

        Raises:
            ValueError: A length is unknown.
        """
        if not self.is_fully_defined():
            raise ValueError(f"Shape {self} is not fully defined")

    def assert_same_rank(self, other: Any) -> None:
        """Check that both shapes have the same rank, if both ranks are known.

        Raises:
            ValueError: The ranks differ.
        """
        shape = as_shape(other)
        if None not in (self.rank, shape.rank) and self.rank != shape.rank:
            raise ValueError(f"Shapes {self} and {shape} must have the same rank")

    def assert_has_rank(self, rank: int | None) -> None:
        """Check that the shape has the given rank, if its rank is known.

        Raises:
            ValueError: The rank differs.
        """
        if None not in (self.rank, rank) and self.rank != rank:
            raise ValueError(f"Shape {self} must have rank {rank}")

    def merge_with(self, other: Any) -> "TensorShape":
        """Return the shape with the known lengths of both shapes.

        Raises:
            ValueError: The shapes are incompatible.
        """
        shape = as_shape(other)
        mine, theirs = self._dims, shape._dims
        if mine is None or theirs is None:
            return shape if mine is None else self
        if not self.is_compatible_with(shape):
            raise ValueError(f"Shapes {self} and {shape} are not compatible")
        return TensorShape([b if a is None else a for a, b in zip(mine, theirs, strict=True)])

    def with_rank(self, rank: int | None) -> "TensorShape":
        """Return the shape if it has the given rank; of unknown rank, a shape of unknown lengths.

        Raises:
            ValueError: The rank differs.
        """
        self.assert_has_rank(rank)
        return TensorShape([None] * rank) if self._dims is None and rank is not None else self

    def with_rank_at_least(self, rank: int) -> "TensorShape":
        """Return the shape after a check that it has at least ``rank`` axes.

        Raises:
            ValueError: The shape has fewer axes.
        """
        if self.rank is not None and self.rank < rank:
            raise ValueError(f"Shape {self} must have rank at least {rank}")
        return self

    def with_rank_at_most(self, rank: int) -> "TensorShape":
        """Return the shape after a check that it has at most ``rank`` axes.

        Raises:
            ValueError: The shape has more axes.
        """
        if self.rank is not None and self.rank > rank:
            raise ValueError(f"Shape {self} must have rank at most {rank}")
        return self

    def most_specific_compatible_shape(self, other: Any) -> "TensorShape":
        """Return the shape with the lengths that are equal in both shapes, and unknown ones elsewhere."""
        theirs = as_shape(other)._dims
        if self._dims is None or theirs is None or len(self._dims) != len(theirs):
            return TensorShape(None)
        return TensorShape([a if a == b else None for a, b in zip(self._dims, theirs, strict=True)])

    def is_subtype_of(self, other: Any) -> bool:
        """Whether every tensor of this shape also has the other shape."""
        if not isinstance(other, TensorShape):
            return False
        mine, theirs = self._dims, other._dims
        if mine is None or theirs is None:
            return theirs is None
        return len(mine) == len(theirs) and all(b in (None, a) for a, b in zip(mine, theirs, strict=True))

    def most_specific_common_supertype(self, others: Iterable[Any]) -> "TensorShape | None":
        """Return the most specific shape that includes this shape and all others; ``None`` if one is not a shape."""
        common = self
        for other in others:
            if not isinstance(other, TensorShape):
                return None
            common = common.most_specific_compatible_shape(other)
        return common

    def concatenate(self, other: Any) -> "TensorShape":
        """Return the shape with the axes of this shape followed by those of the other."""
        theirs = as_shape(other)._dims
        return TensorShape(None if self._dims is None or theirs is None else self._dims + theirs)

    def __add__(self, other: Any) -> "TensorShape":
        return self.concatenate(other)

    def __radd__(self, other: Any) -> "TensorShape":
        return as_shape(other).concatenate(self)

    @overload
    def __getitem__(self, key: SupportsIndex) -> int | None: ...
    @overload
    def __getitem__(self, key: slice) -> "TensorShape": ...
    def __getitem__(self, key: SupportsIndex | slice) -> "int | TensorShape | None":
        if self._dims is None:
            return _part_of_unknown(key) if isinstance(key, slice) else None
        found = self._dims[key]
        return TensorShape(found) if isinstance(found, tuple) else found

    def __len__(self) -> int:
        if self._dims is None:
            raise ValueError("Cannot take the length of shape with unknown rank.")
        return len(self._dims)

    def __bool__(self) -> bool:
        return self._dims is not None

    def __iter__(self) -> Iterator[int | None]:
        if self._dims is None:
            raise ValueError("Cannot iterate over a shape with unknown rank.")
        return iter(self._dims)

    def __eq__(self, other: object) -> bool:
        try:
            return self._dims == as_shape(other)._dims
        except (TypeError, ValueError):
            return NotImplemented

    def __hash__(self) -> int:
        return hash(self._dims)

    def __reduce__(self) -> tuple[Any, ...]:
        return TensorShape, (self._dims,)

    def __str__(self) -> str:
        if self._dims is None:
            return "<unknown>"
        return f"({', '.join(map(str, self._dims))}{',' * (len(self._dims) == 1)})"

    def __repr__(self) -> str:
        return f"TensorShape({self.dims})"


def as_shape(value: Any) -> TensorShape:
    """Convert a value, such as a list of lengths, to a ``TensorShape``."""
    return value if isinstance(value, TensorShape) else TensorShape(value)


def known_shape(dims: tuple[int | None, ...] | None) -> TensorShape:
    """Create a shape from lengths that are known to be valid, without a check."""
    made = TensorShape.__new__(TensorShape)
    made._dims = dims
    return made


def _length(dim: SupportsIndex | None) -> int | None:
    # The common case first: a protocol check takes microseconds.
    if type(dim) is int and dim >= 0:
        return dim
    if dim is None:
        return None
    try:
        length = dim.__index__()
    except AttributeError as error:
        error.__traceback__ = None
        raise TypeError(
            f"Dimension value must be integer or None or have an __index__ method, got value '{dim!r}' with type "
            f"'{type(dim)!r}'"
        ) from None
    if length < 0:
        raise ValueError(f"Dimension {length} must be >= 0")
    return length


def _dims_of(dims: Any) -> tuple[int | None, ...]:
    """Return the lengths in an iterable other than a list or tuple, or a single length."""
    try:
        lengths = iter(dims)
    except TypeError:
        # Also arrays and tensors of rank 0.
        return (_length(dims),)
    found = []
    for dim in lengths:
        try:
            found.append(_length(dim))
        except TypeError as error:
            error.__traceback__ = None
            raise TypeError(
                f"Failed to convert '{dims!r}' to a shape: '{dim!r}'could not be converted to a dimension. A shape "
                "should either be single dimension (e.g. 10), or an iterable of dimensions (e.g. [1, 10, None])."
            ) from None
    return tuple(found)


def _part_of_unknown(key: slice) -> TensorShape:
    """Return a slice of a shape of unknown rank: unknown lengths, as many as the slice states if it does."""
    start = 0 if key.start is None else key.start
    if key.step is not None:
        raise ValueError("Steps are not yet handled")
    if key.stop is None or start < 0 or key.stop < 0:
        return TensorShape(None)
    return TensorShape([None] * max(key.stop - start, 0))

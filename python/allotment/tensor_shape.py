"""Shapes, as TensorFlow prints and compares them."""

from collections.abc import Iterable, Iterator
from typing import Any, SupportsIndex, overload


class TensorShape:
    """The lengths of a tensor's axes. Equal to a tuple or list of the same numbers.

    ``None`` for the whole is a shape of unknown rank, ``None`` for an axis one of unknown length; an eager
    tensor's shape is always fully known.
    """

    __slots__ = ("_dims",)

    def __init__(self, dims: "Iterable[SupportsIndex | None] | SupportsIndex | TensorShape | None") -> None:
        self._dims: tuple[int | None, ...] | None
        if dims is None:
            self._dims = None
        elif isinstance(dims, TensorShape):
            self._dims = dims._dims
        elif isinstance(dims, list | tuple):
            self._dims = tuple(_length(dim) for dim in dims)
        elif isinstance(dims, SupportsIndex):
            self._dims = (_length(dims),)
        else:
            self._dims = tuple(_length(dim) for dim in dims)

    @property
    def rank(self) -> int | None:
        """Number of axes, ``None`` if unknown."""
        return None if self._dims is None else len(self._dims)

    @property
    def ndims(self) -> int | None:
        """Number of axes, ``None`` if unknown."""
        return self.rank

    @property
    def dims(self) -> list[int | None] | None:
        """The lengths as a list, ``None`` if the rank is unknown."""
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
        """Return the product of the lengths, ``None`` if one is unknown."""
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
        """Whether some tensor could have both shapes."""
        theirs = as_shape(other)._dims
        if self._dims is None or theirs is None:
            return True
        pairs = zip(self._dims, theirs, strict=False)
        return len(self._dims) == len(theirs) and all(None in pair or pair[0] == pair[1] for pair in pairs)

    def concatenate(self, other: Any) -> "TensorShape":
        """Return the axes of this shape, then those of the other."""
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
            return TensorShape(None) if isinstance(key, slice) else None
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
    """Return the value as a shape."""
    return value if isinstance(value, TensorShape) else TensorShape(value)


def _length(dim: SupportsIndex | None) -> int | None:
    # The usual case first: asking for a protocol takes microseconds.
    if type(dim) is int and dim >= 0:
        return dim
    if dim is None:
        return None
    try:
        length = dim.__index__()
    except AttributeError:
        raise TypeError(f"Dimension value must be integer or None, not {dim!r}") from None
    if length < 0:
        raise ValueError(f"Dimension {length} must be >= 0")
    return length

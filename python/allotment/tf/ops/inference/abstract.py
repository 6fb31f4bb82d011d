"""Stands for the array of a tensor before it is computed: its shape, and its value if constants decide it."""

from collections.abc import Iterator
from typing import Any, NoReturn

import numpy as np

from allotment.tf.ops.inference.known_values import constant_value
from allotment.tf.ops.inference.symbolic import Symbolic


class Abstract:
    """Stands for the array of a symbolic tensor while a function records.

    It answers for shape and type. Its elements are known only if they follow from constants; asking for others is
    an error that says so.
    """

    __slots__ = ("_tensor", "_value")

    #: NumPy leaves operators to the other operand; nothing is computed with it unseen.
    __array_ufunc__ = None

    def __init__(self, tensor: Symbolic) -> None:
        self._tensor = tensor
        self._value: np.ndarray[Any, Any] | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """The lengths of the axes; one that is not known goes with every other, and is no number.

        Raises:
            ValueError: Not even how many there are is known.
        """
        dims = self._tensor._shape._dims
        if dims is None:
            raise self._unknown("shape")
        if None in dims:
            lengths: list[Any] = [
                UnknownLength(self, axis) if dim is None else dim for axis, dim in enumerate(dims)
            ]
            return tuple(lengths)
        return dims  # type: ignore[return-value]

    @property
    def ndim(self) -> int:
        """The number of axes; if it is not known, it goes with every other, and is no number."""
        rank = self._tensor._shape.rank
        unknown: Any = UnknownLength(self, None)
        return unknown if rank is None else rank

    @property
    def size(self) -> int:
        """The number of elements.

        Raises:
            ValueError: It is not known.
        """
        count = self._tensor._shape.num_elements()
        if count is None:
            raise self._unknown("shape")
        return count

    @property
    def dtype(self) -> np.dtype[Any]:
        """NumPy's type of the elements."""
        return np.dtype(self._tensor._dtype.numpy)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        return np.array(self._elements(), dtype=dtype)

    def __int__(self) -> int:
        return int(self._elements())

    def __index__(self) -> int:
        return self._elements().__index__()

    def __float__(self) -> float:
        return float(self._elements())

    def __bool__(self) -> bool:
        return bool(self._elements())

    def __len__(self) -> int:
        return len(self._elements())

    def __iter__(self) -> Iterator[Any]:
        return iter(self._elements())

    def __getitem__(self, key: Any) -> Any:
        return self._elements()[key]

    def __getattr__(self, name: str) -> Any:
        # Other attributes of arrays, such as ``tolist``, are those of the known value.
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._elements(), name)

    def _elements(self) -> np.ndarray[Any, Any]:
        if self._value is None:
            self._value = constant_value(self._tensor)
        if self._value is None:
            raise self._unknown("value")
        return self._value

    def _unknown(self, what: str) -> ValueError:
        return ValueError(
            f"the {what} of {self._tensor!r} must be known when the graph is built, and it is not. Give "
            f"placeholders a full shape, use `set_shape`, or pass a Python value where a number is needed."
        )


class UnknownLength:
    """The length of an axis, or the number of axes, that is known only when the graph runs.

    It compares equal to every length above 1; everything else is an error.
    """

    __slots__ = ("_abstract", "axis")

    def __init__(self, abstract: Abstract, axis: int | None) -> None:
        self._abstract = abstract
        #: Which axis; ``None`` for their number.
        self.axis = axis

    @property
    def tensor(self) -> Symbolic:
        """The tensor whose axis it is."""
        return self._abstract._tensor

    def __eq__(self, other: object) -> bool:
        if type(other) is int and other in (-1, 0, 1):
            # Code that compares a length with these numbers has a case for each.
            raise self._abstract._unknown("shape")
        return True

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = None  # type: ignore[assignment]

    def __index__(self) -> int:
        raise self._abstract._unknown("shape")

    def _refuse(self, *others: Any) -> NoReturn:  # noqa: ARG002 - one for operators of all sorts
        raise self._abstract._unknown("shape")

    __int__ = __bool__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _refuse
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __neg__ = _refuse

    def __str__(self) -> str:
        return "?"


__all__ = ["Abstract", "UnknownLength"]

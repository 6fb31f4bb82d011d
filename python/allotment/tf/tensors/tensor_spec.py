"""``tf.TensorSpec``: the static shape and element type of a tensor."""

from typing import Any

from allotment.tf.tensors.dtype import DType, as_dtype, float32
from allotment.tf.tensors.tensor import Tensor
from allotment.tf.tensors.tensor_shape import TensorShape, as_shape


class TensorSpec:
    """Describes tensors by static shape and element type. As ``tf.TensorSpec``.

    Args:
        shape: The lengths of the axes, with ``None`` for any length; ``None`` for any shape.
        dtype: The element type.
        name: An optional name.
    """

    __slots__ = ("_dtype", "_name", "_shape")

    def __init__(self, shape: Any, dtype: Any = float32, name: str | None = None) -> None:
        self._shape = TensorShape(shape)
        self._dtype = as_dtype(dtype)
        self._name = name

    @classmethod
    def from_spec(cls, spec: Any, name: str | None = None) -> "TensorSpec":
        """Return a copy of a spec, with another name if one is given."""
        return cls(spec.shape, spec.dtype, name or spec.name)

    @classmethod
    def from_tensor(cls, tensor: Any, name: str | None = None) -> "TensorSpec":
        """Return the spec with the shape and type of a tensor.

        Raises:
            ValueError: ``tensor`` is not a tensor.
        """
        if not (isinstance(tensor, Tensor) or hasattr(tensor, "_as_tensor")):
            raise ValueError(f"`tensor` should be a tf.Tensor, but got type {type(tensor)}.")
        return cls(tensor.shape, tensor.dtype, name)

    @property
    def shape(self) -> TensorShape:
        """The static shape."""
        return self._shape

    @property
    def dtype(self) -> DType:
        """The type of the elements."""
        return self._dtype

    @property
    def name(self) -> str | None:
        """The name; ``None`` without one."""
        return self._name

    @property
    def value_type(self) -> type:
        """The class of the described values: ``Tensor``."""
        return Tensor

    def is_compatible_with(self, spec_or_tensor: Any) -> bool:
        """Whether a tensor, or a tensor that another spec describes, can match this spec."""
        dtype = getattr(spec_or_tensor, "dtype", None)
        if not isinstance(dtype, DType):
            return False
        return dtype is self._dtype and self._shape.is_compatible_with(spec_or_tensor.shape)

    def is_subtype_of(self, other: Any) -> bool:
        """Whether every tensor that matches this spec also matches the other."""
        if not isinstance(other, TensorSpec) or other._dtype is not self._dtype:
            return False
        wide, narrow = other._shape.dims, self._shape.dims
        if wide is None:
            return True
        if narrow is None or len(narrow) != len(wide):
            return False
        return all(most in (None, least) for least, most in zip(narrow, wide, strict=True))

    def most_specific_compatible_type(self, other: "TensorSpec") -> "TensorSpec":
        """Return the most specific spec that includes both specs.

        Raises:
            ValueError: The element types differ.
        """
        if self._dtype is not other._dtype:
            raise ValueError(f"No TypeSpec is compatible with both {self} and {other}")
        mine, theirs = self._shape.dims, as_shape(other._shape).dims
        if mine is None or theirs is None or len(mine) != len(theirs):
            return TensorSpec(None, self._dtype, self._name)
        lengths = [one if one == two else None for one, two in zip(mine, theirs, strict=True)]
        return TensorSpec(lengths, self._dtype, self._name)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TensorSpec):
            return NotImplemented
        return (self._shape, self._dtype, self._name) == (other._shape, other._dtype, other._name)

    def __hash__(self) -> int:
        return hash((self._shape, self._dtype))

    def __reduce__(self) -> tuple[Any, ...]:
        return TensorSpec, (self._shape, self._dtype, self._name)

    def __repr__(self) -> str:
        return f"TensorSpec(shape={self._shape}, dtype={self._dtype!r}, name={self._name!r})"


__all__ = ["TensorSpec"]

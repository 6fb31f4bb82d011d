"""``tf.experimental.Optional``: a value that may be missing, as at the end of a data set."""

from typing import Any

from allotment.errors import InvalidArgumentError
from allotment.tf.data.structure import normalized, on_host, spec_of
from allotment.tf.ops.convert import to_tensor
from allotment.tf.tensors.dtype import bool as bool_
from allotment.tf.tensors.tensor import EagerTensor


class Optional:
    """A value that may be missing. As ``tf.experimental.Optional``; its static methods make it."""

    _value: Any
    _has_value: bool
    _spec: Any

    def __init__(self) -> None:
        raise TypeError(
            "Can't instantiate abstract class Optional: use Optional.from_value(value) or Optional.empty(element_spec)"
        )

    @staticmethod
    def _of(value: Any, has_value: bool, spec: Any) -> "Optional":
        made = object.__new__(Optional)
        made._value, made._has_value, made._spec = value, has_value, spec
        return made

    @staticmethod
    def from_value(value: Any) -> "Optional":
        """Make an optional with a value: a tensor, or tensors in tuples and dictionaries."""
        given = normalized(value)
        return Optional._of(given, True, spec_of(given))

    @staticmethod
    def empty(element_spec: Any) -> "Optional":
        """Make an optional without a value, of known types and shapes."""
        return Optional._of(None, False, element_spec)

    @property
    def element_spec(self) -> Any:
        """Types and shapes of the value."""
        return self._spec

    def has_value(self, name: str | None = None) -> EagerTensor:
        """Return whether there is a value, as a tensor."""
        with on_host():
            return to_tensor(self._has_value, like=bool_)

    def get_value(self, name: str | None = None) -> Any:
        """Return the value.

        Raises:
            InvalidArgumentError: There is none.
        """
        if not self._has_value:
            raise InvalidArgumentError(
                None, None, "The given optional does not have a value. [Op:OptionalGetValue] name: "
            )
        return self._value


__all__ = ["Optional"]

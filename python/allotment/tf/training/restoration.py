"""Restores variables from a checkpoint, also those that are created later, and reports unused values."""

import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, Protocol

from allotment.errors import InvalidArgumentError
from allotment.tf.training.checkpoint_file import CheckpointReader
from allotment.tf.training.checkpoint_values import values_of
from allotment.tf.variables import restoring
from allotment.tf.variables.variable import Variable

#: Suffix of a variable's key in the file, as in TensorFlow's files.
_VALUE = "/.ATTRIBUTES/VARIABLE_VALUE"


class CheckpointOwner(Protocol):
    """Protocol of an object whose parts a checkpoint restores: ``tf.train.Checkpoint``."""

    _parts: dict[str, Any]
    _root: Any

    def _checkpoint_parts(self) -> Iterator[tuple[str, Any]]: ...


class Restoration:
    """The restoration of one checkpoint: its values, and the objects whose variables receive them."""

    def __init__(self, owner: CheckpointOwner, reader: CheckpointReader) -> None:
        self._reader = reader
        shapes = reader.get_variable_to_shape_map()
        self.left = {name for name in shapes if name.endswith(_VALUE)}
        #: The keys of the variables that received a value.
        self.given: set[str] = set()
        # Weak references: an object that the program has dropped needs no values.
        self._owner = weakref.ref(owner)
        self._kept = {name: _reference(part) for name, part in owner._parts.items()}
        self._root = _reference(owner._root)
        with restoring.lock:
            for each in tuple(restoring.pending):
                if isinstance(each, Restoration) and each._shares(self):
                    restoring.pending.remove(each)
            if self.retry():
                restoring.pending.append(self)

    def _parts(self) -> Iterator[tuple[str, Any]]:
        owner = self._owner()
        if owner is not None:
            yield from owner._checkpoint_parts()
            return
        for name, kept in self._kept.items():
            part = kept()
            if part is not None:
                yield name, part
        root = self._root()
        if root is not None and not isinstance(root, Variable):
            yield from root._checkpoint_parts()

    def _shares(self, other: "Restoration") -> bool:
        """Whether another restoration has an object in common, and so replaces this one."""
        mine, others = ({id(part) for _, part in each._parts() if part is not None} for each in (self, other))
        return bool(mine & others)

    def retry(self) -> bool:
        """Assign the values whose variables exist now; return whether values are left for live objects."""
        parts = [*self._parts()]
        found = []
        for key, variable in values_of(_Parts(parts)):
            if tensor_name(key) in self.left:
                found.append((key, variable, _read_value(self._reader, tensor_name(key), variable)))
        for key, variable, value in found:
            variable.assign(value)
            self.left.discard(tensor_name(key))
            self.given.add(key)
        return bool(self.left and parts)


class _Parts(NamedTuple):
    """Stands in for an object with the given parts."""

    parts: list[tuple[str, Any]]

    def _checkpoint_parts(self) -> Iterable[tuple[str, Any]]:
        return self.parts


class LoadStatus:
    """The status of a restoration, with checks for missing values. As the result of ``tf.train.Checkpoint.restore``."""

    def __init__(self, owner: CheckpointOwner, restoration: Restoration | None) -> None:
        self._owner, self._restoration = owner, restoration

    def assert_consumed(self) -> "LoadStatus":
        """Check that every value of the checkpoint was used and every existing variable received one.

        Raises:
            AssertionError: A value is unused, a variable received none, or no checkpoint was read.
        """
        restoration = self._required_restoration()
        if restoration.left:
            names = ", ".join(sorted(each.removesuffix(_VALUE) for each in restoration.left))
            raise AssertionError(f"Unresolved object in checkpoint: no variable has the key {names}")
        return self.assert_existing_objects_matched()

    def assert_existing_objects_matched(self) -> "LoadStatus":
        """Check that every existing variable received a value.

        Raises:
            AssertionError: A variable received none, or no checkpoint was read.
        """
        restoration = self._required_restoration()
        without = [
            key for key, _ in values_of(self._owner) if key not in restoration.given and key != "save_counter"
        ]
        if without:
            raise AssertionError(
                f"Found {len(without)} Python objects that were not bound to checkpointed values, likely due to "
                f"changes in the Python program. They are at: {', '.join(without)}"
            )
        return self

    def assert_nontrivial_match(self) -> "LoadStatus":
        """Check that at least one variable received a value.

        Raises:
            AssertionError: No variable received one, or no checkpoint was read.
        """
        if not self._required_restoration().given:
            raise AssertionError("Nothing to restore: the checkpoint has no value for any of the variables.")
        return self

    def expect_partial(self) -> "LoadStatus":
        """Return this object: unused values cause no warning here."""
        return self

    def initialize_or_restore(self, session: Any = None) -> None:
        """Do nothing: eager variables receive their values in ``restore``."""

    def run_restore_ops(self, session: Any = None) -> None:
        """Do nothing: eager variables receive their values in ``restore``."""

    def _required_restoration(self) -> Restoration:
        if self._restoration is None:
            raise AssertionError("No checkpoint specified (save_path=None); nothing is being restored.")
        return self._restoration


def tensor_name(key: str) -> str:
    """Return the name of a variable's value in the file."""
    return key + _VALUE


def _read_value(reader: CheckpointReader, name: str, variable: Any) -> Any:
    """Read the value of a variable from a checkpoint and check its shape and type.

    Raises:
        ValueError: The variable has another shape.
        InvalidArgumentError: The variable has another type.
    """
    dtype, shape = reader.get_variable_to_dtype_map()[name], reader.get_variable_to_shape_map()[name]
    if dtype is not variable.dtype:
        raise InvalidArgumentError(
            None,
            None,
            f"tensor_name = {name}; expected dtype {variable.dtype.name} does not equal original dtype {dtype.name}",
        )
    if not variable.shape.is_compatible_with(shape):
        raise ValueError(
            f"Received incompatible tensor with shape {tuple(shape)} when attempting to restore variable with shape "
            f"{variable.shape} and name {variable.name}."
        )
    return reader.get_tensor(name)


def _reference(part: Any) -> Callable[[], Any]:
    """Return a weak reference to an object, or a strong one if its type does not support weak references."""
    try:
        return weakref.ref(part)
    except TypeError:
        return lambda: part


__all__ = ["LoadStatus", "Restoration", "tensor_name"]

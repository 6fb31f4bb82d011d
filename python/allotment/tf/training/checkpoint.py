"""``tf.train.Checkpoint``: saves and restores variables by their attribute paths in an object.

An object with variables yields its parts in ``_checkpoint_parts``: pairs of a name and a variable, an object of this
kind, a list, tuple or dictionary of them, or a ``Number``.
"""

import os
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from allotment.devices.placement import thread
from allotment.errors import InvalidArgumentError, NotFoundError
from allotment.tf.ops.array.constants import constant
from allotment.tf.tensors.dtype import int64
from allotment.tf.training import checkpoint_file
from allotment.tf.training.checkpoint_file import Array, CheckpointReader
from allotment.tf.training.checkpoint_state import update_checkpoint_state
from allotment.tf.training.checkpoint_values import Number, values_of
from allotment.tf.training.slots import outside_of_strategies
from allotment.tf.variables import restoring
from allotment.tf.variables.variable import Variable

#: Suffix of a variable's key in the file, as in TensorFlow's files.
_VALUE = "/.ATTRIBUTES/VARIABLE_VALUE"


class Checkpoint:
    """Saves and restores the variables of objects. As ``tf.train.Checkpoint``, with a file format of this package.

    Args:
        root: An object whose parts are saved as parts of the checkpoint.
        **kwargs: Variables, modules, layers, models, optimizers, and lists and dictionaries of them, by name.

    Raises:
        ValueError: An argument cannot hold variables.

    Example::

        checkpoint = tf.train.Checkpoint(model=model, optimizer=optimizer)
        path = checkpoint.save("folder/ckpt")
        checkpoint.restore(path).assert_consumed()
    """

    def __init__(self, root: Any = None, **kwargs: Any) -> None:
        #: The named parts; ``__setattr__`` adds to them.
        self._parts: dict[str, Any] = {}
        if root is not None:
            if isinstance(root, list | tuple | Mapping):
                raise _not_trackable("root", root)
            _check("root", root)
        self._root = root
        self._counter: Any = None
        for name, value in sorted(kwargs.items()):
            if name == "save_counter":
                raise AttributeError("property 'save_counter' of 'Checkpoint' object has no setter")
            _check(name, value)
            setattr(self, name, value)

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Return the part that the program named ``name``."""

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if not name.startswith("_"):
            self._parts[name] = value
            if restoring.pending:
                restoring.restore_pending()

    @property
    def save_counter(self) -> Any:
        """The int64 variable that counts the calls of ``save``."""
        if self._counter is None:
            with outside_of_strategies():
                self._counter = Variable(constant(0, int64), trainable=False, name="save_counter")
        return self._counter

    def _checkpoint_parts(self) -> Iterator[tuple[str, Any]]:
        yield from self._parts.items()
        yield "save_counter", self.save_counter
        if isinstance(self._root, Variable):
            yield "", self._root
        elif self._root is not None:
            yield from self._root._checkpoint_parts()

    def write(self, file_prefix: str, options: Any = None) -> str:  # noqa: ARG002 - TensorFlow's signature
        """Write a checkpoint to ``file_prefix``, without a number or an entry in the folder's state.

        Args:
            file_prefix: The path without suffix; missing folders are created.
            options: Has no effect.

        Returns:
            The prefix, for ``read``.

        Raises:
            NotImplementedError: A graph is being built.
            OSError: The file cannot be written.
        """
        prefix = _prefix(file_prefix)
        values: dict[str, Array] = {}
        for key, variable in values_of(self):
            values[_tensor_name(key)] = np.asarray(variable.numpy())
        folder = os.path.dirname(prefix)
        if folder:
            os.makedirs(folder, exist_ok=True)
        checkpoint_file.write(prefix, values)
        return prefix

    def save(self, file_prefix: str, options: Any = None) -> str:
        """Write a checkpoint with the next number in its name, and record it as the latest of its folder.

        Args:
            file_prefix: The path without number and suffix, such as ``"folder/ckpt"``; missing folders are created.
            options: Has no effect.

        Returns:
            The prefix with the number, such as ``"folder/ckpt-1"``, for ``restore``.

        Raises:
            NotImplementedError: A graph is being built.
            OSError: The file cannot be written.
        """
        prefix = _prefix(file_prefix)
        self.save_counter.assign_add(1)
        path = self.write(f"{prefix}-{int(self.save_counter.numpy())}", options)
        update_checkpoint_state(os.path.dirname(path) or ".", path)
        return path

    def read(self, save_path: str | None, options: Any = None) -> "LoadStatus":  # noqa: ARG002 - TensorFlow's signature
        """Restore the variables from a checkpoint; variables that do not exist yet get their values when created.

        Args:
            save_path: The prefix that ``write`` or ``save`` returned; ``None`` reads nothing.
            options: Has no effect.

        Returns:
            A status object with checks such as ``assert_consumed()``.

        Raises:
            NotFoundError: The checkpoint does not exist.
            DataLossError: The file is damaged or not a checkpoint of this package.
            ValueError: A variable has another shape than its value. No variable is changed.
            InvalidArgumentError: A variable has another type than its value. No variable is changed.
            NotImplementedError: A graph is being built.
        """
        if save_path is None:
            return LoadStatus(self, None)
        prefix = _prefix(save_path)
        try:
            reader = CheckpointReader(prefix)
        except NotFoundError as error:
            error.__traceback__ = None
            missing = str(error)
        else:
            return LoadStatus(self, _Restoration(self, reader))
        raise NotFoundError(
            None,
            None,
            f"Error when restoring from checkpoint at {prefix}: {missing}\nPlease double-check that the path is "
            "correct. You may be missing the checkpoint suffix (e.g. the '-1' in 'path/to/ckpt-1').",
        )

    def restore(self, save_path: str | None, options: Any = None) -> "LoadStatus":
        """Restore the variables from a checkpoint of ``save``; see ``read``."""
        return self.read(save_path, options)


class _Restoration:
    """The restoration of one checkpoint: its values, and the objects whose variables receive them."""

    def __init__(self, owner: Checkpoint, reader: CheckpointReader) -> None:
        self._reader = reader
        shapes = reader.get_variable_to_shape_map()
        self.left = {name for name in shapes if name.endswith(_VALUE)}
        #: The keys of the variables that received a value.
        self.given: set[str] = set()
        # Weak references: an object that the program has dropped needs no values.
        self._owner = weakref.ref(owner)
        self._kept = {name: _reference(part) for name, part in owner._parts.items()}
        self._root = _reference(owner._root)
        for each in tuple(restoring.pending):
            if isinstance(each, _Restoration) and each._shares(self):
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

    def _shares(self, other: "_Restoration") -> bool:
        """Whether another restoration has an object in common, and so replaces this one."""
        mine, others = ({id(part) for _, part in each._parts() if part is not None} for each in (self, other))
        return bool(mine & others)

    def retry(self) -> bool:
        """Assign the values whose variables exist now; return whether values are left for live objects."""
        parts = [*self._parts()]
        found = []
        for key, variable in values_of(_Parts(parts)):
            if _tensor_name(key) in self.left:
                found.append((key, variable, _read_value(self._reader, _tensor_name(key), variable)))
        for key, variable, value in found:
            variable.assign(value)
            self.left.discard(_tensor_name(key))
            self.given.add(key)
        return bool(self.left and parts)


class _Parts(NamedTuple):
    """Stands in for an object with the given parts."""

    parts: list[tuple[str, Any]]

    def _checkpoint_parts(self) -> Iterable[tuple[str, Any]]:
        return self.parts


class LoadStatus:
    """The status of a restoration, with checks for missing values. As the result of ``tf.train.Checkpoint.restore``."""

    def __init__(self, owner: Checkpoint, restoration: _Restoration | None) -> None:
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

    def _required_restoration(self) -> _Restoration:
        if self._restoration is None:
            raise AssertionError("No checkpoint specified (save_path=None); nothing is being restored.")
        return self._restoration


def _tensor_name(key: str) -> str:
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


def _prefix(file_prefix: Any) -> str:
    if thread.state.graph is not None:
        raise NotImplementedError(
            "tf.train.Checkpoint is for eager programs: in graphs use tf.compat.v1.train.Saver with a session"
        )
    return os.fspath(file_prefix) if isinstance(file_prefix, str | os.PathLike) else str(file_prefix)


def _check(name: str, value: Any) -> None:
    """Check that a value is a variable, a container or an object with variables.

    Raises:
        ValueError: The value is none of these.
    """
    inside = value.values() if isinstance(value, Mapping) else value
    if isinstance(value, list | tuple | Mapping):
        for each in inside:
            _check(name, each)
    elif not (isinstance(value, Variable) or hasattr(type(value), "_checkpoint_parts")):
        raise _not_trackable(name, value)


def _not_trackable(name: str, value: Any) -> ValueError:
    return ValueError(
        f"`Checkpoint` was expecting {name} to be a trackable object (an object derived from `Trackable`), got "
        f"{value}. It takes variables, modules, layers, models, optimizers, and lists and dictionaries of them."
    )


__all__ = ["Checkpoint", "LoadStatus", "Number"]

"""``Checkpoint``: the variables of objects, written and read by where they are among the attributes.

An object that holds variables says which parts it has in ``_checkpoint_parts``: names, and variables, objects of that
kind, lists, tuples, dictionaries, or a ``Number``.
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

#: Behind the place of a variable in its key, as in TensorFlow's files.
_VALUE = "/.ATTRIBUTES/VARIABLE_VALUE"


class Checkpoint:
    """Objects whose variables are written and read together. As ``tf.train.Checkpoint``; the files are this package's.

    Args:
        root: An object, the parts of which are this object's.
        **kwargs: Variables, modules, layers, models, optimizers, and lists and dictionaries of them, by name.

    Raises:
        ValueError: Something that holds no variables.
    """

    def __init__(self, root: Any = None, **kwargs: Any) -> None:
        #: What is not entered yet: ``__setattr__`` looks at it.
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
            """Objects by the names that the program gave them."""

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if not name.startswith("_"):
            self._parts[name] = value
            if restoring.waiting:
                restoring.variables_made()

    @property
    def save_counter(self) -> Any:
        """A variable: how often ``save`` was called."""
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
        """Write a checkpoint. Returns its prefix, for ``read``.

        Raises:
            NotImplementedError: A graph is the default.
            OSError: It cannot be written.
        """
        prefix = _prefix(file_prefix)
        values: dict[str, Array] = {}
        for key, variable in values_of(self):
            values[_place(key)] = np.asarray(variable.numpy())
        folder = os.path.dirname(prefix)
        if folder:
            os.makedirs(folder, exist_ok=True)
        checkpoint_file.write(prefix, values)
        return prefix

    def save(self, file_prefix: str, options: Any = None) -> str:
        """Write a checkpoint with the next number behind its prefix, and note it as the latest of its folder.

        Returns:
            The prefix with the number, for ``restore``.

        Raises:
            NotImplementedError: A graph is the default.
            OSError: It cannot be written.
        """
        prefix = _prefix(file_prefix)
        self.save_counter.assign_add(1)
        path = self.write(f"{prefix}-{int(self.save_counter.numpy())}", options)
        update_checkpoint_state(os.path.dirname(path) or ".", path)
        return path

    def read(self, save_path: str | None, options: Any = None) -> "LoadStatus":  # noqa: ARG002 - TensorFlow's signature
        """Read a checkpoint: variables get their values now, those that are not made yet when they are.

        Returns:
            What can be asked about it, as ``assert_consumed()``.

        Raises:
            NotFoundError: There is none.
            DataLossError: The file is damaged, or no checkpoint of this package.
            ValueError: A variable has another shape. None changes then.
            InvalidArgumentError: A variable has another type. None changes then.
            NotImplementedError: A graph is the default.
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
        """Read a checkpoint of ``save``; see ``read``. ``None`` reads nothing."""
        return self.read(save_path, options)


class _Restoration:
    """The values of one checkpoint on their way to the variables of objects."""

    def __init__(self, owner: Checkpoint, reader: CheckpointReader) -> None:
        self._reader = reader
        shapes = reader.get_variable_to_shape_map()
        self.left = {name for name in shapes if name.endswith(_VALUE)}
        #: The keys of those that got a value.
        self.given: set[str] = set()
        # An object that a program has given up waits for no values.
        self._owner = weakref.ref(owner)
        self._kept = {name: _reference(part) for name, part in owner._parts.items()}
        self._root = _reference(owner._root)
        for each in tuple(restoring.waiting):
            if isinstance(each, _Restoration) and each._shares(self):
                restoring.waiting.remove(each)
        if self.retry():
            restoring.waiting.append(self)

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
        """Whether another one is for the same objects, so that this one is over."""
        mine, others = ({id(part) for _, part in each._parts() if part is not None} for each in (self, other))
        return bool(mine & others)

    def retry(self) -> bool:
        """Give values to variables that have none from here; returns whether values are left for some object."""
        parts = [*self._parts()]
        found = []
        for key, variable in values_of(_Parts(parts)):
            if _place(key) in self.left:
                found.append((key, variable, _fitting(self._reader, _place(key), variable)))
        for key, variable, value in found:
            variable.assign(value)
            self.left.discard(_place(key))
            self.given.add(key)
        return bool(self.left and parts)


class _Parts(NamedTuple):
    """Parts of an object that may be gone."""

    parts: list[tuple[str, Any]]

    def _checkpoint_parts(self) -> Iterable[tuple[str, Any]]:
        return self.parts


class LoadStatus:
    """What became of the values of a checkpoint. As what ``tf.train.Checkpoint.restore`` returns."""

    def __init__(self, owner: Checkpoint, restoration: _Restoration | None) -> None:
        self._owner, self._restoration = owner, restoration

    def assert_consumed(self) -> "LoadStatus":
        """Check that all values were used, and that all variables got one.

        Raises:
            AssertionError: Not so, or nothing was read.
        """
        restoration = self._made()
        if restoration.left:
            names = ", ".join(sorted(each.removesuffix(_VALUE) for each in restoration.left))
            raise AssertionError(f"Unresolved object in checkpoint: no variable is at {names}")
        return self.assert_existing_objects_matched()

    def assert_existing_objects_matched(self) -> "LoadStatus":
        """Check that all variables that there are got a value.

        Raises:
            AssertionError: Not so, or nothing was read.
        """
        restoration = self._made()
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
        """Check that a variable got a value.

        Raises:
            AssertionError: Not so, or nothing was read.
        """
        if not self._made().given:
            raise AssertionError("Nothing to restore: no variable is at a place that the checkpoint has.")
        return self

    def expect_partial(self) -> "LoadStatus":
        """Return this: values that nothing waits for are no fault."""
        return self

    def initialize_or_restore(self, session: Any = None) -> None:
        """Do nothing: values were given when they were read."""

    def run_restore_ops(self, session: Any = None) -> None:
        """Do nothing: values were given when they were read."""

    def _made(self) -> _Restoration:
        if self._restoration is None:
            raise AssertionError("No checkpoint specified (save_path=None); nothing is being restored.")
        return self._restoration


def _place(key: str) -> str:
    """The name of a value in the file."""
    return key + _VALUE


def _fitting(reader: CheckpointReader, name: str, variable: Any) -> Any:
    """The value of a variable.

    Raises:
        ValueError: The variable has another shape.
        InvalidArgumentError: It has another type.
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
    """What returns an object as long as the program has it; those that cannot be watched are kept."""
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
    """Check that a value holds variables, or may.

    Raises:
        ValueError: It cannot.
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

"""``tf.train.Checkpoint``: saves and restores variables by their attribute paths in an object.

An object with variables yields its parts in ``_checkpoint_parts``: pairs of a name and a variable, an object of this
kind, a list, tuple or dictionary of them, or a ``Number``.
"""

import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from allotment.errors import NotFoundError
from allotment.tf.dispatch import thread
from allotment.tf.ops.array.constants import constant
from allotment.tf.ops.name_scopes import name_scope
from allotment.tf.tensors.dtype import int64
from allotment.tf.training import checkpoint_file
from allotment.tf.training.checkpoint_file import Array, CheckpointReader
from allotment.tf.training.checkpoint_state import update_checkpoint_state
from allotment.tf.training.checkpoint_values import Number, values_of
from allotment.tf.training.restoration import LoadStatus, Restoration, tensor_name
from allotment.tf.training.slots import outside_of_strategies
from allotment.tf.variables import restoring
from allotment.tf.variables.variable import Variable


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
            with outside_of_strategies(), name_scope(""):
                self._counter = Variable(constant(0, int64), trainable=False, name="save_counter")
        return self._counter

    def _checkpoint_parts(self) -> Iterator[tuple[str, Any]]:
        # A copy, made in one step: threads may add parts while this goes on.
        yield from self._parts.copy().items()
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
            values[tensor_name(key)] = np.asarray(variable.numpy())
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
            return LoadStatus(self, Restoration(self, reader))
        raise NotFoundError(
            None,
            None,
            f"Error when restoring from checkpoint at {prefix}: {missing}\nPlease double-check that the path is "
            "correct. You may be missing the checkpoint suffix (e.g. the '-1' in 'path/to/ckpt-1').",
        )

    def restore(self, save_path: str | None, options: Any = None) -> "LoadStatus":
        """Restore the variables from a checkpoint of ``save``; see ``read``."""
        return self.read(save_path, options)


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

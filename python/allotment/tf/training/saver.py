"""``tf.compat.v1.train.Saver``: saves and restores variables by name."""

import os
import time
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from allotment.errors import NotFoundError
from allotment.tf.dispatch import thread
from allotment.tf.graph.collections import GraphKeys
from allotment.tf.graph.default import get_default_graph
from allotment.tf.graph.variables.graph_variable import GraphVariable
from allotment.tf.training import checkpoint_file
from allotment.tf.training.checkpoint_state import update_checkpoint_state
from allotment.tf.training.saver_variables import (
    assign_in_session,
    mismatch_error,
    names_to_variables,
    step_number,
)

_HOUR = 3600.0


class Saver:
    """Saves and restores variables by name. As ``tf.compat.v1.train.Saver``, with a file format of this package.

    Args:
        var_list: Variables, or a dictionary from names in the file to variables; by default all of the default graph.
        reshape: Whether a saved value may have another shape with the same number of elements.
        sharded: Has no effect.
        max_to_keep: Number of checkpoints to keep; ``None`` or 0 for all.
        keep_checkpoint_every_n_hours: Keep one more checkpoint for each interval of this many hours.
        name: Has no effect.
        restore_sequentially: Has no effect.
        saver_def: Not supported.
        builder: Not supported.
        defer_build: Whether to look up the variables at the first use of the saver.
        allow_empty: Whether there may be no variables.
        write_version: Has no effect.
        pad_step_number: Whether to pad the step in file names to eight digits.
        save_relative_paths: Has no effect: paths in a relative folder are always relative to it.
        filename: Not supported.

    Raises:
        ValueError: There are no variables, or two have the same name.
        RuntimeError: ``var_list`` is missing in eager mode.
        TypeError: An element of ``var_list`` is not a variable.
        NotImplementedError: An argument that is not supported is given.
    """

    def __init__(
        self,
        var_list: Any = None,
        reshape: bool = False,
        sharded: bool = False,  # noqa: ARG002 - TensorFlow's signature
        max_to_keep: int | None = 5,
        keep_checkpoint_every_n_hours: float = 10000.0,
        name: str | None = None,  # noqa: ARG002 - TensorFlow's signature
        restore_sequentially: bool = False,  # noqa: ARG002 - TensorFlow's signature
        saver_def: Any = None,
        builder: Any = None,
        defer_build: bool = False,
        allow_empty: bool = False,
        write_version: Any = None,  # noqa: ARG002 - TensorFlow's signature
        pad_step_number: bool = False,
        save_relative_paths: bool = False,  # noqa: ARG002 - TensorFlow's signature
        filename: str | None = None,
    ) -> None:
        for argument, value in (("saver_def", saver_def), ("builder", builder), ("filename", filename)):
            if value is not None:
                raise NotImplementedError(f"Saver: `{argument}` is not offered, leave it out")
        if defer_build and var_list is not None:
            raise ValueError(
                "If `var_list` is provided then build cannot be deferred. Either set defer_build=False or "
                "var_list=None."
            )
        self._given, self._reshape, self._allow_empty = var_list, reshape, allow_empty
        self._max_to_keep = max_to_keep or 0
        self._every = keep_checkpoint_every_n_hours * _HOUR
        self._next_kept = time.time() + self._every
        self._pad = pad_step_number
        #: Prefixes and times (seconds since the epoch) of the kept checkpoints, the oldest first.
        self._last: list[tuple[str, float]] = []
        self._variables: dict[str, Any] | None = None
        if not defer_build:
            self.build()

    def build(self) -> None:
        """Look up the variables to save, unless that is done already."""
        if self._variables is not None:
            return
        if thread.state.graph is None and self._given is None and not _all_variables():
            raise RuntimeError(
                "When eager execution is enabled, `var_list` must specify a list or dict of variables to save"
            )
        given = _all_variables() if self._given is None else self._given
        if not given and not self._allow_empty:
            raise ValueError("No variables to save")
        self._variables = names_to_variables(given)

    @property
    def last_checkpoints(self) -> list[str]:
        """The prefixes of the kept checkpoints, the oldest first."""
        return [prefix for prefix, _ in self._last]

    def set_last_checkpoints(self, last_checkpoints: Sequence[str]) -> None:
        """Set the list of kept checkpoints by their prefixes, the oldest first, without times."""
        self._last = [(prefix, np.inf) for prefix in last_checkpoints]

    def set_last_checkpoints_with_time(self, last_checkpoints_with_time: Iterable[tuple[str, float]]) -> None:
        """Set the list of kept checkpoints: pairs of a prefix and a time in seconds since the epoch."""
        self._last = [*last_checkpoints_with_time]

    def recover_last_checkpoints(self, checkpoint_paths: Sequence[str]) -> None:
        """Set the list of kept checkpoints to those of the given prefixes that exist, with their files' times."""
        files = [(prefix, prefix + checkpoint_file.SUFFIX) for prefix in checkpoint_paths]
        self._last = [(prefix, os.path.getmtime(file)) for prefix, file in files if os.path.exists(file)]

    def save(
        self,
        sess: Any,
        save_path: str,
        global_step: Any = None,
        latest_filename: str | None = None,
        meta_graph_suffix: str = "meta",  # noqa: ARG002 - no graph is written
        write_meta_graph: bool = True,  # noqa: ARG002 - no graph is written
        write_state: bool = True,
        strip_default_attrs: bool = False,  # noqa: ARG002 - no graph is written
        save_debug_info: bool = False,  # noqa: ARG002 - no graph is written
    ) -> str:
        """Write a checkpoint with the variables' values in a session.

        Args:
            sess: The session; ignored for eager variables.
            save_path: The prefix of the checkpoint; a missing folder is created.
            global_step: A number to append to the prefix, or a variable or tensor that holds it.
            latest_filename: The name of the file that lists the folder's checkpoints; ``checkpoint`` by default.
            meta_graph_suffix: Has no effect.
            write_meta_graph: Has no effect: graphs are not written.
            write_state: Whether to write the list of checkpoints.
            strip_default_attrs: Has no effect.
            save_debug_info: Has no effect.

        Returns:
            The prefix with the number, for ``restore``.

        Raises:
            TypeError: ``sess`` is not a session, or ``save_path`` is not a path.
            ValueError: The path does not end with a file name.
            OSError: The file cannot be written.
            FailedPreconditionError: A variable is not initialized.
        """
        variables = self._variables_by_name()
        save_path = _path(save_path)
        in_graph = any(isinstance(each, GraphVariable) for each in variables.values())
        if in_graph and not hasattr(sess, "run"):
            raise TypeError(f"'sess' must be a Session; {sess}")
        folder, name = os.path.split(save_path)
        if not name:
            raise ValueError(f"save_path must end with the name of a file, not {save_path!r}")
        if global_step is not None:
            step = step_number(global_step, sess)
            save_path = f"{save_path}-{step:08d}" if self._pad else f"{save_path}-{step}"
        if in_graph:
            values = sess.run({name: each._as_graph_element() for name, each in variables.items()})
        else:
            values = {name: each.numpy() for name, each in variables.items()}
        os.makedirs(folder or ".", exist_ok=True)
        checkpoint_file.write(save_path, {name: np.asarray(value) for name, value in values.items()})
        if write_state:
            self._keep(save_path)
            update_checkpoint_state(folder or ".", save_path, self.last_checkpoints, latest_filename)
        return save_path

    def restore(self, sess: Any, save_path: str | None) -> None:
        """Assign the values of a checkpoint to the variables. If one value does not match, no variable changes.

        Args:
            sess: The session; ignored for eager variables.
            save_path: The prefix that ``save`` or ``tf.train.latest_checkpoint`` returned.

        Raises:
            ValueError: ``save_path`` is ``None``, or the checkpoint does not exist.
            NotFoundError: The checkpoint has no value for a variable.
            InvalidArgumentError: A value has another shape or type than its variable.
            DataLossError: The file is damaged or not a checkpoint of this package.
        """
        if save_path is None:
            raise ValueError("Can't load save_path when it is None.")
        variables, save_path = self._variables_by_name(), _path(save_path)
        if not checkpoint_file.exists(save_path):
            own = " TensorFlow's own files are not read." if os.path.exists(f"{save_path}.index") else ""
            raise ValueError(f"The passed save_path is not a valid checkpoint: {save_path}.{own}")
        reader = checkpoint_file.CheckpointReader(save_path)
        values = {name: self._value(reader, name, each) for name, each in variables.items()}
        feeds = [(variable, values[name]) for name, variable in variables.items()]
        for variable, value in feeds:
            if not isinstance(variable, GraphVariable):
                variable.assign(value)
        assign_in_session([each for each in feeds if isinstance(each[0], GraphVariable)], sess)

    def _value(self, reader: checkpoint_file.CheckpointReader, name: str, variable: Any) -> Any:
        if not reader.has_tensor(name):
            there = ", ".join(sorted(reader.get_variable_to_shape_map())[:20])
            raise NotFoundError(
                None,
                None,
                "Restoring from checkpoint failed. This is most likely due to a Variable name or other graph key that "
                f"is missing from the checkpoint: Key {name} not found in checkpoint. There are: {there}",
            )
        dtype = reader.get_variable_to_dtype_map()[name]
        shape = reader.get_variable_to_shape_map()[name]
        if dtype is not variable.dtype:
            raise mismatch_error(
                f"tensor_name = {name}; expected dtype {variable.dtype.name} does not equal original dtype {dtype.name}"
            )
        wanted = variable.shape
        same_size = wanted.is_fully_defined() and wanted.num_elements() == int(np.prod(shape))
        if not (wanted.is_compatible_with(shape) or (self._reshape and same_size)):
            raise mismatch_error(
                f"tensor_name = {name}; shape in shape_and_slice spec {wanted} does not match the shape stored in "
                f"checkpoint: {shape}"
            )
        value = reader.get_tensor(name)
        return value if wanted.is_compatible_with(shape) else np.reshape(value, wanted.as_list())

    def _variables_by_name(self) -> dict[str, Any]:
        self.build()
        assert self._variables is not None
        return self._variables

    def _keep(self, prefix: str) -> None:
        """Add a checkpoint to the kept ones, and remove the oldest ones beyond ``max_to_keep``."""
        self._last = [each for each in self._last if each[0] != prefix]
        self._last.append((prefix, time.time()))
        while self._max_to_keep and len(self._last) > self._max_to_keep:
            oldest, written = self._last.pop(0)
            if written > self._next_kept:
                self._next_kept += self._every
            else:
                checkpoint_file.remove(oldest)


def _all_variables() -> list[Any]:
    return get_default_graph().get_collection(GraphKeys.GLOBAL_VARIABLES)


def _path(save_path: Any) -> str:
    if not isinstance(save_path, str | os.PathLike):
        raise TypeError(f"Expected binary or unicode string, got {save_path!r}")
    return os.fspath(save_path)


__all__ = ["Saver"]

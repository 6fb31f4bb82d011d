"""Reads and writes a folder's file ``checkpoint``, which lists the folder's checkpoints."""

import json
import logging
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from allotment.tf.training import checkpoint_file
from allotment.tf.training.checkpoint_file import CheckpointReader

_logger: Final = logging.getLogger("tensorflow")
_FILE: Final = "checkpoint"


@dataclass
class CheckpointState:
    """The list of a folder's checkpoints. As the message that ``tf.train.get_checkpoint_state`` returns."""

    #: The prefix of the latest checkpoint.
    model_checkpoint_path: str = ""
    #: The prefixes of all checkpoints, the oldest first.
    all_model_checkpoint_paths: list[str] = field(default_factory=list)


def update_checkpoint_state(
    save_dir: str,
    model_checkpoint_path: str,
    all_model_checkpoint_paths: Iterable[str] | None = None,
    latest_filename: str | None = None,
    all_model_checkpoint_timestamps: Any = None,  # noqa: ARG001 - TensorFlow's signature
    last_preserved_timestamp: Any = None,  # noqa: ARG001 - TensorFlow's signature
) -> None:
    """Write the list of a folder's checkpoints. As ``tf.compat.v1.train.update_checkpoint_state``.

    Args:
        save_dir: The folder.
        model_checkpoint_path: The prefix of the latest checkpoint.
        all_model_checkpoint_paths: The prefixes of all checkpoints, the latest last.
        latest_filename: The name of the list's file; ``checkpoint`` by default.
        all_model_checkpoint_timestamps: Has no effect.
        last_preserved_timestamp: Has no effect.
    """
    paths = [*(all_model_checkpoint_paths or ())]
    if not paths or paths[-1] != model_checkpoint_path:
        paths.append(model_checkpoint_path)
    # Paths relative to the folder, so that a folder given by a relative path may be moved.
    if not os.path.isabs(save_dir):
        paths = [each if os.path.isabs(each) else os.path.relpath(each, save_dir) for each in paths]
    lines = [f"model_checkpoint_path: {json.dumps(paths[-1])}\n"]
    lines += [f"all_model_checkpoint_paths: {json.dumps(each)}\n" for each in paths]
    checkpoint_file.write_text(os.path.join(save_dir, latest_filename or _FILE), "".join(lines))


def get_checkpoint_state(checkpoint_dir: str, latest_filename: str | None = None) -> CheckpointState | None:
    """Read the list of a folder's checkpoints; ``None`` without a valid one. As ``tf.train.get_checkpoint_state``."""
    path = os.path.join(checkpoint_dir, latest_filename or _FILE)
    state = CheckpointState()
    try:
        with open(path, encoding="utf-8") as file:
            for line in filter(None, map(str.strip, file)):
                key, _, text = line.partition(":")
                prefix = os.path.join(checkpoint_dir, json.loads(text))
                if key == "model_checkpoint_path":
                    state.model_checkpoint_path = prefix
                elif key == "all_model_checkpoint_paths":
                    state.all_model_checkpoint_paths.append(prefix)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError) as error:
        _logger.warning("%s: %s\n%s: Checkpoint ignored", type(error).__name__, error, path)
        return None
    return state


def latest_checkpoint(checkpoint_dir: str, latest_filename: str | None = None) -> str | None:
    """Return the prefix of a folder's latest checkpoint; ``None`` without one. As ``tf.train.latest_checkpoint``."""
    state = get_checkpoint_state(os.fspath(checkpoint_dir), latest_filename)
    if state is None or not state.model_checkpoint_path:
        return None
    if checkpoint_file.exists(state.model_checkpoint_path):
        return state.model_checkpoint_path
    _logger.error("Couldn't match files for checkpoint %s", state.model_checkpoint_path)
    return None


def checkpoint_exists(checkpoint_prefix: str) -> bool:
    """Whether the checkpoint with a prefix exists. As ``tf.compat.v1.train.checkpoint_exists``."""
    return checkpoint_file.exists(os.fspath(checkpoint_prefix))


def remove_checkpoint(checkpoint_prefix: str, *_: Any) -> None:
    """Remove the checkpoint with a prefix if it exists. As ``tf.compat.v1.train.remove_checkpoint``."""
    checkpoint_file.remove(os.fspath(checkpoint_prefix))


def load_checkpoint(ckpt_dir_or_file: str) -> CheckpointReader:
    """Open a checkpoint, given by its prefix or its folder, for reading. As ``tf.train.load_checkpoint``.

    Raises:
        NotFoundError: The checkpoint does not exist.
        DataLossError: The file is damaged or not a checkpoint of this package.
    """
    given = os.fspath(ckpt_dir_or_file)
    prefix = (latest_checkpoint(given) or given) if os.path.isdir(given) else given
    return CheckpointReader(prefix.removesuffix(checkpoint_file.SUFFIX))


def list_variables(ckpt_dir_or_file: str) -> list[tuple[str, list[int]]]:
    """Return the names and shapes of a checkpoint's tensors, ordered by name. As ``tf.train.list_variables``."""
    return sorted(load_checkpoint(ckpt_dir_or_file).get_variable_to_shape_map().items())


def load_variable(ckpt_dir_or_file: str, name: str) -> Any:
    """Return one tensor of a checkpoint as a NumPy array. As ``tf.train.load_variable``.

    Raises:
        NotFoundError: The checkpoint or the tensor does not exist.
    """
    return load_checkpoint(ckpt_dir_or_file).get_tensor(name.removesuffix(":0"))


__all__ = [
    "CheckpointState",
    "checkpoint_exists",
    "get_checkpoint_state",
    "latest_checkpoint",
    "list_variables",
    "load_checkpoint",
    "load_variable",
    "remove_checkpoint",
    "update_checkpoint_state",
]

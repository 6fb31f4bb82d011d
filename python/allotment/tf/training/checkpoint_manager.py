"""``tf.train.CheckpointManager``: keeps a number of latest checkpoints in a folder."""

import os
import time
from collections.abc import Callable
from typing import Any

from allotment.tf.training import checkpoint_file
from allotment.tf.training.checkpoint_state import get_checkpoint_state, update_checkpoint_state

_HOUR = 3600.0


class CheckpointManager:
    """Writes checkpoints to a folder and removes the oldest ones. As ``tf.train.CheckpointManager``.

    Args:
        checkpoint: The ``Checkpoint`` to write.
        directory: The folder; the manager takes over the checkpoints that it contains.
        max_to_keep: Number of checkpoints to keep; ``None`` for all.
        keep_checkpoint_every_n_hours: Keep one more checkpoint for each interval of this many hours.
        checkpoint_name: Prefix of the files' names.
        step_counter: A variable or number with the program's current step.
        checkpoint_interval: Least number of steps between two checkpoints.
        init_fn: Called by ``restore_or_initialize`` if there is no checkpoint.

    Raises:
        ValueError: ``max_to_keep`` is not positive, or there is an interval without a step counter.
    """

    def __init__(
        self,
        checkpoint: Any,
        directory: str,
        max_to_keep: int | None,
        keep_checkpoint_every_n_hours: float | None = None,
        checkpoint_name: str = "ckpt",
        step_counter: Any = None,
        checkpoint_interval: int | None = None,
        init_fn: Callable[[], Any] | None = None,
    ) -> None:
        if max_to_keep is not None and max_to_keep <= 0:
            raise ValueError(f"Expected a positive integer or `None` for `max_to_keep`, got {max_to_keep}.")
        if checkpoint_interval is not None and step_counter is None:
            raise ValueError("`step_counter` should be passed if `checkpoint_interval` is not None.")
        self._checkpoint, self._directory = checkpoint, os.fspath(directory)
        self._max_to_keep, self._name = max_to_keep, checkpoint_name
        self._every = None if keep_checkpoint_every_n_hours is None else keep_checkpoint_every_n_hours * _HOUR
        self._kept_at = time.time()
        self._counter, self._interval, self._init = step_counter, checkpoint_interval, init_fn
        self._last_step: int | None = None
        state = get_checkpoint_state(self._directory)
        known = [] if state is None else state.all_model_checkpoint_paths
        #: Prefixes of the checkpoints, the oldest first.
        self._prefixes = [each for each in known if checkpoint_file.exists(each)]

    @property
    def directory(self) -> str:
        """The folder of the checkpoints."""
        return self._directory

    @property
    def checkpoint(self) -> Any:
        """The ``Checkpoint`` that the manager writes."""
        return self._checkpoint

    @property
    def checkpoint_interval(self) -> int | None:
        """Least number of steps between two checkpoints; ``None`` without an interval."""
        return self._interval

    @property
    def latest_checkpoint(self) -> str | None:
        """The prefix of the latest checkpoint; ``None`` without one."""
        return self._prefixes[-1] if self._prefixes else None

    @property
    def checkpoints(self) -> list[str]:
        """The prefixes of the kept checkpoints, the oldest first."""
        return list(self._prefixes)

    def save(
        self, checkpoint_number: Any = None, check_interval: bool = True, options: Any = None
    ) -> str | None:
        """Write a checkpoint, and remove the oldest ones beyond ``max_to_keep``.

        Args:
            checkpoint_number: The number in the file's name; the count of saves by default.
            check_interval: Whether to write nothing before ``checkpoint_interval`` steps have passed.
            options: Has no effect.

        Returns:
            The checkpoint's prefix; ``None`` if too few steps have passed.

        Raises:
            OSError: The file cannot be written.
        """
        if self._interval is not None and check_interval:
            step = int(self._counter)
            if self._last_step is not None and step - self._last_step < self._interval:
                return None
            self._last_step = step
        os.makedirs(self._directory, exist_ok=True)
        prefix = os.path.join(self._directory, self._name)
        count = self._checkpoint.save_counter.assign_add(1)
        number = int(count.numpy() if checkpoint_number is None else checkpoint_number)
        path: str = self._checkpoint.write(f"{prefix}-{number}", options)
        self._add_checkpoint(path)
        return path

    def _add_checkpoint(self, path: str) -> None:
        """Add a checkpoint to the list, and delete the oldest ones above the number to keep."""
        self._prefixes = [each for each in self._prefixes if each != path]
        self._prefixes.append(path)
        removed = []
        while self._max_to_keep is not None and len(self._prefixes) > self._max_to_keep:
            oldest = self._prefixes.pop(0)
            written = (
                os.path.getmtime(oldest + checkpoint_file.SUFFIX) if checkpoint_file.exists(oldest) else 0.0
            )
            if self._every is not None and written - self._every >= self._kept_at:
                self._kept_at = written
            else:
                removed.append(oldest)
        # The list before the files, so that it never names a removed checkpoint.
        update_checkpoint_state(self._directory, path, self._prefixes)
        for each in removed:
            checkpoint_file.remove(each)

    def restore_or_initialize(self) -> str | None:
        """Restore the latest checkpoint and return its prefix; without one call ``init_fn`` and return ``None``."""
        latest = self.latest_checkpoint
        if latest is not None:
            self._checkpoint.restore(latest)
            if self._counter is not None:
                self._last_step = int(self._counter)
            return latest
        if self._init is not None:
            self._init()
        return None

    def sync(self) -> None:
        """Do nothing: ``save`` returns after the checkpoint is written."""


__all__ = ["CheckpointManager"]

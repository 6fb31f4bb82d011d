"""``CheckpointManager``: the latest checkpoints of a folder, as many as are wanted."""

import os
import time
from collections.abc import Callable
from typing import Any

from allotment.tf.training import checkpoint_file
from allotment.tf.training.checkpoint_state import get_checkpoint_state, update_checkpoint_state

_HOUR = 3600.0


class CheckpointManager:
    """Keeps the latest checkpoints of a folder, and removes older ones. As ``tf.train.CheckpointManager``.

    Args:
        checkpoint: The ``Checkpoint`` that is written.
        directory: The folder; checkpoints that are there are known.
        max_to_keep: How many to keep; ``None`` for all.
        keep_checkpoint_every_n_hours: Keep one more for each such time.
        checkpoint_name: What the names of the files begin with.
        step_counter: A variable or number: where the program is.
        checkpoint_interval: By how much that must have grown for another checkpoint.
        init_fn: What ``restore_or_initialize`` calls if there is no checkpoint.

    Raises:
        ValueError: ``max_to_keep`` is not above zero; an interval without a counter.
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
        #: Prefixes, the oldest first.
        self._prefixes = [each for each in known if checkpoint_file.exists(each)]

    @property
    def directory(self) -> str:
        """The folder."""
        return self._directory

    @property
    def checkpoint(self) -> Any:
        """The ``Checkpoint`` that is written."""
        return self._checkpoint

    @property
    def checkpoint_interval(self) -> int | None:
        """By how much the counter must have grown for another checkpoint."""
        return self._interval

    @property
    def latest_checkpoint(self) -> str | None:
        """The prefix of the latest checkpoint, ``None`` without one."""
        return self._prefixes[-1] if self._prefixes else None

    @property
    def checkpoints(self) -> list[str]:
        """The prefixes of the checkpoints that are kept, the oldest first."""
        return list(self._prefixes)

    def save(
        self, checkpoint_number: Any = None, check_interval: bool = True, options: Any = None
    ) -> str | None:
        """Write a checkpoint, and remove the oldest ones that are too many.

        Args:
            checkpoint_number: The number behind its name; the count of saves if not given.
            check_interval: Whether ``checkpoint_interval`` counts.
            options: Has no effect.

        Returns:
            Its prefix; ``None`` if the counter has not grown enough.

        Raises:
            OSError: It cannot be written.
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
        self._enter(path)
        return path

    def _enter(self, path: str) -> None:
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
        # First the list, which never names one that is gone.
        update_checkpoint_state(self._directory, path, self._prefixes)
        for each in removed:
            checkpoint_file.remove(each)

    def restore_or_initialize(self) -> str | None:
        """Read the latest checkpoint and return its prefix; without one call ``init_fn`` and return ``None``."""
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
        """Do nothing: a checkpoint is written when ``save`` returns."""


__all__ = ["CheckpointManager"]

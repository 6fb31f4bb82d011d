"""What ``fit``, ``evaluate`` and ``predict`` show of how far they are: a bar on a terminal, else lines."""

import math
import sys
import time
from typing import Any

from allotment.tf.keras.callbacks import Callback, Logs


class ProgressBar(Callback):
    """Shows how far it is.

    Args:
        steps: Number of batches, ``None`` if that is not known.
        verbose: With 1 a bar that moves, where stdout is a terminal; with 2 one line at the end.
    """

    def __init__(self, steps: int | None, verbose: int) -> None:
        super().__init__()
        self._steps = steps
        self._moves = verbose == 1 and sys.stdout is not None and sys.stdout.isatty()
        self._bar: Any = None
        self._begun = 0.0
        self._done = 0

    @property
    def moves(self) -> bool:
        """Whether it is told of each batch."""
        return self._moves

    def begin(self) -> None:
        """Start a bar."""
        self._begun, self._done = time.perf_counter(), 0
        if not self._moves:
            return
        # Costs a fifth of the start-up time, and most runs have no use for it.
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

        self._bar = Progress(MofNCompleteColumn(), BarColumn(20), TextColumn("{task.description}"))
        self._bar.start()
        self._task = self._bar.add_task("", total=self._steps)

    def step(self, logs: Logs | None) -> None:
        """A batch is done."""
        self._done += 1
        if self._bar is not None:
            self._bar.update(self._task, completed=self._done, description=self._told(logs))

    def end(self, logs: Logs | None) -> None:
        """All batches are done. The bar stays where it is."""
        if self._bar is not None:
            self._bar.update(self._task, total=self._done, completed=self._done, description=self._told(logs))
            self._bar.stop()
            self._bar = None
        else:
            seconds = time.perf_counter() - self._begun
            print(f"{self._done}/{self._done} - {seconds:.0f}s - {self._told(logs)}")

    def stop(self) -> None:
        """Leave the terminal as it was, when something has been raised."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def _told(self, logs: Logs | None) -> str:
        a_step = (time.perf_counter() - self._begun) / max(self._done, 1)
        return " - ".join(
            [duration_text(a_step), *(f"{name}: {number_text(v)}" for name, v in (logs or {}).items())]
        )


class TrainingProgress(ProgressBar):
    """Shows how far ``fit`` is, epoch by epoch."""

    def on_epoch_begin(self, epoch: int, logs: Logs | None = None) -> None:  # noqa: ARG002 - a hook's signature
        """Say which epoch begins."""
        print(f"Epoch {epoch + 1}/{self.params['epochs']}")
        self.begin()

    def on_train_batch_end(self, batch: int, logs: Logs | None = None) -> None:  # noqa: ARG002
        """Move the bar."""
        self.step(logs)

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:  # noqa: ARG002
        """Show the numbers of the epoch."""
        self.end(logs)


class TestProgress(ProgressBar):
    """Shows how far ``evaluate`` is."""

    #: Not a test, whatever pytest thinks.
    __test__ = False

    def on_test_begin(self, logs: Logs | None = None) -> None:  # noqa: ARG002
        """Begin."""
        self.begin()

    def on_test_batch_end(self, batch: int, logs: Logs | None = None) -> None:  # noqa: ARG002
        """Move the bar."""
        self.step(logs)

    def on_test_end(self, logs: Logs | None = None) -> None:
        """Show the numbers."""
        self.end(logs)


class PredictionProgress(ProgressBar):
    """Shows how far ``predict`` is."""

    def on_predict_begin(self, logs: Logs | None = None) -> None:  # noqa: ARG002
        """Begin."""
        self.begin()

    def on_predict_batch_end(self, batch: int, logs: Logs | None = None) -> None:  # noqa: ARG002
        """Move the bar."""
        self.step(None)

    def on_predict_end(self, logs: Logs | None = None) -> None:  # noqa: ARG002
        """Show that it is done."""
        self.end(None)


def verbosity(verbose: Any) -> int:
    """What a ``verbose=`` argument means: 0, 1 or 2.

    Raises:
        ValueError: Something else.
    """
    if verbose == "auto":
        return 1
    if verbose in (0, 1, 2):
        return int(verbose)
    raise ValueError(f"verbose must be 'auto', 0, 1 or 2, not {verbose!r}")


def duration_text(seconds: float) -> str:
    """How long a step took: ``12ms/step``."""
    if seconds >= 1 or seconds == 0:
        return f"{seconds:.0f}s/step"
    return f"{seconds * 1e3:.0f}ms/step" if seconds >= 1e-3 else f"{seconds * 1e6:.0f}us/step"


def number_text(value: float) -> str:
    """A loss or metric with four digits behind the point, or in scientific notation if it is small."""
    return f"{value:.4f}" if abs(value) > 1e-3 or not math.isfinite(value) else f"{value:.4e}"


__all__ = [
    "PredictionProgress",
    "ProgressBar",
    "TestProgress",
    "TrainingProgress",
    "duration_text",
    "number_text",
    "verbosity",
]

"""Progress of ``fit``, ``evaluate`` and ``predict``: a bar on a terminal, otherwise lines."""

import math
import sys
import time
from typing import Any

from allotment.tf.keras.callbacks.base import Callback, Logs


class ProgressBar(Callback):
    """The base of progress displays.

    Args:
        steps: The number of batches, ``None`` if unknown.
        verbose: With 1 a progress bar if stdout is a terminal; with 2 one line at the end.
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
        """Whether it shows each batch."""
        return self._moves

    def begin(self) -> None:
        """Start the display."""
        self._begun, self._done = time.perf_counter(), 0
        if not self._moves:
            return
        # The import takes a fifth of the start-up time, and most runs do not need it.
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

        self._bar = Progress(MofNCompleteColumn(), BarColumn(20), TextColumn("{task.description}"))
        self._bar.start()
        self._task = self._bar.add_task("", total=self._steps)

    def step(self, logs: Logs | None) -> None:
        """Show that a batch is done."""
        self._done += 1
        if self._bar is not None:
            self._bar.update(self._task, completed=self._done, description=self._describe(logs))

    def end(self, logs: Logs | None) -> None:
        """Show that all batches are done."""
        if self._bar is not None:
            self._bar.update(
                self._task, total=self._done, completed=self._done, description=self._describe(logs)
            )
            self._bar.stop()
            self._bar = None
        else:
            seconds = time.perf_counter() - self._begun
            print(f"{self._done}/{self._done} - {seconds:.0f}s - {self._describe(logs)}")

    def stop(self) -> None:
        """Restore the terminal after an error."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def _describe(self, logs: Logs | None) -> str:
        a_step = (time.perf_counter() - self._begun) / max(self._done, 1)
        return " - ".join(
            [duration_text(a_step), *(f"{name}: {number_text(v)}" for name, v in (logs or {}).items())]
        )


class TrainingProgress(ProgressBar):
    """The progress display of ``fit``."""

    def on_epoch_begin(self, epoch: int, logs: Logs | None = None) -> None:  # noqa: ARG002 - a hook's signature
        """Show the number of the epoch."""
        print(f"Epoch {epoch + 1}/{self.params['epochs']}")
        self.begin()

    def on_train_batch_end(self, batch: int, logs: Logs | None = None) -> None:  # noqa: ARG002
        """Move the bar."""
        self.step(logs)

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:  # noqa: ARG002
        """Show the logs of the epoch."""
        self.end(logs)


class TestProgress(ProgressBar):
    """The progress display of ``evaluate``."""

    #: Not a test class for pytest.
    __test__ = False

    def on_test_begin(self, logs: Logs | None = None) -> None:  # noqa: ARG002
        """Start the display."""
        self.begin()

    def on_test_batch_end(self, batch: int, logs: Logs | None = None) -> None:  # noqa: ARG002
        """Move the bar."""
        self.step(logs)

    def on_test_end(self, logs: Logs | None = None) -> None:
        """Show the logs."""
        self.end(logs)


class PredictionProgress(ProgressBar):
    """The progress display of ``predict``."""

    def on_predict_begin(self, logs: Logs | None = None) -> None:  # noqa: ARG002
        """Start the display."""
        self.begin()

    def on_predict_batch_end(self, batch: int, logs: Logs | None = None) -> None:  # noqa: ARG002
        """Move the bar."""
        self.step(None)

    def on_predict_end(self, logs: Logs | None = None) -> None:  # noqa: ARG002
        """Show that it is done."""
        self.end(None)


def verbosity(verbose: Any) -> int:
    """Convert a ``verbose=`` argument to 0, 1 or 2.

    Raises:
        ValueError: Another value.
    """
    if verbose == "auto":
        return 1
    if verbose in (0, 1, 2):
        return int(verbose)
    raise ValueError(f"verbose must be 'auto', 0, 1 or 2, not {verbose!r}")


def duration_text(seconds: float) -> str:
    """Format the duration of a step: ``12ms/step``."""
    if seconds >= 1 or seconds == 0:
        return f"{seconds:.0f}s/step"
    return f"{seconds * 1e3:.0f}ms/step" if seconds >= 1e-3 else f"{seconds * 1e6:.0f}us/step"


def number_text(value: float) -> str:
    """Format a value with four decimal digits, or in scientific notation if it is small."""
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

"""Progress bar of a long command on a terminal."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager


class Steps:
    """Receives the progress of a command's steps and shows nothing; for a stderr that is not a terminal."""

    def begin(self, text: str) -> None:
        """Begin the next step; ``text`` describes it."""

    def update(self, done: int, total: int) -> None:
        """Set the progress of the current step to ``done`` out of ``total``."""


@contextmanager
def progress(steps: int, *, long: bool) -> Iterator[Steps]:
    """Show a bar on stderr while the body runs, if that takes long and stderr is a terminal.

    The body calls ``begin`` of the yielded object once for each of its ``steps`` steps. The bar disappears at the end.
    """
    if not long or sys.stderr is None or not sys.stderr.isatty():
        yield Steps()
        return

    # This import takes longer than the replay of a small trace.
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import BarColumn, Progress, SpinnerColumn, TaskProgressColumn, TextColumn

    columns = (SpinnerColumn(), BarColumn(), TaskProgressColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=steps)

        class Shown(Steps):
            """Shows the steps as a bar."""

            begun = 0

            def begin(self, text: str) -> None:
                bar.update(task, description=escape(text), completed=self.begun)
                self.begun += 1

            def update(self, done: int, total: int) -> None:
                bar.update(task, completed=self.begun - 1 + (done / total if total else 0))

        yield Shown()

"""Progress of a long command on a terminal."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager


class Steps:
    """The steps of a command, not shown: stderr is not a terminal."""

    def begin(self, text: str) -> None:
        """Begin the next step; ``text`` says what it does."""

    def is_at(self, done: int, of: int) -> None:
        """Say how much of the step is done."""


@contextmanager
def progress(steps: int) -> Iterator[Steps]:
    """Show a bar on stderr while the body runs, if stderr is a terminal.

    The body tells what it gets when it begins each of its ``steps`` steps. The bar is gone afterwards.
    """
    if sys.stderr is None or not sys.stderr.isatty():
        yield Steps()
        return

    # Costs a fifth of the start-up time, and most runs have no use for it.
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import BarColumn, Progress, SpinnerColumn, TaskProgressColumn, TextColumn

    columns = (SpinnerColumn(), BarColumn(), TaskProgressColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=steps)

        class Shown(Steps):
            """Steps as a bar."""

            begun = 0

            def begin(self, text: str) -> None:
                bar.update(task, description=escape(text), completed=self.begun)
                self.begun += 1

            def is_at(self, done: int, of: int) -> None:
                bar.update(task, completed=self.begun - 1 + (done / of if of else 0))

        yield Shown()

"""What a long command is at, for people who watch."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress(steps: int) -> Iterator[Callable[[str], None]]:
    """Show a line on stderr while the body runs, if stderr is a terminal.

    The body calls what it gets with a text before each of its ``steps`` steps. The line is gone afterwards.
    """
    if sys.stderr is None or not sys.stderr.isatty():
        yield lambda _text: None
        return

    # Costs a fifth of the start-up time, and most runs have no use for it.
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn

    columns = (SpinnerColumn(), BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=steps)
        begun = 0

        def begin(text: str) -> None:
            nonlocal begun
            bar.update(task, description=escape(text), completed=begun)
            begun += 1

        yield begin

"""Options of the pool that a trace is replayed into, and of the files, which several commands have."""

import os
from collections.abc import Callable
from typing import Any, TypeVar

import click

from allotment.cli.command import BadInput, Size

_Command = TypeVar("_Command", bound=Callable[..., Any])

_OPTIONS = (
    click.option(
        "--limit",
        type=Size(minimum=1),
        default="64GiB",
        show_default=True,
        metavar="SIZE",
        help="The most the pool may reserve.",
    ),
    click.option(
        "--growth/--no-growth",
        default=True,
        show_default=True,
        help="Start with 2 MiB and double, or reserve the limit at first use.",
    ),
    click.option(
        "--trim-on-oom/--no-trim-on-oom",
        default=False,
        show_default=True,
        help="Before refusing, give wholly free regions back and grow again.",
    ),
    click.option(
        "--gap",
        type=Size(multiple_of=256),
        default="0",
        show_default=True,
        metavar="SIZE",
        help="Bytes between regions, a multiple of 256.",
    ),
    click.option(
        "--joined/--apart",
        default=None,
        show_default="joined if --gap is 0",
        help="Join regions that touch, or keep them apart.",
    ),
    click.option(
        "--policy",
        type=click.Choice(["tensorflow", "tight"]),
        default="tensorflow",
        show_default=True,
        help="When a chunk is split: as TensorFlow does, or whenever anything remains.",
    ),
)


def pool_options(command: _Command) -> _Command:
    """Give a command the options of a pool."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


class EventRange(click.ParamType[tuple[int, int | None]]):
    """Parameter type for events, ``FIRST:LAST``, of which either may be left out; the last one is not in it."""

    name = "range"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, int | None]:
        """Parse a range, or fail with a message that says how it is written."""
        first, colon, last = str(value).partition(":")
        numbers = [int(text) if text.isdecimal() else None for text in (first or "0", last)]
        if not colon or numbers[0] is None or (last and (numbers[1] is None or numbers[1] <= numbers[0])):
            self.fail(f"{value!r}: write FIRST:LAST, two numbers of events, such as 1000:2000", param, ctx)
        return numbers[0], numbers[1]


def expand_paths(paths: tuple[str, ...]) -> tuple[str, ...]:
    """Replace each folder by the traces in it."""
    if not any(map(os.path.isdir, paths)):
        return paths
    from allotment.trace import TraceError
    from allotment.trace.folders import expand_folders

    try:
        return tuple(expand_folders(paths))
    except TraceError as error:
        raise BadInput(str(error)) from error

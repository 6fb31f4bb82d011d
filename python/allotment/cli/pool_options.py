"""Options of the pool that a trace is replayed into, and of the files, which several commands have."""

import functools
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

import click

from allotment.cli.command import BadInput, Outcome, Size

if TYPE_CHECKING:
    from allotment.trace import ReplayOptions

#: The most bytes of a page.
_MAX_PAGE_SIZE = 1 << 30

#: The most limits of a sweep.
_MAX_LIMITS = 1000

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
    click.option(
        "--elastic",
        is_flag=True,
        help="Reserve several times the limit in addresses, with memory for the pages in use only. It splits off every "
        "remainder.",
    ),
    click.option(
        "--page-size",
        type=Size(minimum=256, multiple_of=256),
        show_default="2 MiB",
        metavar="SIZE",
        help="Pages of --elastic: a power of two from 256 bytes to 1 GiB, and not above the limit.",
    ),
)


def is_given(option: str) -> bool:
    """Return whether an option of the running command is on its command line, by the name of its parameter."""
    return click.get_current_context().get_parameter_source(option) is click.core.ParameterSource.COMMANDLINE


def check_pages(options: "ReplayOptions", *, has_limit: bool = True) -> None:
    """Check the pages of an elastic pool, so that a wrong size is reported before files are read.

    Args:
        options: Options of the pool.
        has_limit: Whether the limit of the options is used; limits are searched otherwise.

    Raises:
        click.UsageError: A page size without an elastic pool, one that is no power of two up to 1 GiB, or one above the
            limit; or an option of regions for an elastic pool.
    """
    if not options.elastic:
        if options.page_size is not None:
            raise click.UsageError("'--page-size' is of '--elastic'")
        return
    if options.gap or options.joined is not None or is_given("policy") or is_given("trim_on_oom"):
        raise click.UsageError(
            "'--gap', '--joined', '--apart', '--policy' and '--trim-on-oom' have no effect with '--elastic', which "
            "keeps ranges of addresses apart, splits off every remainder and takes every free page"
        )
    pages = options.page_bytes
    if pages.bit_count() != 1 or pages > _MAX_PAGE_SIZE:
        raise click.UsageError(f"'--page-size' must be a power of two up to 1 GiB, not {pages} bytes")
    if has_limit and pages > options.limit:
        raise click.UsageError(
            f"'--limit' must be at least a page of '--elastic', {pages} bytes, not {options.limit} bytes"
        )


def pool_options(command: Callable[..., Outcome]) -> Callable[..., Outcome]:
    """Give a command the options of a pool, which it receives as ``options``, a ``ReplayOptions``."""

    @functools.wraps(command)
    def with_options(
        *,
        limit: int,
        growth: bool,
        trim_on_oom: bool,
        gap: int,
        joined: bool | None,
        policy: Literal["tensorflow", "tight"],
        elastic: bool,
        page_size: int | None,
        **others: Any,
    ) -> Outcome:
        # Not before: --help and --version load little.
        from allotment.trace import ReplayOptions

        options = ReplayOptions(limit, growth, trim_on_oom, gap, joined, policy, elastic, page_size)
        return command(options=options, **others)

    for option in reversed(_OPTIONS):
        option(with_options)
    return with_options


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


class SweepLimits(click.ParamType[tuple[int, ...]]):
    """Parameter type for limits at equal distances, ``FIRST:LAST:COUNT``."""

    name = "limits"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, ...]:
        """Return the limits, or fail with a message that says how they are written."""
        first, _, rest = str(value).partition(":")
        last, _, count = rest.partition(":")
        if not count.isdecimal() or not 2 <= int(count) <= _MAX_LIMITS:
            self.fail(
                f"{value!r}: write FIRST:LAST:COUNT, two sizes and a number from 2 to {_MAX_LIMITS}, such as "
                "1GiB:4GiB:13",
                param,
                ctx,
            )
        size = Size(minimum=1)
        low, high = size.convert(first, param, ctx), size.convert(last, param, ctx)
        if high <= low:
            self.fail(f"{value!r}: the last limit must be above the first one", param, ctx)
        return tuple(low + (high - low) * step // (int(count) - 1) for step in range(int(count)))


class Export(click.ParamType[tuple[str, str]]):
    """Parameter type for a file to export to, ``FORMAT=FILE``."""

    name = "export"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, str]:
        """Split the value, or fail with a message that lists the formats."""
        # Not before: --help and --version load little.
        from allotment.trace.exports import EXPORT_FORMATS, check_format

        name, equals, file = str(value).partition("=")
        if not equals or not file:
            formats = ", ".join(EXPORT_FORMATS)
            self.fail(f"{value!r}: write FORMAT=FILE, with one of the formats {formats}", param, ctx)
        try:
            check_format(name)
        except ValueError as error:
            self.fail(str(error), param, ctx)
        return name, file


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

"""The command line: arguments, progress, exit status.

Longer than 300 lines: the options of each command, with their texts.
"""

import errno
import json
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from allotment._core import __version__, one_line
from allotment.cli.command import (
    BAD_INPUT,
    BROKEN_PIPE,
    INTERNAL_ERROR,
    INTERRUPTED,
    BadInput,
    Outcome,
    Size,
)
from allotment.cli.pool_options import (
    EventRange,
    Export,
    SweepLimits,
    check_pages,
    expand_paths,
    is_given,
    pool_options,
)
from allotment.cli.programs import record_command, run_command

if TYPE_CHECKING:
    from allotment.trace import ReplayOptions

#: Numbers of errors of writing to a file that is open.
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


@click.group(context_settings={"help_option_names": ["-h", "--help"]}, no_args_is_help=False)
@click.version_option(__version__, prog_name="allotment", message="%(prog)s %(version)s")
def commands() -> None:
    """Replay recorded programs, and see what a device-memory allocator makes of them.

    Exit status: 0 everything fitted, 1 internal error, 2 bad input or usage, or an output that cannot be written,
    3 something was refused, 130 interrupted, 141 the output's reader is closed.
    """


@commands.command()
def demo() -> Outcome:
    """Replay a recorded training run, then run out of memory on purpose."""
    from allotment.cli.demo import demonstrate

    return Outcome(demonstrate())


@commands.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
def devices(as_json: bool) -> Outcome:
    """List physical and logical devices, their masks and limits, and the settings behind them."""
    from allotment.devices.context import context
    from allotment.devices.reports.devices import report_devices
    from allotment.devices.reports.text import report_text

    try:
        report = report_devices(context())
    except ValueError as error:
        raise BadInput(str(error)) from error
    return Outcome(json.dumps(report.as_dict(), indent=2) + "\n" if as_json else report_text(report))


commands.add_command(record_command)
commands.add_command(run_command)


@commands.command("replay")
@click.argument("paths", metavar="TRACE...", nargs=-1, required=True)
@pool_options
@click.option(
    "--min-limit",
    is_flag=True,
    help="Search the smallest limit at which nothing is refused, and replay at that, not at --limit. "
    "Also find the safe limit: from there up to 1.25 times it, nothing is refused at any limit.",
)
@click.option(
    "--granularity",
    type=Size(minimum=256, multiple_of=256),
    show_default="64 KiB, with --elastic at least a page",
    metavar="SIZE",
    help="--min-limit tries each multiple of this, itself a multiple of 256.",
)
@click.option(
    "--seconds",
    type=click.FloatRange(min=0),
    show_default="60",
    metavar="NUMBER",
    help="--min-limit ends after this time for each TRACE, and says which limits it did not try.",
)
@click.option(
    "--round-sizes",
    type=Size(minimum=1, maximum=1 << 30),
    metavar="SIZE",
    help="Round each request up to a multiple of this: 4KiB stands for `allotment run`, where blocks have whole pages.",
)
@click.option(
    "--compare",
    is_flag=True,
    help="Replay under TensorFlow's policy and the tight one, with and without growth, in elastic pools, and in a "
    "model of PyTorch's caching allocator, and find the smallest limit of each, and a static plan; --seconds for each "
    "TRACE.",
)
@click.option(
    "--sweep",
    is_flag=True,
    help="Replay under the same policies at the --limits, or at 21 from half the peak of live bytes to one and a half "
    "times it.",
)
@click.option(
    "--limits",
    type=SweepLimits(),
    metavar="FIRST:LAST:COUNT",
    help="The limits of --sweep: two sizes, and how many limits from one to the other, such as 1GiB:4GiB:13.",
)
@click.option(
    "--timeline",
    metavar="FILE.csv",
    help="Write a table with the bytes live, in use and reserved after each event, and the device where the TRACE has "
    "several. One TRACE only.",
)
@click.option(
    "--html",
    metavar="FILE",
    help="Write a page for browsers: memory over time, blocks by address, holders. Needs Bokeh. One TRACE only.",
)
@click.option(
    "--png",
    metavar="FILE",
    help="Write a picture of the same. Needs matplotlib. One TRACE only.",
)
@click.option(
    "--range",
    "events",
    type=EventRange(),
    metavar="FIRST:LAST",
    help="The events that --html and --png show; the last one is not among them.",
)
@click.option(
    "--export",
    "exports",
    type=Export(),
    multiple=True,
    metavar="FORMAT=FILE",
    help="Write the replay for another program's viewer: pytorch, heaptrack, dhat, massif, pprof or chrome (Perfetto). "
    "Packed by gzip if FILE ends in .gz. May be repeated. One TRACE only.",
)
@click.option(
    "--offsets",
    metavar="FILE.npy",
    help="Write where each block lands: int64, one an event, -1 if it has no place: refused, or zero bytes. One TRACE "
    "only.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
def replay_command(
    paths: tuple[str, ...],
    options: "ReplayOptions",
    min_limit: bool,
    granularity: int | None,
    seconds: float | None,
    round_sizes: int | None,
    compare: bool,
    sweep: bool,
    limits: tuple[int, ...] | None,
    timeline: str | None,
    html: str | None,
    png: str | None,
    events: tuple[int, int | None] | None,
    exports: tuple[tuple[str, str], ...],
    offsets: str | None,
    as_json: bool,
) -> Outcome:
    """Replay recorded allocations into a pool that has addresses but no memory.

    A TRACE is an .npz file with the columns op (1 allocates, 2 frees), id and size, one integer an event; a memory
    snapshot of PyTorch; a table of lifetimes (id, lower, upper, size); the log of RMM; or a profile of TensorFlow
    (.xplane.pb, .trace.json.gz). Its content determines which. A snapshot or profile of several devices counts as
    several traces, and a folder stands for the traces in it.
    SIZE is a number with a unit (B, KiB to EiB, KB to EB) or of bytes.

    The defaults are those of a pool over made-up addresses (source "address-space") with trim_on_oom off. A pool over
    host memory, of a device or over a source in Python keeps regions apart: replay with --apart. Pools trim before
    they refuse by default: replay with --trim-on-oom. All other options have the defaults of a pool.
    """
    # Functions import what they need, so that --help and --version load little.
    from allotment.cli.replay import Outputs, replay_files
    from allotment.trace import Search

    if (compare or sweep) and any(map(is_given, ("limit", "growth", "policy", "elastic", "page_size"))):
        raise click.UsageError(
            "'--compare' and '--sweep' choose '--limit', '--growth', '--policy', '--elastic' and '--page-size' "
            "themselves"
        )
    check_pages(options, has_limit=not min_limit)
    if granularity is not None and not min_limit:
        raise click.UsageError("'--granularity' is of '--min-limit'")
    if seconds is not None and not (min_limit or compare):
        raise click.UsageError("'--seconds' is of '--min-limit' and '--compare'")
    most_seconds = 60.0 if seconds is None else seconds
    outputs = Outputs(offsets, timeline, html, png, exports)
    outputs.check(paths := expand_paths(paths), min_limit=min_limit)
    if limits is not None and not sweep:
        raise click.UsageError("'--limits' is of '--sweep'")
    if compare or sweep:
        if (compare and sweep) or min_limit or outputs.any or round_sizes is not None:
            raise click.UsageError(
                "'--compare' and '--sweep' exclude each other, '--min-limit', '--round-sizes', '--offsets', "
                "'--timeline', '--html', '--png' and '--export'"
            )
        from allotment.cli.what_if import compare_traces, sweep_traces

        if sweep:
            return Outcome(sweep_traces(paths, options, limits, as_json=as_json))
        return Outcome(compare_traces(paths, options, most_seconds, as_json=as_json))
    if events is not None and html is None and png is None:
        raise click.UsageError("'--range' is of '--html' and '--png'")
    search = Search(granularity or options.limit_step, most_seconds) if min_limit else None
    return replay_files(
        paths, options, search, outputs, events or (0, None), round_sizes=round_sizes or 1, as_json=as_json
    )


@commands.command("bench")
@click.argument(
    "kinds",
    metavar="[KIND]...",
    nargs=-1,
    type=click.Choice(["pairs", "holes", "churn", "threads", "python", "gpu"]),
)
@click.option(
    "--trace",
    "traces",
    multiple=True,
    metavar="FILE",
    help="Replay this trace, too; alone, if no KIND is given. May be repeated.",
)
@click.option(
    "--seconds",
    type=click.FloatRange(min=0),
    default=20.0,
    show_default=True,
    metavar="NUMBER",
    help="Seconds for all workloads together. Each is played six times in any case.",
)
@click.option(
    "--threads",
    "most_threads",
    type=click.IntRange(1, 256),
    show_default="the number of cores",
    metavar="NUMBER",
    help="The most threads that play a workload at once.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
def bench_command(
    kinds: tuple[str, ...], traces: tuple[str, ...], seconds: float, most_threads: int | None, as_json: bool
) -> Outcome:
    """Measure how long pools take on this machine, beside other allocators that are installed.

    Others are malloc, mimalloc, jemalloc and tcmalloc, and on GPUs those of CuPy, PyTorch and RMM. All take turns in
    one run: read the ratios, as a machine's speed drifts. Pools are of host memory with a limit, in their default
    settings and with thread caches.

    A KIND is pairs (allocate and free at once, with nothing else live), holes (the same among 16,384 free pieces of
    many sizes), churn (free a random block and allocate another one, with 2,048 live), threads (pairs and churn on
    several threads that share the allocator), python (calls from Python, and NumPy's arrays) or gpu (pairs in the
    memory of a GPU). Without any all are measured.
    """
    from allotment.cli.bench import run_bench

    return run_bench(kinds, traces, seconds, most_threads, as_json=as_json)


@commands.command("report")
@click.argument("paths", metavar="TRACE...", nargs=-1, required=True)
@pool_options
@click.option("--range", "events", type=EventRange(), metavar="FIRST:LAST", help="Show these events only.")
@click.option(
    "--png", metavar="FILE", help="Also write a picture of the same. Needs matplotlib. One TRACE only."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
def report_command(
    paths: tuple[str, ...],
    options: "ReplayOptions",
    events: tuple[int, int | None] | None,
    png: str | None,
    as_json: bool,
) -> Outcome:
    """Show a trace as text: memory over time, holders at the peak, sizes of requests, fragmentation, refusals.

    A TRACE is any file that `allotment replay` takes, replayed as it would be there. `allotment replay --html` shows
    the same as a page.
    """
    from allotment.cli.pictures import report_files

    check_pages(options)
    return report_files(expand_paths(paths), options, events or (0, None), png, as_json=as_json)


@commands.command("plan")
@click.argument("path", metavar="FILE")
@click.option(
    "--program",
    metavar="NAME",
    help="The device, allocator or pool to plan, if FILE has several, such as 'device 0'.",
)
@click.option("-o", "--output", metavar="PLAN", help="Write the plan to this .npz file, for Pool(plan=...).")
@click.option(
    "--seconds",
    type=click.FloatRange(min=0),
    default=10.0,
    show_default=True,
    metavar="NUMBER",
    help="Search for this time at most.",
)
@click.option(
    "--steps",
    type=click.IntRange(0, (1 << 64) - 1),
    metavar="NUMBER",
    help="Search for this many steps at most. With enough --seconds they find the same plan on every machine.",
)
@click.option(
    "--seed",
    type=click.IntRange(0, (1 << 64) - 1),
    default=0,
    show_default=True,
    metavar="NUMBER",
    help="Another number searches in another order.",
)
@click.option(
    "--alignment",
    type=Size(minimum=1),
    default="256",
    show_default=True,
    metavar="SIZE",
    help="Offsets are multiples of this power of two, and sizes are rounded up to it. A pool follows plans with 256 or "
    "more.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
def plan_command(
    path: str,
    program: str | None,
    output: str | None,
    seconds: float,
    steps: int | None,
    seed: int,
    alignment: int,
    as_json: bool,
) -> Outcome:
    """Find offsets for the blocks of a recorded program, in an arena that is as small as possible.

    FILE is any file that `allotment replay` takes; --program chooses one of several programs in it. No arena is smaller
    than the most bytes that are live at once, the lower bound; the search ends when it has found one of that size, or
    when time is up.
    """
    from allotment.cli.files import check_distinct
    from allotment.cli.plan import plan_file

    if output is not None:
        check_distinct([("FILE", path)], [("-o", output)])
    return plan_file(
        path,
        output,
        program=program,
        alignment=alignment,
        seconds=seconds,
        steps=steps,
        seed=seed,
        as_json=as_json,
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit status.

    Args:
        arguments: The arguments after the program's name; ``sys.argv[1:]`` unless given.
    """
    if sys.stdout is None:
        # The caller closed stdout and wants only the exit status or a file.
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - stays open to the end
    try:
        # Without standalone mode click returns the command's value and raises its errors.
        outcome = commands.main(arguments, prog_name="allotment", standalone_mode=False)
        # --help and --version print by themselves and return a number.
        return _print(outcome) if isinstance(outcome, Outcome) else int(outcome or 0)
    except click.ClickException as error:
        return _print_error(_error_text(error), BAD_INPUT)
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except SystemExit:
        # Click exits so when the reader of its help text is closed.
        return BROKEN_PIPE
    except BaseException as error:
        if isinstance(error, OSError) and error.errno in _FULL and error.filename is None:
            # Click prints --help and --version itself; commands name the files that they write.
            return _print_output_error(error)
        # A panic of the compiled module is not an Exception, but is reported in one line, too.
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        return _print_error(f"internal error: {type(error).__name__}: {error}", INTERNAL_ERROR)


def _error_text(error: click.ClickException) -> str:
    text = error.format_message().rstrip(".")
    # The text about a bad value states the allowed values; no need to point to --help.
    if isinstance(error, click.UsageError) and type(error) is not click.BadParameter:
        where = "allotment" if error.ctx is None else error.ctx.command_path
        return f"{text} (see '{where} --help')"
    return text


def _print_error(text: str, status: int) -> int:
    click.echo(f"allotment: {one_line(text)}", err=True)
    return status


def _print(outcome: Outcome) -> int:
    try:
        # Characters that the terminal's encoding lacks become escapes.
        encoding = sys.stdout.encoding
        sys.stdout.write(outcome.text.encode(encoding, "backslashreplace").decode(encoding))
        sys.stdout.flush()
    except BrokenPipeError:
        # As with `| head`. Python flushes stdout again at exit, which would print a second error.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except OSError as error:
        return _print_output_error(error)
    return outcome.status


def _print_output_error(error: OSError) -> int:
    # Python flushes stdout again at exit, which would print a second error.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return _print_error(f"standard output: {error.strerror}", BAD_INPUT)

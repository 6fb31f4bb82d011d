"""The ``demo`` command: a recorded training run under three limits, then a simulated GPU split in two."""

from collections.abc import Iterator
from importlib.resources import as_file, files
from textwrap import wrap

from allotment._core import format_size, replay
from allotment.cli.devices_demo import split_a_gpu
from allotment.trace import (
    Columns,
    ReplayOptions,
    Report,
    Trace,
    read_columns,
    replay_at_min_limit,
    replay_trace,
)

#: A trace in the package; ``trace/data/README.md`` describes how it was recorded.
_TRACE = "torch_resnet50_train_b16.npz"

#: 1.65 GiB: above the program's peak of live bytes, and yet not enough, because of fragmentation.
_TOO_LITTLE = 1_771_673_856


def demonstrate() -> str:
    """Return the text that ``allotment demo`` prints. Only the timings differ between runs."""
    return "\n".join([*_recorded_program(), "", *split_a_gpu()]) + "\n"


def _recorded_program() -> Iterator[str]:
    """Yield the part of the demo that replays a recorded program under several limits."""
    with as_file(files("allotment.trace") / "data" / _TRACE) as path:
        columns = read_columns(path)
    trace = Trace(columns.path, columns.name, columns.program())
    plenty = replay_trace(trace, ReplayOptions())
    just_enough = replay_at_min_limit(trace, ReplayOptions())
    too_little = replay_trace(trace, ReplayOptions(limit=_TOO_LITTLE))

    peak_live = format_size(trace.program.peak_live)
    yield from _paragraph(
        "A recorded program: ResNet-50 training in PyTorch, three steps of batch 16 and an evaluation, "
        f"{trace.program.events} events (allocations and frees). At its peak {peak_live} are live. "
        "Here it is replayed on made-up addresses, so that no memory is needed, under three limits:"
    )
    yield ""
    yield from _compare({"plenty": plenty, "just enough": just_enough, "too little": too_little})
    yield ""
    yield from _explain_refusal(columns, too_little)


def _compare(reports: dict[str, Report]) -> Iterator[str]:
    def line(label: str, cells: list[str]) -> str:
        return f"  {label:<22}" + "".join(f"{cell:>16}" for cell in cells)

    results = [report.result for report in reports.values()]
    yield line("", list(reports))
    yield line("limit", [format_size(report.options.limit) for report in reports.values()])
    yield line("peak in use", [format_size(result.stats.peak_in_use) for result in results])
    yield line("peak reserved", [format_size(result.stats.peak_reserved) for result in results])
    yield line("regions granted", [str(result.stats.num_grants) for result in results])
    yield line("refused", [str(result.refused) for result in results])
    firsts = [result.first_refused for result in results]
    yield line("first refused", ["never" if first is None else f"event {first}" for first in firsts])
    yield line("ns an event", [f"{result.ns_per_event:.0f}" for result in results])


def _explain_refusal(columns: Columns, report: Report) -> list[str]:
    """Describe the pool at the first refusal: replay the same program up to the event before it."""
    event = report.result.first_refused
    assert event is not None, "the limit is too little"
    stats = replay(columns.program(event), limit=report.options.limit).stats
    asked, limit = format_size(columns.size[event]), format_size(report.options.limit)
    free, largest_free = format_size(stats.free), format_size(stats.largest_free)
    return _paragraph(
        f"Just enough is the smallest limit at which a search found no refusal. Under {limit}, event {event} "
        f"requests {asked}: {free} are free, but the largest free chunk has {largest_free}. That is "
        f"fragmentation: {stats.fragmentation:.0%} of the free bytes lie outside the largest chunk."
    )


def _paragraph(text: str) -> list[str]:
    return wrap(text, width=96)

"""Trace events of Chromium, a JSON text that Perfetto and ``chrome://tracing`` open.

A block is a pair of asynchronous events (``b`` and ``e``, with the number of its allocation as ``id``), so that blocks
may overlap in any way; the bytes live and reserved are counters (``C``), a refusal is an instant (``i``). The layout is
that of the document "Trace Event Format". Times are in microseconds; without times in the trace an event takes one.
"""

import json
from collections.abc import Iterator, Sequence

from allotment.trace.exports.replayed import Output, ReplayedProgram, pieces
from allotment.trace.timeline import timeline

_encode = json.JSONEncoder(separators=(",", ":")).encode


def write(file: Output, programs: Sequence[ReplayedProgram]) -> None:
    """Write all programs: each is a process of the trace, numbered from 1 on."""
    for piece in pieces(_parts(programs)):
        file.write(piece)


def _parts(programs: Sequence[ReplayedProgram]) -> Iterator[bytes]:
    facts = {"events": [program.events for program in programs], "has_times": programs[0].has_times}
    yield b'{"displayTimeUnit":"ns","otherData":' + _encode({"writer": "allotment"} | facts).encode()
    yield b',"traceEvents":['
    separator = b"\n"
    for process, program in enumerate(programs, 1):
        for event in _events(process, program):
            yield separator + event
            separator = b",\n"
    yield b"\n]}\n"


def _events(process: int, program: ReplayedProgram) -> Iterator[bytes]:
    """Yield the events of a program in the format of Chrome's trace viewer."""
    yield _label("process_name", process, 0, program.title)
    columns = program.columns
    # A program without threads has its streams, or one thread.
    threads, noun = (columns.stream, "stream") if columns.thread is None else (columns.thread, "thread")
    # Texts of JSON for what repeats.
    names = [_encode(text.partition("\n")[0]) for text in program.groups]
    stacks = [f',"stack":{_encode(text)}' if "\n" in text else "" for text in program.groups]
    reserved = timeline(columns, program.options).reserved
    known = set[int]()
    head = f'"pid":{process},"tid":'
    rows = zip(
        program.op.data,
        program.size.data,
        program.change.data,
        program.live.data,
        program.partner.data,
        program.group.data,
        program.offsets.data,
        program.times(1).data if program.has_times else (program.times(1) * 1000).data,
        reserved.data,
        [0] * program.events if threads is None else threads,
        strict=True,
    )
    former = None
    for event, row in enumerate(rows):
        op, size, change, live, partner, group, offset, time, held, thread = row
        if thread not in known:
            known.add(thread)
            yield _label("thread_name", process, thread, f"{noun} {thread}")
        at = f'{head}{thread},"ts":{time // 1000}.{time % 1000:03}'
        if change > 0:
            yield (
                f'{{"ph":"b","cat":"block","id":"{event}","name":{names[group]},{at},'
                f'"args":{{"size":{size},"offset":{offset}{stacks[group]}}}}}'
            ).encode()
        elif change:
            yield f'{{"ph":"e","cat":"block","id":"{partner}","name":{names[group]},{at}}}'.encode()
        elif op == 1 and size:
            yield (
                f'{{"ph":"i","s":"p","cat":"refusal","name":"refused",{at},'
                f'"args":{{"size":{size},"owner":{names[group]}}}}}'
            ).encode()
        if (live, held) != former:
            former = live, held
            yield (f'{{"ph":"C","name":"memory",{at},"args":{{"live":{live},"reserved":{held}}}}}'.encode())


def _label(kind: str, process: int, thread: int, name: str) -> bytes:
    """Return an event that names a process or a thread."""
    facts = {"ph": "M", "pid": process, "tid": thread, "name": kind, "args": {"name": name}}
    return _encode(facts).encode()

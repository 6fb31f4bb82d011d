"""Makes programs of recorded events: one for each pool."""

import os
from collections.abc import Iterator

from allotment.trace.blocks import BlockEvents, counted
from allotment.trace.journal import LIVE_BEFORE, Events
from allotment.trace.recording import Columns, Origin, RecordedRefusal


def programs(path: str, events: Events) -> list[Columns]:
    """Return the program of each pool that has events, or an empty one.

    Blocks whose allocation a ring has dropped come first. Where events were lost in between, the origin says so.
    """
    named = [number for number in sorted(events.pools) if (events.rows["pool"] == number).any()]
    if not named:
        named = sorted(events.pools)[:1]
    return [_program(path, events, number) for number in named] or [_program(path, events, 0)]


def _program(path: str, events: Events, number: int) -> Columns:
    """Return the program of one recorded pool."""
    blocks = BlockEvents()
    refusals: list[RecordedRefusal] = []
    for op, block, size, tag, time, thread in _rows(events, number):
        if op == 1:
            blocks.allocate(block, size, 0, tag, time, thread)
        elif op == 2:
            blocks.free(block, size, 0, time, thread)
        elif op == LIVE_BEFORE:
            blocks.add_before(block, size, 0, tag)
        else:
            refusals.append(RecordedRefusal(blocks.events, f"event {blocks.events}", size, blocks.live_bytes))
    missing = blocks.missing()
    if events.lost:
        dropped = counted(events.lost, "event", "was dropped", "were dropped")
        missing.append(f"{dropped}, as the buffer of the recording was full")
    if events.error:
        missing.append(cut_short(events))
    elif not events.ended:
        said = "the recording was not ended: the process was killed, or still runs"
        if events.behind_ms:
            said += f"; events of its last {events.behind_ms / 1000:g} s may be missing"
        elif events.pid and not events.pools:
            said += "; it has written no event"
        missing.append(said)
    before, first = blocks.live_before, len(blocks.before)
    name = events.pools.get(number)
    op_column, ids, sizes, _ = blocks.columns()
    owner, times = blocks.owners()
    origin = Origin(
        "recording",
        name if len(events.pools) > 1 else None,
        blocks_at_start=first,
        live_at_start=before,
        live_at_end=before + blocks.live_bytes,
        missing=tuple(missing),
        refusals=tuple(
            RecordedRefusal(one.event + first, f"event {one.event + first}", one.requested, before + one.live)
            for one in refusals
        ),
    )
    return Columns(
        path,
        name,
        op_column,
        ids,
        sizes,
        origin=origin,
        owner=owner if events.tags else None,
        owners=tuple(events.tags),
        t_ns=times,
        thread=blocks.threads(),
    )


def _rows(events: Events, number: int) -> Iterator[tuple[int, int, int, int, int, int]]:
    # The import takes longer than the replay of a small trace.
    import numpy as np

    rows = events.rows[events.rows["pool"] == number]
    # A tag that is not in the file is none.
    tag = np.where((rows["tag"] >= 0) & (rows["tag"] < len(events.tags)), rows["tag"], -1)
    columns = (rows["op"], rows["id"], rows["size"], tag, rows["t_ns"], rows["thread"])
    return zip(*(column.tolist() for column in columns), strict=True)


def cut_short(events: Events) -> str:
    """Return a sentence on a recording of which the file could not be written any further."""
    said = f"its file could not be written any further: {os.strerror(events.error)}"
    if events.unwritten:
        return f"{said}; {counted(events.unwritten, 'event', 'is missing', 'are missing')} from then on"
    return f"{said}; the events from then on are missing"

"""Memory snapshots of PyTorch, as ``torch.cuda._memory_viz`` and the page pytorch.org/memory_viz read them.

The layout is that of ``torch/csrc/cuda/memory_snapshot.cpp`` in PyTorch's source, which
:mod:`allotment.trace.formats.pytorch` describes. A region of the pool is a segment, and a chunk is a block. What a
region that is joined to a former one adds is ``segment_map``, as with PyTorch's expandable segments. Blocks from before
the recording are in the segments alone.
"""

from collections.abc import Iterator, Mapping, Sequence

from allotment._core import Chunk, OutOfMemoryError, Pool, Region
from allotment.trace.exports import pickles
from allotment.trace.exports.frames import Frame
from allotment.trace.exports.pickles import Memo, integer
from allotment.trace.exports.replayed import Output, ReplayedProgram, pieces


def write(file: Output, programs: Sequence[ReplayedProgram]) -> None:
    """Write all programs: each is a device, numbered from 0 on.

    Raises:
        ValueError: The replay is of an elastic pool, which has pages in place of regions.
    """
    if any(program.options.elastic for program in programs):
        raise ValueError(
            "format 'pytorch' shows regions, and elastic pools have pages: replay without elastic"
        )
    for piece in pieces(_snapshot(programs)):
        file.write(piece)


def _snapshot(programs: Sequence[ReplayedProgram]) -> Iterator[bytes]:
    """Yield the pickle of a memory snapshot in PyTorch's format, in parts."""
    memo = Memo()
    devices = [_Device(program, number, memo) for number, program in enumerate(programs)]
    yield pickles.START + pickles.EMPTY_DICT + pickles.MARK
    yield memo.text("device_traces") + pickles.EMPTY_LIST
    for device in devices:
        # One instruction for each: the items of a trace are appended before it is itself.
        yield pickles.EMPTY_LIST
        yield from _batches(device.entries())
        yield b"a"
    yield memo.text("segments") + pickles.EMPTY_LIST
    for device in devices:
        yield from _batches(device.segments())
    yield memo.text("allocator_settings") + pickles.EMPTY_DICT
    yield memo.text("external_annotations") + pickles.EMPTY_LIST
    yield pickles.SETITEMS + pickles.END


class _Device:
    """Replays a program once more, event by event, and says what its pool did."""

    def __init__(self, program: ReplayedProgram, number: int, memo: Memo) -> None:
        options = program.options
        self._program = program
        self._number = number
        self._memo = memo
        # The gap between regions has no effect but that they are not joined.
        self._pool = Pool(
            options.limit,
            growth=options.growth,
            source="address-space",
            trim_on_oom=options.trim_on_oom,
            joins_regions=None if options.elastic else options.joins_regions,
            policy=options.policy,
            collect_garbage=False,
        )
        #: Bytes of each region by address, and of all.
        self._regions: Mapping[int, int] = {}
        self._reserved = 0
        #: Regions that were extended by another one.
        self._extended = set[int]()
        #: Address of each live block, by the event of its allocation.
        self._live: dict[int, int] = {}
        self._stacks: dict[int, bytes] = {}
        self._frames: dict[str, bytes] = {}

    def entries(self) -> Iterator[bytes]:
        """Yield the entries of the trace."""
        program, pool, live = self._program, self._pool, self._live
        columns, start = program.columns, program.columns.origin.blocks_at_start
        streams = [0] * program.events if columns.stream is None else columns.stream
        # Without times an event takes a microsecond.
        rows = zip(
            program.op.data,
            program.size.data,
            program.partner.data,
            program.group.data,
            program.times(1000).data,
            streams,
            strict=True,
        )
        for event, (op, size, partner, group, time, stream) in enumerate(rows):
            if size == 0:
                continue
            # Blocks from before the recording are in the segments alone.
            shown = event >= start
            if op == 1:
                try:
                    address = pool.malloc(size)
                except OutOfMemoryError as error:
                    # A refused request may have trimmed the pool.
                    yield from self._changes(time, stream, shown)
                    free = error.limit - error.reserved
                    yield self._entry("oom", free, size, stream, time, group, "device_free")
                    continue
                live[event] = address
                yield from self._changes(time, stream, shown)
                if shown:
                    yield self._entry("alloc", address, size, stream, time, group)
            elif (address := live.pop(partner, 0)) != 0:
                pool.free(address)
                yield self._entry("free_requested", address, size, stream, time, group)
                yield self._entry("free_completed", address, size, stream, time, group)

    def segments(self) -> Iterator[bytes]:
        """Yield the segments at the end; after the entries."""
        owners = {address: event for event, address in self._live.items()}
        for region in self._pool.snapshot().regions:
            yield b"".join(self._segment(region, owners))

    def _segment(self, region: Region, owners: Mapping[int, int]) -> Iterator[bytes]:
        """Yield the parts of a segment. A text is written where it is first met, so the parts are made in order."""
        text = self._memo.text
        in_use = [chunk for chunk in region.chunks if chunk.in_use]
        used = integer(sum(chunk.size for chunk in in_use))
        yield pickles.EMPTY_DICT + pickles.MARK
        yield text("device") + integer(self._number)
        yield text("address") + integer(region.address)
        yield text("total_size") + integer(region.size)
        yield text("allocated_size") + used
        yield text("active_size") + used
        yield text("requested_size") + integer(sum(chunk.requested for chunk in in_use))
        yield text("stream") + integer(0)
        yield text("segment_type") + text("large")
        yield text("segment_pool_id") + integer(0) + integer(0) + b"\x86"
        yield text("is_expandable") + (pickles.TRUE if region.address in self._extended else pickles.FALSE)
        yield text("frames") + pickles.EMPTY_LIST
        yield text("blocks") + pickles.EMPTY_LIST
        yield from _batches(self._block(chunk, owners.get(chunk.address)) for chunk in region.chunks)
        yield pickles.SETITEMS

    def _block(self, chunk: Chunk, event: int | None) -> bytes:
        """Return a block of a segment, pickled."""
        text = self._memo.text
        return b"".join(
            (
                pickles.EMPTY_DICT,
                pickles.MARK,
                text("address"),
                integer(chunk.address),
                text("size"),
                integer(chunk.size),
                text("requested_size"),
                integer(chunk.requested),
                text("state"),
                text("inactive" if event is None else "active_allocated"),
                text("frames"),
                pickles.EMPTY_LIST if event is None else self._stack(int(self._program.group[event])),
                pickles.SETITEMS,
            )
        )

    def _changes(self, time: int, stream: int, shown: bool) -> Iterator[bytes]:
        """Yield entries of the regions that came and went since the last call."""
        stats = self._pool.stats()
        if stats.num_regions == len(self._regions) and stats.reserved == self._reserved:
            return
        self._reserved = stats.reserved
        former, self._regions = (
            self._regions,
            {region.address: region.size for region in self._pool.snapshot().regions},
        )
        changes = [
            ("segment_free", address, size)
            for address, size in former.items()
            if address not in self._regions
        ]
        for address, size in self._regions.items():
            held = former.get(address, 0)
            if size != held:
                self._extended |= {address} if held else set()
                changes.append(("segment_map" if held else "segment_alloc", address + held, size - held))
        if shown:
            for action, address, size in changes:
                yield self._entry(action, address, size, stream, time, None)

    def _entry(
        self,
        action: str,
        address: int,
        size: int,
        stream: int,
        time: int,
        group: int | None,
        address_key: str = "addr",
    ) -> bytes:
        """Return an entry of a device's trace, pickled."""
        text = self._memo.text
        return b"".join(
            (
                pickles.EMPTY_DICT,
                pickles.MARK,
                text("action"),
                text(action),
                text(address_key),
                integer(address),
                text("size"),
                integer(size),
                text("stream"),
                integer(stream),
                text("time_us"),
                integer(time),
                text("frames"),
                pickles.EMPTY_LIST if group is None else self._stack(group),
                pickles.SETITEMS,
            )
        )

    def _stack(self, group: int) -> bytes:
        """Return a list of frames, empty where the trace does not say them: the first time whole, then a reference."""
        if self._program.columns.owner is None or group >= len(self._program.columns.owners):
            return pickles.EMPTY_LIST
        known = self._stacks.get(group)
        if known is not None:
            return known
        frames = map(self._frame, self._program.frames(group))
        stack = pickles.EMPTY_LIST + b"".join(_batches(frames))
        put, self._stacks[group] = self._memo.keep()
        return stack + put

    def _frame(self, frame: Frame) -> bytes:
        known = self._frames.get(frame.text)
        if known is not None:
            return known
        text = self._memo.text
        content = pickles.EMPTY_DICT + pickles.MARK + text("filename") + text(frame.file)
        content += text("line") + integer(frame.line) + text("name") + text(frame.name) + pickles.SETITEMS
        put, self._frames[frame.text] = self._memo.keep()
        return content + put


def _batches(items: Iterator[bytes]) -> Iterator[bytes]:
    """Yield instructions that append items to the list on top, some at a time."""
    held = 0
    for item in items:
        if held == 0:
            yield pickles.MARK
        yield item
        held += 1
        if held == pickles.MAX_ITEMS:
            yield pickles.APPENDS
            held = 0
    if held:
        yield pickles.APPENDS

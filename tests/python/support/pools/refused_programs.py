"""Refusals of recorded and generated programs in pools with too low a limit, and what is done with advice on them."""

import os
import random
from array import array
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path

from allotment import Advice, Allocation, OutOfMemoryError, Pool
from allotment._core import Program
from allotment._core import replay as replay_program
from allotment.trace import ReplayOptions, read_columns
from support.traces.snapshots import Recorder
from support.traces.trace_files import RECORDED

MIB = 1 << 20

#: Limits as shares of the peak of live bytes.
SHARES = (1.0, 1.01, 1.03, 1.06, 1.1, 1.15, 1.2, 1.3, 1.4, 1.5)

#: Pools that programs are replayed into.
SETTINGS = (
    *(
        ReplayOptions(growth=growth, policy=policy, trim_on_oom=trims)
        for growth, trims in ((True, True), (True, False), (False, True))
        for policy in ("tensorflow", "tight")
    ),
    ReplayOptions(elastic=True, page_size=64 << 10),
    ReplayOptions(elastic=True, page_size=2 * MIB),
)

#: Most refusals of one program that are followed by a higher limit.
_ROUNDS = 400


@dataclass(frozen=True, eq=False)
class Recorded:
    """A program: kinds (1 allocates, 2 frees), blocks and sizes of its events."""

    name: str
    op: tuple[int, ...]
    id: tuple[int, ...]
    size: tuple[int, ...]

    @cached_property
    def program(self) -> Program:
        """The program, to replay."""
        return Program(*(array("q", column) for column in (self.op, self.id, self.size)))

    @cached_property
    def events(self) -> list[tuple[int, int, int]]:
        """Kind, block and size of each event."""
        return list(zip(self.op, self.id, self.size, strict=True))


@dataclass(frozen=True)
class Refusal:
    """A pool that refuses a program something."""

    recorded: Recorded
    options: ReplayOptions
    #: The event of the first request that is refused.
    event: int

    def __str__(self) -> str:
        chosen = self.options
        kind = f"elastic {chosen.page_size}" if chosen.elastic else chosen.policy
        flags = f"{'growth ' * chosen.growth}{'trims ' * chosen.trim_on_oom}"
        return f"{self.recorded.name}: {kind} {flags}limit {chosen.limit} event {self.event}"


def first_refused(recorded: Recorded, options: ReplayOptions) -> int | None:
    """Return the event of the first request that a pool refuses, ``None`` if it serves all."""
    return replay_program(recorded.program, **asdict(options)).first_refused


def refusals(programs: Iterator[Recorded]) -> Iterator[Refusal]:
    """Yield the refusals of programs under all settings, one limit each: a different one every time."""
    turn = 0
    for recorded in programs:
        peak = recorded.program.peak_live
        for settings in SETTINGS:
            for step in range(len(SHARES)):
                limit = max(int(peak * SHARES[(turn + 7 * step) % len(SHARES)]), settings.page_size or 1)
                options = replace(settings, limit=limit)
                event = first_refused(recorded, options)
                if event is not None:
                    yield Refusal(recorded, options, event)
                    break
            turn += 1


def generated(seeds: int) -> Iterator[Recorded]:
    """Yield programs that fragment memory in different ways."""
    for seed in range(seeds):
        chosen = random.Random(seed)
        sizes = [
            1 + chosen.randrange(1 << chosen.randrange(8, 24)) for _ in range(chosen.choice([2, 8, 200]))
        ]
        length = chosen.choice([20, 60, 200, 1500])
        keeps = chosen.choice([0.2, 0.4, 0.48])
        events: list[tuple[int, int, int]] = []
        live: list[tuple[int, int]] = []
        for block in range(length):
            while live and chosen.random() < keeps:
                events.append((2, *live.pop(chosen.randrange(len(live)) if seed % 3 else 0)))
            size = chosen.choice(sizes)
            live.append((block, size))
            events.append((1, block, size))
        yield Recorded(f"seed {seed}", *zip(*events, strict=True))


def snapshots(seeds: int) -> Iterator[Recorded]:
    """Yield programs of an allocator that records itself as PyTorch does."""
    for seed in range(seeds):
        recorder = Recorder(10_000)
        recorder.run(200, seed)
        blocks: dict[int, int] = {}
        events: list[tuple[int, int, int]] = []
        for entry, _ in recorder.events:
            if entry["action"] == "alloc":
                blocks[entry["addr"]] = len(events)
                events.append((1, len(events), entry["size"]))
            elif entry["action"] == "free_completed":
                events.append((2, blocks.pop(entry["addr"]), entry["size"]))
        yield Recorded(f"snapshot {seed}", *zip(*events, strict=True))


def recorded(most_events: int | None = None) -> Iterator[Recorded]:
    """Yield the recorded programs of the repository, and of the folder in ``ALLOTMENT_TRACES``."""
    folders = [RECORDED, *map(Path, filter(None, [os.environ.get("ALLOTMENT_TRACES")]))]
    for path in sorted({path.name: path for folder in folders for path in folder.glob("*.npz")}.values()):
        columns = read_columns(path)
        if most_events is None or len(columns.op) <= most_events:
            yield Recorded(path.name, tuple(columns.op), tuple(columns.id), tuple(columns.size))


class Player:
    """Plays a program in a pool."""

    def __init__(self, recorded: Recorded, options: ReplayOptions) -> None:
        self.recorded = recorded
        self.pool = Pool(
            options.limit,
            growth=options.growth,
            source="address-space",
            trim_on_oom=options.trim_on_oom,
            joins_regions=None if options.elastic else options.joins_regions,
            policy=options.policy,
            elastic=options.elastic,
            page_size=options.page_size,
            collect_garbage=False,
        )
        self.held: dict[int, Allocation] = {}
        self.event = 0

    def play(self, until: int | None = None) -> OutOfMemoryError | None:
        """Play on to an event, or to the end; return the refusal that came before it, of ``self.event``."""
        for op, block, size in self.recorded.events[self.event : until]:
            if op == 1:
                try:
                    self.held[block] = self.pool.allocate(size)
                except OutOfMemoryError as error:
                    return error
            elif (allocation := self.held.pop(block, None)) is not None:
                allocation.free()
            self.event += 1
        return None

    def follow(self, piece: Advice) -> int:
        """Do what advice for now says and return the bytes to ask for."""
        match piece.action:
            case "free":
                blocks = {allocation.id: block for block, allocation in self.held.items()}
                for number in piece.allocations:
                    self.held.pop(blocks[number]).free()
            case "raise_limit":
                self.pool.set_limit(piece.bytes)
            case "trim":
                assert self.pool.trim() == piece.bytes
            case "ask_for":
                return piece.bytes
            case _:
                raise AssertionError(piece)
        return self.recorded.size[self.event]


def changed(options: ReplayOptions, piece: Advice) -> ReplayOptions:
    """Return the options of the next run that advice names."""
    match piece.action:
        case "raise_limit":
            return replace(options, limit=piece.bytes)
        case "policy":
            return replace(options, policy="tight")
        case "elastic":
            return replace(options, elastic=True, page_size=piece.bytes)
    raise AssertionError(piece)


def check(refusal: Refusal) -> set[tuple[str, str]]:
    """Follow each piece of advice on a refusal, and the one to raise the limit until the program completes.

    Returns the pieces as pairs of action and time.
    """
    player = Player(refusal.recorded, refusal.options)
    error = player.play(refusal.event + 1)
    assert error is not None, f"{refusal}: the pool serves what the replay refuses"
    assert player.event == refusal.event, refusal
    assert error.advice, f"{refusal}: there is no advice"
    followed = set()
    for piece in error.advice:
        if piece.when == "now":
            player = Player(refusal.recorded, refusal.options)
            assert player.play(refusal.event) is None
            size = player.follow(piece)
            assert size > 0, (str(refusal), piece)
            try:
                player.pool.allocate(size).free()
            except OutOfMemoryError as refused:
                raise AssertionError(f"{refusal}: {piece}") from refused
        else:
            again = first_refused(refusal.recorded, changed(refusal.options, piece))
            assert again is None or again > refusal.event, (str(refusal), piece, again)
        followed.add((piece.action, piece.when))
    _raise_until_complete(refusal)
    return followed


def _raise_until_complete(refusal: Refusal) -> None:
    """Raise the limit as advised at each refusal, until the program has come to its end."""
    player = Player(refusal.recorded, refusal.options)
    for _ in range(_ROUNDS):
        error = player.play()
        if error is None:
            assert player.event == len(refusal.recorded.op)
            return
        event, limit = player.event, player.pool.limit
        pieces = [piece for piece in error.advice if (piece.action, piece.when) == ("raise_limit", "now")]
        assert pieces, f"{refusal}: no higher limit serves event {event}"
        assert pieces[0].bytes > limit, (str(refusal), pieces)
        player.follow(pieces[0])
        assert player.play(event + 1) is None, f"{refusal}: event {event} is refused at {pieces[0].bytes}"
    raise AssertionError(f"{refusal}: {_ROUNDS} higher limits were not enough")

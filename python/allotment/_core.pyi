"""The compiled module: pools, allocations, and replays of recorded programs."""

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Literal, Self, SupportsIndex, TypeAlias, final

from typing_extensions import Buffer

from allotment.source import Source

__version__: str

#: A number of bytes, or a text such as ``"3MiB"``.
_Size: TypeAlias = SupportsIndex | str

class OutOfMemoryError(MemoryError):
    """No free chunk fits and the pool cannot grow. All figures are in bytes, from the moment of the refusal."""

    #: Bytes asked for.
    requested: int
    #: The most the pool may reserve.
    limit: int
    #: Bytes that the allocations held asked for.
    live_requested: int
    #: Bytes of the chunks in use.
    in_use: int
    #: ``in_use - live_requested``: bytes lost inside chunks.
    internal_fragmentation: int
    #: Bytes of all regions.
    reserved: int
    #: ``reserved - in_use``.
    free: int
    #: Size of the largest free chunk, 0 if there is none.
    largest_free: int
    #: Allocations held.
    num_live: int
    #: ``"full"``: in use and the request together are above the limit. ``"fragmented"``: there is room, in
    #: pieces that are too small. ``"slack"``: chunks are larger than what was asked for, and without the bytes
    #: lost in them the request would be within the limit. ``"limit"``: the request alone is above the limit.
    #: ``"source"``: the limit allows it, the source refused. ``"scope"``: the limit of a scope does not allow it.
    verdict: Literal["full", "fragmented", "slack", "limit", "source", "scope"]
    #: What set the limit.
    limit_set_by: str
    #: The scope whose limit does not allow it, after the scopes around it; ``None`` for other verdicts.
    scope: str | None
    #: Changes that make the request succeed, the most useful first.
    advice: tuple[Advice, ...]
    #: The advice in one sentence; empty if there is none.
    suggestion: str
    #: The allocations that take most, by size, the most first: at most four groups.
    by_size: tuple[SizeGroup, ...]
    #: The owners that hold most, the most first: at most four; empty where none are noted.
    by_owner: tuple[OwnerGroup, ...]
    #: The allocation that splits the largest free chunks, if one does.
    splitter: Splitter | None

    def _asdict(self) -> dict[str, Any]:
        """The message and the fields, by name."""

class InvalidFreeError(ValueError):
    """No allocation starts at the address: it was freed before, or never allocated. The pool is unchanged."""

    def _asdict(self) -> dict[str, Any]:
        """The message, by name."""

class MemoryDamageError(RuntimeError):
    """Guard mode found an invalid write: before an allocation, past its end, or into it after its free."""

    #: ``"before"``, ``"behind"`` or ``"freed"``.
    place: Literal["before", "behind", "freed"]
    #: First byte of the allocation.
    address: int
    #: Bytes that were asked for.
    requested: int
    #: Number of the allocation.
    id: int
    #: The first damaged byte: its distance from ``address``, negative in front of it.
    offset: int

    def _asdict(self) -> dict[str, Any]:
        """The message and the fields, by name."""

@final
class Advice:
    """One change that makes a refused request succeed; ``str()`` of it says so in words.

    ===============  =============================================================================
    ``action``       what to do, and what ``bytes`` is
    ===============  =============================================================================
    ``free``         free all of ``allocations``; the bytes of their chunks
    ``raise_limit``  set the pool's limit to ``bytes``, or start the program again with that limit
    ``ask_for``      request ``bytes`` bytes instead
    ``trim``         trim the pool, or the pools in ``targets`` on the same memory; what they hand back
    ``raise_scope``  set the limit of each scope in ``targets`` to the number there; the largest of them
    ``policy``       start the program again with ``policy="tight"``; bytes lost inside chunks now
    ===============  =============================================================================
    """

    def __new__(
        cls,
        action: str,
        bytes: int,
        when: str,
        text: str,
        allocations: Sequence[int] = (),
        targets: Sequence[tuple[str, int]] = (),
        exact: bool = False,
        needs_grant: bool = False,
    ) -> Self: ...
    def __reduce__(
        self,
    ) -> tuple[type[Self], tuple[str, int, str, str, list[int], list[tuple[str, int]], bool, bool]]: ...
    @property
    def action(self) -> str:
        """What to change: ``free``, ``raise_limit``, ``ask_for``, ``trim``, ``raise_scope`` or ``policy``."""
    @property
    def bytes(self) -> int:
        """The number that belongs to the action, in bytes."""
    @property
    def when(self) -> str:
        """``now``: change it on the pool as it is. ``next run``: start the same program with the change."""
    @property
    def text(self) -> str:
        """The advice in words, one line."""
    @property
    def allocations(self) -> list[int]:
        """With ``free``, the ids of the allocations to free, in ascending order."""
    @property
    def targets(self) -> list[tuple[str, int]]:
        """With ``raise_scope``, the scopes and their new limits; with ``trim``, other pools and what each hands back.

        Scopes stand in order, the outermost first.
        """
    @property
    def exact(self) -> bool:
        """Whether no smaller limit serves, or no larger size is served."""
    @property
    def needs_grant(self) -> bool:
        """Whether it holds only if the source grants more, where it is not known to."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: None  # type: ignore[assignment]

@final
class SizeGroup:
    """Allocations of one size, or of a range of sizes."""

    def __new__(cls, bytes: int, count: int, smallest: int, largest: int) -> Self: ...
    def __reduce__(self) -> tuple[type[Self], tuple[int, int, int, int]]: ...
    @property
    def bytes(self) -> int:
        """Bytes of all their chunks."""
    @property
    def count(self) -> int:
        """How many."""
    @property
    def smallest(self) -> int:
        """Size of the smallest chunk, in bytes."""
    @property
    def largest(self) -> int:
        """Size of the largest chunk, in bytes."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: None  # type: ignore[assignment]

@final
class OwnerGroup:
    """Allocations of one owner."""

    def __new__(cls, bytes: int, count: int, owner: str) -> Self: ...
    def __reduce__(self) -> tuple[type[Self], tuple[int, int, str]]: ...
    @property
    def bytes(self) -> int:
        """Bytes asked for, in whole granules of 256."""
    @property
    def count(self) -> int:
        """How many."""
    @property
    def owner(self) -> str:
        """The tag or scope, after the scopes around it."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: None  # type: ignore[assignment]

@final
class Splitter:
    """An allocation between two free chunks: without it they would be one."""

    def __new__(
        cls, address: int, size: int, id: int, owner: str | None, before: int, after: int
    ) -> Self: ...
    def __reduce__(self) -> tuple[type[Self], tuple[int, int, int, str | None, int, int]]: ...
    @property
    def address(self) -> int:
        """First byte of its chunk."""
    @property
    def size(self) -> int:
        """Bytes of its chunk."""
    @property
    def id(self) -> int:
        """Number of the allocation."""
    @property
    def owner(self) -> str | None:
        """Whose it is, if that is noted."""
    @property
    def before(self) -> int:
        """Bytes of the free chunk before it."""
    @property
    def after(self) -> int:
        """Bytes of the free chunk after it."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: None  # type: ignore[assignment]

@final
class Explanation:
    """Whether a request would be served, and why not."""

    @property
    def fits(self) -> bool:
        """Whether it would be served now, provided the source grants what the limit allows."""
    @property
    def verdict(self) -> Literal["fits", "full", "fragmented", "slack", "limit", "source", "scope"]:
        """What would stand in the way, as in ``OutOfMemoryError``; ``"fits"`` if nothing would."""
    @property
    def text(self) -> str:
        """The text that the refusal would have, in at most 25 lines."""
    @property
    def advice(self) -> tuple[Advice, ...]:
        """Changes that make the request succeed, the most useful first; empty if it would be served."""
    @property
    def suggestion(self) -> str | None:
        """The advice in one sentence; ``None`` if it would be served."""
    @property
    def by_size(self) -> tuple[SizeGroup, ...]:
        """The allocations that take most, by size, the most first: at most four groups."""
    @property
    def by_owner(self) -> tuple[OwnerGroup, ...]:
        """The owners that hold most, the most first: at most four; empty where none are noted."""
    @property
    def splitter(self) -> Splitter | None:
        """The allocation that splits the largest free chunks, if one does."""

@final
class Scope:
    """Counts what is allocated from a pool in a ``with`` block, and caps it if asked to.

    Scopes nest, and what an inner one holds counts for the outer ones. Figures are bytes asked for, in whole
    granules of 256: of now while the block runs, of its end afterwards. Any thread can leave it, and its last
    reference leaves it, as that of a generator that was never finished. In a forked child leaving it does nothing.
    """

    @property
    def name(self) -> str:
        """Its name."""
    @property
    def limit(self) -> int | None:
        """The most it may hold, in bytes, if that is capped."""
    def set_limit(self, limit: _Size | None) -> None:
        """Change the limit, or take it away with ``None``, before the block or while it runs.

        What the scope holds may be above its new limit: then it gets nothing more until it is below.

        Raises:
            ValueError: Not a size.
            RuntimeError: The block has ended.
        """
    @property
    def peak(self) -> int:
        """The most bytes that were held at once."""
    @property
    def allocated(self) -> int:
        """Bytes ever allocated in it."""
    @property
    def freed(self) -> int:
        """Bytes given back of those."""
    @property
    def live(self) -> int:
        """Bytes held: now, or when the block ended."""
    @property
    def num_live(self) -> int:
        """Allocations held: now, or when the block ended."""
    def __enter__(self) -> Self:
        """Begin to count.

        Raises:
            RuntimeError: It was entered before.
        """
    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        """Stop counting.

        Raises:
            RuntimeError: It is not entered.
        """

@final
class PoolStats:
    """What a pool holds and has done: one consistent copy. Amounts are bytes."""

    def __new__(
        cls,
        requested: int,
        in_use: int,
        internal_fragmentation: int,
        reserved: int,
        limit: int,
        free: int,
        largest_free: int,
        fragmentation: float,
        peak_requested: int,
        peak_in_use: int,
        peak_reserved: int,
        largest_requested: int,
        num_allocs: int,
        num_live: int,
        num_regions: int,
        num_grants: int,
        num_refused: int,
    ) -> Self: ...
    @property
    def requested(self) -> int:
        """Bytes that callers asked for and still hold."""
    @property
    def in_use(self) -> int:
        """Bytes of the chunks in use."""
    @property
    def internal_fragmentation(self) -> int:
        """``in_use - requested``: bytes lost inside chunks.

        They go to rounding, alignment, red zones, and remainders that were not split off.
        """
    @property
    def reserved(self) -> int:
        """Bytes of all regions, in use or not."""
    @property
    def limit(self) -> int:
        """The most that may be reserved."""
    @property
    def free(self) -> int:
        """``reserved - in_use``."""
    @property
    def largest_free(self) -> int:
        """Size of the largest free chunk, 0 if there is none."""
    @property
    def fragmentation(self) -> float:
        """``(free - largest_free) / free``, 0 when nothing is free."""
    @property
    def peak_requested(self) -> int:
        """The most ``requested`` was since the last ``reset_peaks()``."""
    @property
    def peak_in_use(self) -> int:
        """The most ``in_use`` was since the last ``reset_peaks()``."""
    @property
    def peak_reserved(self) -> int:
        """The most ``reserved`` was since the last ``reset_peaks()``."""
    @property
    def largest_requested(self) -> int:
        """The largest request ever served."""
    @property
    def num_allocs(self) -> int:
        """Allocations ever made; zero-byte requests do not count."""
    @property
    def num_live(self) -> int:
        """Allocations held now."""
    @property
    def num_regions(self) -> int:
        """Regions held now."""
    @property
    def num_grants(self) -> int:
        """Regions ever got from the source."""
    @property
    def num_refused(self) -> int:
        """Requests that were refused."""
    def _asdict(self) -> dict[str, Any]:
        """The fields by name, each as it is."""
    def __reduce__(self) -> tuple[type[Self], tuple[Any, ...]]: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: None  # type: ignore[assignment]

@final
class Chunk:
    """A piece of a region, wholly in use or wholly free."""

    def __new__(
        cls, address: int, size: int, requested: int, id: int, in_use: bool, owner: str | None
    ) -> Self: ...
    @property
    def address(self) -> int:
        """First byte."""
    @property
    def size(self) -> int:
        """Length in bytes."""
    @property
    def requested(self) -> int:
        """Bytes the caller asked for, 0 when free."""
    @property
    def id(self) -> int:
        """Number of the allocation, 0 when free."""
    @property
    def in_use(self) -> bool:
        """Whether an allocation holds it."""
    @property
    def owner(self) -> str | None:
        """Whose allocation it is, after the scopes around it, if that is noted."""
    def _asdict(self) -> dict[str, Any]:
        """The fields by name, each as it is."""
    def __reduce__(self) -> tuple[type[Self], tuple[Any, ...]]: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: None  # type: ignore[assignment]

@final
class Region:
    """One span got from the source, or several that touched and were joined."""

    def __new__(cls, address: int, size: int, chunks: Sequence[Chunk]) -> Self: ...
    @property
    def address(self) -> int:
        """First byte."""
    @property
    def size(self) -> int:
        """Length in bytes."""
    @property
    def chunks(self) -> tuple[Chunk, ...]:
        """Chunks in address order; they cover the region without gaps."""
    def _asdict(self) -> dict[str, Any]:
        """The fields by name, each as it is."""
    def __reduce__(self) -> tuple[type[Self], tuple[Any, ...]]: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: None  # type: ignore[assignment]

@final
class KeptRegion:
    """A region that a trim leaves, because something in it is in use."""

    def __new__(
        cls, address: int, size: int, in_use: int, num_live: int, largest: int, owner: str | None
    ) -> Self: ...
    @property
    def address(self) -> int:
        """First byte."""
    @property
    def size(self) -> int:
        """Length in bytes."""
    @property
    def in_use(self) -> int:
        """Bytes of its chunks in use."""
    @property
    def num_live(self) -> int:
        """Allocations in it."""
    @property
    def largest(self) -> int:
        """Number of the largest of them."""
    @property
    def owner(self) -> str | None:
        """Whose that is, if it is noted."""
    def _asdict(self) -> dict[str, Any]:
        """The fields by name, each as it is."""
    def __reduce__(self) -> tuple[type[Self], tuple[Any, ...]]: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: None  # type: ignore[assignment]

@final
class Snapshot:
    """Every region and every chunk of a pool, as of one moment."""

    def __new__(cls, name: str, stats: PoolStats, regions: Sequence[Region]) -> Self: ...
    @property
    def name(self) -> str:
        """The pool's name."""
    @property
    def stats(self) -> PoolStats:
        """The counters of the same moment."""
    @property
    def regions(self) -> tuple[Region, ...]:
        """Regions in address order."""
    def summary(self) -> str:
        """A few lines for people: totals and the largest groups of allocations."""
    def to_json(self) -> str:
        """The whole picture as one JSON object, with the same names."""
    def _asdict(self) -> dict[str, Any]:
        """The fields by name, each as it is."""
    def __reduce__(self) -> tuple[type[Self], tuple[Any, ...]]: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: None  # type: ignore[assignment]

@final
class Allocation(Buffer):
    """What ``Pool.allocate`` hands out; freed by ``free()``, by leaving ``with``, or with its last reference.

    Over host memory it is a writable buffer of ``requested`` bytes, as in ``numpy.frombuffer(a)``.
    """

    @property
    def address(self) -> int:
        """First byte, a multiple of the alignment; 0 for zero bytes."""
    @property
    def requested(self) -> int:
        """Bytes asked for."""
    @property
    def size(self) -> int:
        """Bytes from ``address`` to the end of the chunk: the request in granules of 256, or more.

        In guard mode the request exactly.
        """
    @property
    def id(self) -> int:
        """Counts up from 1 with every allocation of the pool and is never used again; 0 for zero bytes."""
    def free(self) -> None:
        """Give the memory back.

        Raises:
            InvalidFreeError: It was freed before.
            MemoryDamageError: In guard mode; it was freed nevertheless.
            BufferError: A ``memoryview`` or an array over it is still alive.
        """
    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None, /
    ) -> None: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...
    def __release_buffer__(self, buffer: memoryview, /) -> None: ...

@final
class HostMemory:
    """Host memory of a fixed size, for several pools to share: what one has reserved, the others cannot.

    Reserving takes address space only; physical memory appears where something is written.

    Args:
        capacity: The most that may be reserved from it at once.
        within_machine: Refuse arrays for which the machine has no memory left, and addresses when it has next to none;
            else the kernel ends the program that fills them. Where the system tells how much there is: on Linux, also
            in control groups.
    """

    def __new__(cls, capacity: _Size, *, within_machine: bool = False) -> Self: ...
    @property
    def within_machine(self) -> bool:
        """Whether pools over it refuse what the machine has no memory for."""
    @property
    def capacity(self) -> int:
        """The most that may be reserved from it at once, in bytes."""
    @property
    def used(self) -> int:
        """Bytes reserved from it now, over all pools."""

@final
class Pool:
    """A best-fit allocator over regions from one source, under a limit that holds exactly.

    Args:
        limit: The most the pool may reserve: bytes, or a text such as ``"1GiB"``.
        growth: Start with 2 MiB and double, or reserve the whole limit at first use.
        source: ``"host"`` (real host memory), a ``HostMemory`` (the same, of a fixed size, shared),
            ``"address-space"`` (made-up addresses), or a ``Source``.
        trim_on_oom: Before refusing, hand back wholly free regions and grow again.
        joins_regions: Whether a region that starts where another ends is joined to it; ``None`` leaves
            that to the source.
        wait_seconds: How long a refused request waits for another thread's free.
        fragmentation_fraction: Under TensorFlow's policy: split off a remainder from this share of the limit
            on; 0 means from 128 MiB on.
        policy: ``"tensorflow"`` splits a chunk if the remainder is as large as the request, or reaches 128 MiB:
            TensorFlow's decisions, and up to half of a chunk lost inside it. ``"tight"`` splits off every
            remainder.
        name: Name in reports; one is made if there is none.
        owner_tags: Note for each allocation which line of Python asked for it, or which operation; ``None``
            leaves that to ``ALLOTMENT_OWNER_TAGS``.
        idle_trim_seconds: Hand wholly free regions back whenever the pool was not used for so long. One thread of the
            process does so for all pools, and ends with the last of them.
        limit_set_by: Who set the limit, for reports.
        guard: Find overruns and writes after a free, in host memory. ``None``: as ``ALLOTMENT_GUARD`` says (0 or
            1), where the source is host memory.
        quarantine: In guard mode, the most bytes of freed chunks that wait, filled with poison, for a look at them
            before they are used again; ``None``: an eighth of the limit, at most 64 MiB.
        collect_garbage: Run Python's collector before a request is refused. ``None``: as ``ALLOTMENT_COLLECT_GARBAGE``
            says (0 or 1), or without it unless the program has switched the collector off (``gc.disable()``).

    Raises:
        ValueError: An option is out of range; the text names it, the value and what is allowed.
        TypeError: An option is of the wrong type.

    Warns:
        UserWarning: An option has no effect beside the others.

    Before a request is refused, Python's garbage is collected once: memory may be held by nothing else. That takes
    milliseconds, so refusals in a row, with nothing allocated or freed in the pool between them, collect once for all
    of them. A program that drops a reference cycle with memory of the pool between two of them calls ``gc.collect()``.

    In a forked child, a pool of the parent raises ``RuntimeError``, except at the end of a ``with`` block, which does
    nothing there; memory written before stays readable. A request to a source that is asked by its own thread, or
    that grants what cannot be a region, is a ``RuntimeError``, too.

    In guard mode each request takes at least 512 bytes more, for a red zone on both sides. Damage is a
    ``MemoryDamageError`` at the free, or at the next call that allocates, frees, trims or closes; the logger
    ``allotment.guard`` gets what no call could tell, and what is still allocated when the pool is closed, or gone,
    or the interpreter ends.
    """

    def __new__(
        cls,
        limit: _Size,
        *,
        growth: bool = True,
        source: Literal["host", "address-space"] | HostMemory | Source = "host",
        trim_on_oom: bool = True,
        joins_regions: bool | None = None,
        wait_seconds: float = 0.0,
        fragmentation_fraction: float = 0.0,
        policy: Literal["tensorflow", "tight"] = "tensorflow",
        name: str | None = None,
        owner_tags: bool | None = None,
        idle_trim_seconds: float | None = None,
        limit_set_by: str = "limit",
        guard: bool | None = None,
        quarantine: _Size | None = None,
        collect_garbage: bool | None = None,
    ) -> Self: ...
    @property
    def limit(self) -> int:
        """The most the pool may reserve, in bytes."""
    def set_limit(self, limit: _Size, *, trim: bool = False, limit_set_by: str = "set_limit") -> None:
        """Change the limit, up or down, while the pool is in use.

        With ``trim``, wholly free regions go back first, if that is needed and enough.

        Raises:
            ValueError: The limit is out of range, or below what stays reserved. Nothing changed then.
        """
    @property
    def growth(self) -> bool:
        """Whether it starts small and doubles."""
    def set_growth(self, growth: bool) -> None:
        """Turn growth on or off, for regions to come: off, the next one is all that the limit leaves."""
    @property
    def owner_tags(self) -> bool:
        """Whether allocations are noted under the tag of their thread, or the line that asks."""
    @property
    def policy(self) -> Literal["tensorflow", "tight"]:
        """The split policy."""
    @property
    def name(self) -> str:
        """Name in reports."""
    @property
    def guard(self) -> bool:
        """Whether it finds overruns and writes after a free."""
    @property
    def collect_garbage(self) -> bool | None:
        """Whether Python's collector runs before a refusal; ``None``: unless the program has switched it off."""
    def allocate(self, nbytes: _Size, *, alignment: int = 256) -> Allocation:
        """Allocate at least ``nbytes`` bytes.

        Zero bytes give an allocation with address 0 and size 0. ``alignment`` is a power of two up to 4096;
        above 256 the chunk is that much longer.

        Raises:
            OutOfMemoryError: No free chunk fits and there is no more to get.
            MemoryDamageError: In guard mode, for damage found before; the next call goes on.
            ValueError: A size or an alignment is out of range, or the pool is closed.
        """
    def malloc(self, nbytes: _Size) -> int:
        """Allocate at least ``nbytes`` bytes and return their address: the door with the least overhead.

        Zero bytes give 0. Whoever calls this keeps the pool alive and frees the address.

        Raises:
            OutOfMemoryError: No free chunk fits and there is no more to get.
            MemoryDamageError: In guard mode, for damage found before; the next call goes on.
            ValueError: The size is out of range, or the pool is closed.
        """
    def free(self, address: int) -> None:
        """Free what starts at ``address``; 0 does nothing.

        Raises:
            InvalidFreeError: No allocation starts there: freed twice, or never handed out.
            BufferError: A buffer or an array over it is alive; so is each array whose data NumPy has in the pool.
            MemoryDamageError: In guard mode; it was freed nevertheless.
        """
    def stats(self) -> PoolStats:
        """What the pool holds and has done."""
    def reset_peaks(self) -> None:
        """Make every ``peak_…`` what it is now; cumulative counters stay."""
    def snapshot(self) -> Snapshot:
        """Every region and every chunk."""
    def can_allocate(self, nbytes: _Size) -> bool:
        """Whether a request would be served now, provided the source grants what the limit allows.

        A closed pool serves nothing, and more bytes than can be counted fit nowhere.
        """
    def explain(self, nbytes: _Size) -> Explanation:
        """Whether a request would be served now; if not, why, and what would help.

        Raises:
            ValueError: The size is out of range, or the pool is closed.
        """
    def scope(self, name: str, *, limit: _Size | None = None, every_thread: bool = False) -> Scope:
        """Count what is allocated in a ``with`` block, and cap it if asked to.

        Args:
            name: Name in reports.
            limit: The most it may hold: bytes, or a text such as ``"64MiB"``.
            every_thread: Count what any thread allocates that is in no scope of its own, instead of what this
                one does.
        """
    def trim(self) -> int:
        """Hand every wholly free region back to the source; return their bytes.

        Raises:
            MemoryDamageError: In guard mode, for damage in what had been freed; the regions went back.
        """
    def kept_regions(self) -> tuple[KeptRegion, ...]:
        """The regions that a trim leaves, and what is in them, in address order."""
    def close(self) -> None:
        """Take no more requests. Regions go back when the last allocation is gone."""
    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None, /
    ) -> None: ...

@final
class ArrayMemory:
    """A NumPy memory handler (NEP 49) over a pool, to be installed in a context of ``contextvars``.

    An array's data goes back to the pool when the array dies, on any thread, and keeps the pool until then.

    Args:
        pool: Where the data is to be.
        keeps_small_data: Keep some data of dead small arrays for the next ones. Whatever is asked of the pool finds it
            given back; its peaks and its number of allocations may show it.
        serves_forked_children: In a forked child, which cannot use the pool, give out NumPy's own memory instead of
            refusing.

    Raises:
        ValueError: The pool's memory is not memory of this process.
        ImportError: NumPy is missing, or too old for memory handlers.
        RuntimeError: NumPy's handlers are of a kind that this does not know.
    """

    def __new__(
        cls, pool: Pool, *, keeps_small_data: bool = False, serves_forked_children: bool = False
    ) -> Self: ...
    def install(self) -> object:
        """From here on, the data of arrays made in the current context is in the pool; return the former handler."""
    @staticmethod
    def restore(former: object) -> None:
        """Make a handler that ``install`` returned the current context's again.

        Raises:
            ValueError: Not a handler.
        """
    def holds(self, address: SupportsIndex) -> bool:
        """Whether data of an array starts at ``address`` in the pool."""
    def install_process_wide(self) -> None:
        """From here on, the data of arrays made in any context without a handler of its own is in the pool.

        The pool then lives as long as the process.

        Raises:
            RuntimeError: Another pool serves the process, or NumPy's default handler cannot be replaced.
        """
    @staticmethod
    def stop_process_wide() -> bool:
        """End ``install_process_wide``, for new arrays; return whether there was anything to end."""
    @staticmethod
    def take_refusal(at: tuple[str, int] | None = None) -> BaseException | None:
        """Why a pool refused memory to an array last, on this thread; asked once for each refusal.

        Its attribute ``pool`` is the pool's name.

        Args:
            at: File and line: only if the array was to be made there, as far as that is known.
        """

@final
class Program:
    """A recorded program that makes sense: every free has its allocation.

    Args:
        op: One number an event: 1 allocates, 2 frees. A buffer of 64-bit signed integers, as the others.
        id: Names the block; may be used again after its free.
        size: Bytes requested; a free repeats them.

    Raises:
        ValueError: At the first event that makes no sense; the text starts with ``event N:``, N from 0.
    """

    def __new__(cls, op: Buffer, id: Buffer, size: Buffer) -> Self: ...
    @property
    def events(self) -> int:
        """Number of events."""
    @property
    def peak_live(self) -> int:
        """The most bytes live at once, as requested."""

@final
class Replay:
    """What came of a replay."""

    @property
    def refused(self) -> int:
        """Requests that were refused."""
    @property
    def first_refused(self) -> int | None:
        """The event of the first refusal, counted from 0."""
    @property
    def ns_per_event(self) -> float:
        """Nanoseconds an event, of the loop of allocations and frees alone; 0 without events."""
    @property
    def stats(self) -> PoolStats:
        """The pool's counters at the end."""

@final
class Limits:
    """The limits that a search found, in bytes."""

    @property
    def min_limit(self) -> int:
        """The smallest limit at which a replay refuses nothing; the smallest that was found if not complete."""
    @property
    def safe_limit(self) -> int:
        """Every limit from here up to 1.25 times this serves; the smallest such limit if complete."""
    @property
    def complete(self) -> bool:
        """Whether every limit was tried that has to be."""
    @property
    def untried(self) -> tuple[int, int] | None:
        """Where time ran out, the first and the last limit that was not tried."""

def replay(
    program: Program,
    *,
    limit: _Size,
    growth: bool = True,
    trim_on_oom: bool = False,
    gap: _Size = 0,
    joined: bool | None = None,
    policy: Literal["tensorflow", "tight"] = "tensorflow",
    offsets: Buffer | None = None,
) -> Replay:
    """Play a program into a fresh pool on made-up addresses.

    Regions lie ``gap`` bytes apart, a multiple of 256. Those that touch are joined if ``joined``, by default when
    ``gap`` is 0. ``offsets`` is a writable buffer of 64-bit signed integers, one an event, for the distances from
    the first region's start: -1 for a refusal and for the free of a refused block; a free repeats what it frees.

    Raises:
        ValueError: An option is out of range, or ``offsets`` has the wrong length.
    """

def find_limits(
    program: Program,
    *,
    granularity: _Size = 65536,
    seconds: float = 60.0,
    growth: bool = True,
    trim_on_oom: bool = False,
    gap: _Size = 0,
    joined: bool | None = None,
    policy: Literal["tensorflow", "tight"] = "tensorflow",
    progress: Callable[[int, int], object] | None = None,
) -> Limits:
    """Find the smallest limit at which a replay refuses nothing, and one from which on limits are safe.

    Best fit is not monotone: a limit may serve while a larger one refuses. So every multiple of ``granularity`` is
    tried, from the peak of live bytes up to 1.25 times the safe limit, on all cores, for as long as ``seconds``.
    Where regions lie apart, a safe limit serves both with rising and with falling addresses of regions: of equal
    chunks the pool uses the one with the lower address.

    Args:
        program: What is replayed.
        granularity: Limits are multiples of this; itself a multiple of 256.
        seconds: When the search ends at the latest. What it did not try is in the result.
        growth: As for :func:`replay`.
        trim_on_oom: As for :func:`replay`.
        gap: As for :func:`replay`.
        joined: As for :func:`replay`.
        policy: As for :func:`replay`.
        progress: Called now and then with the number of limits that are known to serve or not, and of all.

    Raises:
        ValueError: An option is out of range, or no limit serves the program.
    """

def parse_size(size: _Size, /) -> int:
    """Bytes of a size such as ``4096``, ``"512KiB"``, ``"1.5GiB"`` or ``"2gb"``, or of what ``format_size`` writes.

    Raises:
        ValueError: Not a size, negative, or above 2**63 - 256.
        TypeError: Neither a whole number nor a text.
    """

def format_size(nbytes: int, /) -> str:
    """A size for people: ``24 MiB``, ``1.51 GiB``, ``300 B``."""

def collect_garbage(pool: Pool | None) -> bool:
    """Run Python's collector before memory is refused; return whether it ran.

    It does not run where the pool, or for memory without a pool the environment, says so, nor where it would be the
    second time with nothing allocated or freed in the pool since the first, which freed nothing of it.

    Raises:
        ValueError: ``ALLOTMENT_COLLECT_GARBAGE`` is neither 0 nor 1.
    """

def show_text(text: str, /) -> str:
    """A text as messages show it: characters that do not print as escapes, cut at 200 characters."""

def show_value(value: object, /) -> str:
    """A value as messages show it: its ``repr``, what does not print in it as escapes, cut at 200 characters."""

def machine_memory() -> int | None:
    """Bytes of memory that this machine has, under the limits of the control groups that the process is in.

    ``None`` where the system does not tell.
    """

def set_tag(tag: str | None) -> str | None:
    """Set what this thread calls its work, in pools with ``owner_tags``; return what it called it before."""

def all_stats() -> list[tuple[str, int, PoolStats]]:
    """Name, number and figures of every pool that is alive, in the order in which they were made."""

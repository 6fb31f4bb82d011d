"""The compiled module: pools, allocations, and replays of recorded programs.

Longer than 300 lines: the stub of one compiled module.
"""

import os
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, ClassVar, Literal, Self, SupportsIndex, TypeAlias, final

from typing_extensions import Buffer, disjoint_base

from allotment.source import Source
from allotment.trace import Recording

__version__: str

#: A number of bytes, or a text such as ``"3MiB"``.
_Size: TypeAlias = SupportsIndex | str

class OutOfMemoryError(MemoryError):
    """A pool refused a request: no free chunk fits, and its limit or its source has no more.

    All figures are of the moment of the refusal. ``str()`` of the error is a report of at most 25 lines.

    Attributes:
        requested (int): Bytes of the request.
        limit (int): The most bytes that the pool may reserve.
        limit_set_by (str): The setting that decided the limit.
        live_requested (int): Bytes requested by the allocations that are live.
        in_use (int): Bytes of the chunks in use.
        internal_fragmentation (int): Bytes lost inside chunks, ``in_use - live_requested``.
        reserved (int): Bytes of all regions.
        free (int): Free bytes in the regions, ``reserved - in_use``.
        largest_free (int): Bytes of the largest free chunk, 0 if there is none; in an elastic pool of the largest
            request that its memory serves.
        num_live (int): Number of live allocations.
        verdict (str): The reason. ``"full"``: the bytes in use and the request together exceed the limit.
            ``"fragmented"``: enough is free, in pieces that are too small. ``"slack"``: enough would be free
            without the bytes lost inside chunks. ``"limit"``: the request alone exceeds the limit. ``"source"``:
            the limit allows the request, the source refused it. ``"scope"``: the limit of a scope does not allow
            it.
        scope (str | None): The scope whose limit does not allow the request, after the scopes around it; ``None``
            for other verdicts.
        advice (tuple[Advice, ...]): Changes that make the request succeed, the most useful first.
        suggestion (str): The advice in one sentence; empty if there is none.
        by_size (tuple[SizeGroup, ...]): The allocations that take most, grouped by size, the largest first; at most
            four.
        by_owner (tuple[OwnerGroup, ...]): The owners that hold most, the largest first; at most four, and empty in
            a pool without ``owner_tags``.
        splitter (Splitter | None): The allocation between the largest free chunks, if there is one.
    """

    requested: int
    limit: int
    live_requested: int
    in_use: int
    internal_fragmentation: int
    reserved: int
    free: int
    largest_free: int
    num_live: int
    verdict: Literal["full", "fragmented", "slack", "limit", "source", "scope"]
    limit_set_by: str
    scope: str | None
    advice: tuple[Advice, ...]
    suggestion: str
    by_size: tuple[SizeGroup, ...]
    by_owner: tuple[OwnerGroup, ...]
    splitter: Splitter | None

    def _asdict(self) -> dict[str, Any]:
        """Return the message and the public attributes by name."""

class InvalidFreeError(ValueError):
    """An address is not the start of a live allocation: it was freed before, or never handed out.

    The pool is unharmed.
    """

    def _asdict(self) -> dict[str, Any]:
        """Return the message and the public attributes by name."""

class MemoryDamageError(RuntimeError):
    """A program wrote before an allocation, past its end, or into it after its free. Only guard mode finds this.

    Attributes:
        place (str): ``"before"``, ``"behind"`` or ``"freed"``.
        address (int): First byte of the allocation.
        requested (int): Bytes that were requested.
        id (int): Number of the allocation.
        offset (int): Distance of the first damaged byte from ``address``, negative before it.
    """

    place: Literal["before", "behind", "freed"]
    address: int
    requested: int
    id: int
    offset: int

    def _asdict(self) -> dict[str, Any]:
        """Return the message and the public attributes by name."""

@final
class Advice:
    """One change that makes a refused request succeed; ``str()`` of it is one sentence.

    ===============  =============================================================================
    ``action``       the change, and the meaning of ``bytes``
    ===============  =============================================================================
    ``free``         free all of ``allocations``; the bytes of their chunks
    ``raise_limit``  set the pool's limit to ``bytes``, or start the program again with that limit
    ``ask_for``      request ``bytes`` bytes instead
    ``trim``         trim the pool, or the pools in ``targets`` on the same memory; the bytes that go back
    ``raise_scope``  set the limit of each scope in ``targets`` to the number there; the largest of them
    ``policy``       start the program again with ``policy="tight"``; bytes lost inside chunks now
    ``elastic``      start the program again with ``elastic=True`` and pages of ``bytes`` bytes
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
        """The change: ``free``, ``raise_limit``, ``ask_for``, ``trim``, ``raise_scope``, ``policy`` or ``elastic``."""
    @property
    def bytes(self) -> int:
        """The number of bytes that belongs to the action."""
    @property
    def when(self) -> str:
        """``now`` for a change of the pool as it is, ``next run`` for one before the program starts again."""
    @property
    def text(self) -> str:
        """The advice as one line of text."""
    @property
    def allocations(self) -> list[int]:
        """The ids of the allocations to free, ascending; empty unless the action is ``free``."""
    @property
    def targets(self) -> list[tuple[str, int]]:
        """Names and bytes that belong to the action; empty unless it is ``raise_scope`` or ``trim``.

        With ``raise_scope``, the scopes and their new limits, the outermost first. With ``trim``, other pools and
        the bytes that each gives back.
        """
    @property
    def exact(self) -> bool:
        """Whether the number is the best one: no smaller limit serves, no larger size is served."""
    @property
    def needs_grant(self) -> bool:
        """Whether the advice holds only if the source grants more, where the pool cannot know that."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: None  # type: ignore[assignment]

@final
class SizeGroup:
    """Live allocations whose chunks have one size, or a range of sizes."""

    def __new__(cls, bytes: int, count: int, smallest: int, largest: int) -> Self: ...
    def __reduce__(self) -> tuple[type[Self], tuple[int, int, int, int]]: ...
    @property
    def bytes(self) -> int:
        """Bytes of all their chunks."""
    @property
    def count(self) -> int:
        """Number of allocations."""
    @property
    def smallest(self) -> int:
        """Bytes of the smallest chunk."""
    @property
    def largest(self) -> int:
        """Bytes of the largest chunk."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: None  # type: ignore[assignment]

@final
class OwnerGroup:
    """Live allocations of one owner."""

    def __new__(cls, bytes: int, count: int, owner: str) -> Self: ...
    def __reduce__(self) -> tuple[type[Self], tuple[int, int, str]]: ...
    @property
    def bytes(self) -> int:
        """Bytes requested, each request in whole granules of 256."""
    @property
    def count(self) -> int:
        """Number of allocations."""
    @property
    def owner(self) -> str:
        """The tag or scope, after the scopes around it."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: None  # type: ignore[assignment]

@final
class Splitter:
    """An allocation between two free chunks, which would be one chunk without it."""

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
        """Its owner; ``None`` in a pool without ``owner_tags``."""
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
    """Whether a request would be served, and if not, the reason: the result of ``Pool.explain``."""

    @property
    def fits(self) -> bool:
        """Whether the request would be served now, provided the source grants what the limit allows."""
    @property
    def verdict(self) -> Literal["fits", "full", "fragmented", "slack", "limit", "source", "scope"]:
        """The reason why it would be refused, as in ``OutOfMemoryError``; ``"fits"`` if it would be served."""
    @property
    def text(self) -> str:
        """The report that the refusal would have, at most 25 lines."""
    @property
    def advice(self) -> tuple[Advice, ...]:
        """Changes that make the request succeed, the most useful first; empty if it would be served."""
    @property
    def suggestion(self) -> str | None:
        """The advice in one sentence; ``None`` if the request would be served."""
    @property
    def by_size(self) -> tuple[SizeGroup, ...]:
        """The allocations that take most, grouped by size, the largest first; at most four groups."""
    @property
    def by_owner(self) -> tuple[OwnerGroup, ...]:
        """The owners that hold most, the largest first; at most four, empty in a pool without ``owner_tags``."""
    @property
    def splitter(self) -> Splitter | None:
        """The allocation between the largest free chunks, if there is one."""

@final
class Scope:
    """Counts what a ``with`` block allocates from a pool, and optionally limits it. ``Pool.scope`` makes one.

    Scopes nest: an allocation counts for its scope and for the scopes around it. Figures are bytes requested, each
    request in whole granules of 256 bytes. They are current while the block runs, and those of its end afterwards.
    Any thread can leave the scope; the last reference to it leaves it, too, such as that of a generator that was
    never finished. In a forked child leaving it does nothing.
    """

    @property
    def name(self) -> str:
        """The scope's name in reports."""
    @property
    def limit(self) -> int | None:
        """The most bytes that the scope may hold; ``None`` without a limit."""
    def set_limit(self, limit: _Size | None) -> None:
        """Change the limit, or remove it with ``None``, before the block or while it runs.

        A scope that holds more than its new limit gets no memory until it holds less.

        Args:
            limit: Bytes, a text such as ``"64MiB"``, or ``None``.

        Raises:
            ValueError: The limit is not a size.
            RuntimeError: The block has ended.
        """
    @property
    def peak(self) -> int:
        """The most bytes that were held at once."""
    @property
    def allocated(self) -> int:
        """Bytes allocated since the start of the block."""
    @property
    def freed(self) -> int:
        """Bytes freed of those that the scope allocated."""
    @property
    def live(self) -> int:
        """Bytes held now, or when the block ended."""
    @property
    def num_live(self) -> int:
        """Number of allocations held now, or when the block ended."""
    def __enter__(self) -> Self:
        """Begin to count.

        Raises:
            RuntimeError: The scope was entered before.
        """
    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        """Stop counting.

        Raises:
            RuntimeError: The scope is not entered.
        """

@final
class PoolStats:
    """The counters of a pool at one moment. Amounts are bytes."""

    def __new__(
        cls,
        requested: int,
        in_use: int,
        internal_fragmentation: int,
        reserved: int,
        limit: int,
        free: int,
        thread_cached: int,
        largest_free: int,
        fragmentation: float,
        peak_requested: int,
        peak_in_use: int,
        peak_reserved: int,
        largest_requested: int,
        num_allocs: int,
        num_from_thread_caches: int,
        num_live: int,
        num_regions: int,
        num_grants: int,
        committed: int,
        num_commits: int,
        num_planned: int,
        num_refused: int,
    ) -> Self: ...
    @property
    def requested(self) -> int:
        """Bytes requested by the live allocations."""
    @property
    def in_use(self) -> int:
        """Bytes of the chunks in use."""
    @property
    def internal_fragmentation(self) -> int:
        """Bytes lost inside chunks, ``in_use - requested``.

        Rounding, alignment, red zones of guard mode, and remainders that were not split off take them.
        """
    @property
    def reserved(self) -> int:
        """Bytes of all regions, in use or free."""
    @property
    def limit(self) -> int:
        """The most bytes that the pool may reserve."""
    @property
    def free(self) -> int:
        """Free bytes in the regions, ``reserved - in_use``; 0 in a paused pool."""
    @property
    def thread_cached(self) -> int:
        """The part of ``free`` that thread caches keep."""
    @property
    def largest_free(self) -> int:
        """Bytes of the largest free chunk, 0 if there is none; chunks that thread caches keep do not count.

        In an elastic pool: of the largest request that its memory serves. Free pages move, and pages in use have room
        beside their allocations.
        """
    @property
    def fragmentation(self) -> float:
        """Share of the free bytes beyond ``largest_free``, from 0 to 1; 0 if nothing is free."""
    @property
    def peak_requested(self) -> int:
        """The highest value of ``requested`` since the last ``reset_peaks()``.

        With thread caches it counts chunks that caches keep, and all of each chunk that was served from one: it may be
        too high by what the caches keep at most.
        """
    @property
    def peak_in_use(self) -> int:
        """The highest value of ``in_use`` since the last ``reset_peaks()``.

        With thread caches it counts chunks that caches keep: it may be too high by what they keep at most.
        """
    @property
    def peak_reserved(self) -> int:
        """The highest value of ``reserved`` since the last ``reset_peaks()``."""
    @property
    def largest_requested(self) -> int:
        """Bytes of the largest request that was served."""
    @property
    def num_allocs(self) -> int:
        """Number of allocations since the pool was made, without those of zero bytes."""
    @property
    def num_from_thread_caches(self) -> int:
        """The part of ``num_allocs`` that thread caches served."""
    @property
    def num_live(self) -> int:
        """Number of live allocations."""
    @property
    def num_regions(self) -> int:
        """Number of regions now."""
    @property
    def num_grants(self) -> int:
        """Number of regions, or ranges of addresses, that the source has granted since the pool was made."""
    @property
    def committed(self) -> int:
        """Bytes with memory: ``reserved``, which counts the committed pages of elastic pools."""
    @property
    def num_commits(self) -> int:
        """How often a page of an elastic pool received memory, from the source or another page; 0 in other pools."""
    @property
    def num_planned(self) -> int:
        """Number of requests that got their place in the pool's plan; 0 in pools without one."""
    @property
    def num_refused(self) -> int:
        """Number of requests that were refused since the pool was made."""
    def _asdict(self) -> dict[str, Any]:
        """Return the fields by name."""
    def __reduce__(self) -> tuple[type[Self], tuple[Any, ...]]: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: None  # type: ignore[assignment]

@final
class Chunk:
    """A part of a region, wholly in use or wholly free."""

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
        """Bytes that were requested, 0 if the chunk is free."""
    @property
    def id(self) -> int:
        """Number of the allocation, 0 if the chunk is free."""
    @property
    def in_use(self) -> bool:
        """Whether an allocation holds the chunk."""
    @property
    def owner(self) -> str | None:
        """Owner of the allocation, after the scopes around it; ``None`` if none is recorded."""
    def _asdict(self) -> dict[str, Any]:
        """Return the fields by name."""
    def __reduce__(self) -> tuple[type[Self], tuple[Any, ...]]: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: None  # type: ignore[assignment]

@final
class Region:
    """A span of memory from the source, or several that touched and were joined."""

    def __new__(cls, address: int, size: int, chunks: Sequence[Chunk]) -> Self: ...
    @property
    def address(self) -> int:
        """First byte."""
    @property
    def size(self) -> int:
        """Length in bytes."""
    @property
    def chunks(self) -> tuple[Chunk, ...]:
        """The chunks in address order; they cover the region without gaps."""
    def _asdict(self) -> dict[str, Any]:
        """Return the fields by name."""
    def __reduce__(self) -> tuple[type[Self], tuple[Any, ...]]: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: None  # type: ignore[assignment]

@final
class KeptRegion:
    """A region that a trim cannot give back, because an allocation in it is live."""

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
        """Number of live allocations in it."""
    @property
    def largest(self) -> int:
        """Number (``Allocation.id``) of the largest of them."""
    @property
    def owner(self) -> str | None:
        """Owner of the largest of them; ``None`` if none is recorded."""
    def _asdict(self) -> dict[str, Any]:
        """Return the fields by name."""
    def __reduce__(self) -> tuple[type[Self], tuple[Any, ...]]: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: None  # type: ignore[assignment]

@final
class Snapshot:
    """The regions, chunks and counters of a pool at one moment: the result of ``Pool.snapshot``."""

    def __new__(cls, name: str, stats: PoolStats, regions: Sequence[Region]) -> Self: ...
    @property
    def name(self) -> str:
        """The pool's name."""
    @property
    def stats(self) -> PoolStats:
        """The counters of the same moment."""
    @property
    def regions(self) -> tuple[Region, ...]:
        """The regions in address order."""
    def summary(self) -> str:
        """Return a few lines of text: the totals and the largest groups of allocations."""
    def to_json(self) -> str:
        """Return all of it as one JSON object whose keys are the names of the fields."""
    def _asdict(self) -> dict[str, Any]:
        """Return the fields by name."""
    def __reduce__(self) -> tuple[type[Self], tuple[Any, ...]]: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: None  # type: ignore[assignment]

@final
class Allocation(Buffer):
    """Memory of a pool, the result of ``Pool.allocate``.

    ``free()``, the end of its ``with`` block, or its last reference frees it. Over host memory it is a writable
    buffer of ``requested`` bytes, as in ``numpy.frombuffer(allocation)``. Over host memory and that of a CUDA device
    it is an array of ``requested`` bytes for libraries that know DLPack, as in ``cupy.from_dlpack(allocation)``.
    """

    @property
    def address(self) -> int:
        """First byte, a multiple of the alignment; 0 for zero bytes."""
    @property
    def requested(self) -> int:
        """Bytes requested."""
    @property
    def size(self) -> int:
        """Usable bytes, from ``address`` to the end of the chunk.

        This is the request in whole granules of 256 bytes, or more; in guard mode it is the request.
        """
    @property
    def id(self) -> int:
        """Number of the allocation in its pool, from 1 on, never used again; 0 for zero bytes."""
    def free(self) -> None:
        """Free the memory.

        Raises:
            InvalidFreeError: It was freed before.
            MemoryDamageError: Guard mode found damage; the memory was freed nevertheless.
            BufferError: A ``memoryview`` or an array over it is alive.
        """
    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None, /
    ) -> None: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...
    def __release_buffer__(self, buffer: memoryview, /) -> None: ...
    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """Return the memory as a DLPack capsule: a one-dimensional array of ``requested`` unsigned bytes.

        The memory stays until the consumer is done with it: ``free()`` is a ``BufferError`` meanwhile. Memory of a CUDA
        device is freed behind the work of the stream that the consumer has named.

        Args:
            stream: The consumer's stream, for memory of a CUDA device: ``None`` or 1 is the legacy default stream, 2
                the default stream of the thread, -1 means that the consumer waits by itself; else the stream's handle.
            max_version: The newest version of DLPack that the consumer knows; ``None``: one without versions.
            dl_device: The device that the consumer wants it on; only the memory's own.
            copy: ``True`` is an error: an allocation does not copy itself.

        Raises:
            BufferError: The allocation was freed, its pool's addresses are of no device that DLPack knows, or a copy
                or another device was asked for.
            ValueError: The stream is not one of the device.
            RuntimeError: The driver failed.
        """
    def __dlpack_device__(self) -> tuple[int, int]:
        """Return DLPack's type and index of the memory's device: ``(1, 0)`` for the host, ``(2, n)`` for CUDA device n.

        Raises:
            BufferError: The pool's addresses are of no device that DLPack knows.
        """
    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """The memory of a CUDA device as an array of ``requested`` bytes, for CuPy, Numba, PyTorch and others.

        The consumer keeps the allocation alive; it does not prevent ``free()``, as DLPack does.

        Raises:
            AttributeError: The memory is not that of a CUDA device.
            BufferError: The allocation was freed.
            RuntimeError: The driver failed.
        """

@final
class HostMemory:
    """Host memory of a fixed size that several pools can share.

    Bytes that one pool has reserved, the others cannot reserve. Reserving takes address space only; the system adds
    physical memory when a program writes to it.

    Args:
        capacity: The most bytes that pools may reserve from it together: a number, or a text such as ``"8GiB"``.
        within_machine: Refuse arrays for which the machine has no memory left, and addresses when it has next to
            none; otherwise the kernel ends a program that fills them. False by default. It has an effect where the
            system tells how much memory there is: on Linux, also in control groups.
    """

    def __new__(cls, capacity: _Size, *, within_machine: bool = False) -> Self: ...
    @property
    def within_machine(self) -> bool:
        """Whether its pools refuse requests for which the machine has no memory."""
    @property
    def capacity(self) -> int:
        """The most bytes that pools may reserve from it together."""
    @property
    def used(self) -> int:
        """Bytes that all pools have reserved from it now."""

@final
class Pool:
    """A best-fit allocator over regions from one source, with an exact limit.

    With the default policy it makes the decisions of TensorFlow's allocator, offset for offset. Threads may share
    it.

    Args:
        limit: The most bytes that the pool may reserve: a number, or a text such as ``"1GiB"``. Required.
        growth: True (default): the first region has 2 MiB, each later one is twice as large. False: the first
            request reserves the whole limit.
        source: Where regions come from. ``"host"`` (default): host memory that programs can read and write. A
            ``HostMemory``: the same with a fixed size, shared by its pools. ``"address-space"``: made-up addresses
            with no memory behind them. ``"cuda:0"``: memory of a GPU, by the CUDA driver's index, in regions of
            ``cuMemAlloc``. ``"cuda-vmm:0"``: the same in regions that the driver maps one after the other, so that the
            pool grows in place; such memory cannot be exported to other processes. The result of
            ``integrations.opencl.source``: buffers of an OpenCL context. The result of
            ``integrations.opencl.shared_memory``: memory that the host and the devices of a context share. Any other
            object: a ``Source``.
        trim_on_oom: True (default): before a refusal, give wholly free regions back to the source and grow again.
        joins_regions: Whether a region that starts where another ends is joined to it. ``None`` (default): as the
            source says.
        wait_seconds: Seconds that a refused request waits for another thread's free; 0 by default. What is freed goes
            to the request that has waited longest and fits. Requests of NumPy and of other runtimes never wait.
        fragmentation_fraction: Under the policy ``"tensorflow"``, split off a remainder from this share of the
            limit on, between 0 and 1. 0 (default) means from 128 MiB on.
        policy: ``"tensorflow"`` (default): split a chunk if it is at least twice as large as the request or leaves
            128 MiB. ``"tight"``: split off every remainder.
        name: The pool's name in reports; ``pool-1``, ``pool-2``, ... by default.
        owner_tags: Record for each allocation the operation or the line of Python that requested it. ``None``
            (default): as the environment variable ``ALLOTMENT_OWNER_TAGS`` says (0 or 1, 0 if unset).
        thread_caches: Let each thread keep up to 7 MiB of small chunks for its next requests, so that most
            allocations and frees of up to 32 KiB need no lock. False by default: decisions differ from TensorFlow's
            then. What is kept is free for every request: it is given back before a refusal, and by each trim,
            snapshot and scope. Guard mode and ``owner_tags`` leave the caches unused.
        elastic: Reserve several times the limit in addresses, and have memory for the pages in use only. Where memory
            is short, free pages give theirs to those that need it: a request is refused only if the pages of all
            allocations and its own are above the limit. False by default: decisions differ from TensorFlow's then.
            ``thread_caches`` has no effect beside it, and guard mode is an error.
        page_size: The page size of an elastic pool: a power of two, from 4 KiB on in host memory. ``None`` (default):
            as the source says, 2 MiB in host memory.
        plan: A ``Plan`` to follow, as ``allotment.trace.plan`` makes it. Its arena is one region, reserved at the first
            request. The requests of the pool are taken for those of the plan in their order, which begins again at its
            end: each gets its planned place. One that is not in the plan, or has its place taken, gets the best fit.
            ``stats().num_planned`` counts those that got their place. ``None`` (default): no plan. Guard mode,
            ``thread_caches`` and ``elastic`` beside it are errors.
        record_events: Keep this many of the last events from the pool's first one on, in ``pool.recording``: see
            ``record()``. ``None`` (default): none.
        idle_trim_seconds: Give wholly free regions back when the pool was not used for this many seconds. ``None``
            (default): never. One thread does so for all pools; it calls no source in Python, which is an error.
        limit_set_by: The setting that decided the limit, for reports; ``"limit"`` by default.
        guard: Find writes outside of allocations, and after a free, in host memory. ``None`` (default): as the
            environment variable ``ALLOTMENT_GUARD`` says (0 or 1, 0 if unset), where the source is host memory.
        quarantine: In guard mode, the most bytes of freed memory that wait, filled with poison, for a check before
            they are used again. ``None`` (default): an eighth of the limit, at most 64 MiB.
        collect_garbage: Run Python's garbage collector before a refusal. ``None`` (default): as the environment
            variable ``ALLOTMENT_COLLECT_GARBAGE`` says (0 or 1); if that is unset, unless the program has called
            ``gc.disable()``.

    Raises:
        ValueError: An option is out of range; the text names it, its value and the range. Or there is no such GPU.
        RuntimeError: There is no CUDA driver, or it failed.
        TypeError: An option has the wrong type.

    Warns:
        UserWarning: An option has no effect beside the others.

    Before a refusal Python's garbage collector runs once, as reference cycles may hold memory. That takes
    milliseconds, so of several refusals with no allocation and no free of the pool between them only the first runs
    it. A program that drops a reference cycle between two such refusals calls ``gc.collect()`` itself.

    In a forked child, each call on a pool of the parent raises ``RuntimeError``, except for the end of a ``with``
    block, which does nothing. Memory that the parent had written stays readable. A source that requests memory of
    its own pool which only the source could grant, and a grant that cannot be a region, are a ``RuntimeError``,
    too. An exception of a source, or an answer of a wrong type, is the cause of an ``OutOfMemoryError``.

    In guard mode each request takes at least 512 bytes more, for a red zone on both sides. Damage raises
    ``MemoryDamageError`` at the free, or at the next call that allocates, frees, trims or closes. The logger
    ``allotment.guard`` gets the damage that no call could report, and the allocations that are live when the pool
    is closed or collected or the interpreter ends.
    """

    def __new__(
        cls,
        limit: _Size,
        *,
        growth: bool = True,
        source: str | HostMemory | OpenClSharedMemory | OpenClSource | Source = "host",
        trim_on_oom: bool = True,
        joins_regions: bool | None = None,
        wait_seconds: float = 0.0,
        fragmentation_fraction: float = 0.0,
        policy: Literal["tensorflow", "tight"] = "tensorflow",
        name: str | None = None,
        owner_tags: bool | None = None,
        thread_caches: bool = False,
        elastic: bool = False,
        page_size: _Size | None = None,
        plan: Plan | None = None,
        record_events: int | None = None,
        idle_trim_seconds: float | None = None,
        limit_set_by: str = "limit",
        guard: bool | None = None,
        quarantine: _Size | None = None,
        collect_garbage: bool | None = None,
    ) -> Self: ...
    @property
    def limit(self) -> int:
        """The most bytes that the pool may reserve."""
    def set_limit(self, limit: _Size, *, trim: bool = False, limit_set_by: str = "set_limit") -> None:
        """Change the limit, up or down, while the pool is in use.

        Args:
            limit: Bytes, or a text such as ``"1GiB"``.
            trim: Give wholly free regions back first, if that is needed and enough. False by default.
            limit_set_by: The setting that decided the limit, for reports; ``"set_limit"`` by default.

        Raises:
            ValueError: The limit is out of range, or below the bytes that stay reserved.
            RuntimeError: The source did not take enough pages of an elastic pool. The limit is as it was.
        """
    @property
    def growth(self) -> bool:
        """Whether regions start at 2 MiB and double."""
    def set_growth(self, growth: bool) -> None:
        """Turn growth on or off for later regions.

        Args:
            growth: Without growth the next region has all that the limit leaves. An elastic pool without growth takes
                the memory of its limit at its first request; later it has no effect there.
        """
    @property
    def owner_tags(self) -> bool:
        """Whether the pool records the owner of each allocation: its thread's tag, or the line that requested it."""
    @property
    def thread_caches(self) -> bool:
        """Whether each thread keeps small chunks for its next requests."""
    @property
    def elastic(self) -> bool:
        """Whether addresses are plentiful, and only pages in use have memory."""
    @property
    def plan(self) -> Plan | None:
        """The plan that the pool follows; ``None`` without one."""
    @property
    def policy(self) -> Literal["tensorflow", "tight"]:
        """The split policy, ``"tensorflow"`` or ``"tight"``."""
    @property
    def name(self) -> str:
        """The pool's name in reports."""
    @property
    def guard(self) -> bool:
        """Whether guard mode is on, which finds writes outside of allocations and after a free."""
    @property
    def collect_garbage(self) -> bool | None:
        """Whether Python's garbage collector runs before a refusal.

        ``None`` means unless the program has disabled it.
        """
    def allocate(self, nbytes: _Size, *, alignment: int = 256) -> Allocation:
        """Allocate at least ``nbytes`` bytes.

        Args:
            nbytes: Bytes, or a text such as ``"3MiB"``. Zero bytes give an allocation with address 0 and size 0.
            alignment: What the address is a multiple of, in bytes: any power of two, 256 by default. Above
                256 the memory in front of it stays free.

        Raises:
            OutOfMemoryError: No free chunk fits, and the limit or the source has no more.
            MemoryDamageError: Guard mode found damage before; the next call goes on.
            ValueError: A size or an alignment is out of range, or the pool is closed.
        """
    def malloc(self, nbytes: _Size) -> int:
        """Allocate at least ``nbytes`` bytes and return their address: the call with the least overhead.

        The caller keeps a reference to the pool and frees the address with ``free``.

        Args:
            nbytes: Bytes, or a text such as ``"3MiB"``. Zero bytes give the address 0.

        Raises:
            OutOfMemoryError: No free chunk fits, and the limit or the source has no more.
            MemoryDamageError: Guard mode found damage before; the next call goes on.
            ValueError: The size is out of range, or the pool is closed.
        """
    def free(self, address: int) -> None:
        """Free the allocation that starts at ``address``.

        Args:
            address: The result of ``malloc``, or the ``address`` of an allocation. 0 does nothing.

        Raises:
            InvalidFreeError: No live allocation starts there. Nothing has changed.
            BufferError: A buffer or an array over it is alive, or NumPy has an array's data there.
            MemoryDamageError: Guard mode found damage; the memory was freed nevertheless.
        """
    def stats(self) -> PoolStats:
        """Return a copy of the pool's counters."""
    def reset_peaks(self) -> None:
        """Set every ``peak_...`` counter to its current value; cumulative counters stay."""
    def snapshot(self) -> Snapshot:
        """Return a copy of all regions and chunks, with the counters of the same moment."""
    def can_allocate(self, nbytes: _Size) -> bool:
        """Return whether a request would be served now, provided the source grants what the limit allows.

        Args:
            nbytes: Bytes, or a text such as ``"3MiB"``. The answer is False for a closed pool, and for any number
                that is too large.
        """
    def explain(self, nbytes: _Size) -> Explanation:
        """Explain whether a request would be served now, and if not, why and what would help.

        Args:
            nbytes: Bytes, or a text such as ``"3MiB"``.

        Raises:
            ValueError: The size is out of range, or the pool is closed.
        """
    def record(
        self,
        file: str | os.PathLike[str] | None = None,
        *,
        events: int | None = 65536,
        on_oom: str | os.PathLike[str] | None = None,
        stacks: int = 0,
    ) -> Recording:
        """Record the pool's events, into a file or a ring of the last ones.

        Recording adds some tens of nanoseconds to a call. A pool that is not recorded does nothing.

        Args:
            file: The ``.npz`` trace to write. It is written as the program runs, and readable if the process is
                killed. ``None`` (default): a ring in memory.
            events: The most events of the ring; 65,536 by default. With a file, the most that wait to be written.
            on_oom: Without ``file``: a file that receives the ring when a request was refused.
            stacks: Number of innermost frames of Python's stack that the recording notes for each request, up to 64; 0
                by default. They take each request some microseconds. A pool with ``owner_tags`` notes lines instead.

        Returns:
            An ``allotment.trace.Recording``, which ends at ``stop()`` or as a context manager.

        Raises:
            OSError: The file cannot be written.
            ValueError: An argument is out of range, or another recording of this process writes the file.
        """
    @property
    def recording(self) -> Recording | None:
        """The recording that ``record_events`` began; ``None`` without it."""
    def scope(self, name: str, *, limit: _Size | None = None, every_thread: bool = False) -> Scope:
        """Return a context manager that counts what its block allocates, with an optional limit.

        Args:
            name: The scope's name in reports.
            limit: The most bytes that the scope may hold: a number, or a text such as ``"64MiB"``. ``None``
                (default): no limit.
            every_thread: Count the allocations of all threads, in scopes that they enter meanwhile, too; not those of a
                thread in a scope that it entered before. By default those of this thread count.
        """
    @property
    def cuda_device(self) -> int | None:
        """The CUDA driver's index of the device whose memory the pool is over; ``None`` for other memory.

        CuPy, PyTorch and the CUDA runtime number devices in the same way.
        """
    def malloc_on_stream(self, nbytes: _Size, stream: int | None) -> int:
        """Allocate at least ``nbytes`` bytes for work in a stream, and return their address.

        Work that is queued in the stream from now on may use the memory: it runs behind the work of all other streams
        that freed memory of the pool with ``free_on_stream``. The host does not wait. The memory is freed by
        ``free_on_stream`` alone; ``free`` raises ``BufferError``.

        Args:
            nbytes: Bytes, or a text such as ``"3MiB"``. Zero bytes give the address 0.
            stream: The handle of the stream as a number (``cudaStream_t``); 0 is the default stream. ``None``: any
                stream may use the memory; the host waits for the device if memory was freed before. It has no effect
                on a pool that is not over memory of a CUDA device.

        Raises:
            OutOfMemoryError: No free chunk fits, and the limit or the source has no more.
            ValueError: A number is out of range, or the pool is closed.
            RuntimeError: The driver failed. Nothing was allocated.
        """
    def free_on_stream(self, address: int, stream: int | None) -> None:
        """Free memory of ``malloc_on_stream``. Work that is queued in the stream may still use it.

        Args:
            address: The result of ``malloc_on_stream``. 0 does nothing.
            stream: The handle of the stream whose work used the memory last. ``None``: it is not known; the host waits
                for the device before the pool gives out memory again.

        Destructors call it: in a forked child, which owns nothing, it does nothing.

        Raises:
            InvalidFreeError: No live allocation of ``malloc_on_stream`` starts there. Nothing has changed.
        """
    def trim(self, *, target: _Size | None = None) -> int:
        """Give free memory back to the source, and return its bytes.

        These are all wholly free regions, or all free pages of an elastic pool.

        Args:
            target: Stop when at most this many bytes are reserved: bytes, or a text such as ``"1GiB"``. ``None``
                (default): 0. A pool that is not elastic gives back all wholly free regions if it has more than that.

        Raises:
            MemoryDamageError: Guard mode found damage in freed memory; the regions went back nevertheless.
            RuntimeError: The source did not take some pages of an elastic pool. What it took is gone.
        """
    def pause(self, *, keep: str | bytes | os.PathLike[str] | os.PathLike[bytes] | None = "host") -> int:
        """Give all memory of an elastic pool back, allocations included, and return its bytes. The addresses stay.

        Nothing may use the allocations until ``resume()``. Meanwhile requests are refused with ``RuntimeError``; frees
        and ``close()`` work. Pausing again does nothing and returns 0.

        Args:
            keep: What happens to the content of the allocations. ``"host"`` (default): it is copied to memory of the
                process outside of the pool. A path: it is written to a new file that only its owner may open, which
                belongs to the pool until ``resume()`` and replaces a file at the path as the last step. ``None``: it
                is lost, and may be after an error, too.

        Raises:
            ValueError: The pool is not elastic, or is closed.
            OSError: The file could not be written, or could not be read back as it is a device such as ``/dev/null``.
                The pool is not paused, and a file at the path is as it was.
            MemoryError: The process has no memory for the content. The pool is not paused.
            RuntimeError: The source failed. The pool is not paused, unless the source did not return what it had taken:
                then ``paused`` is true and the content is kept.
        """
    def resume(self) -> int:
        """Fetch the memory of a paused pool back, at the same addresses and with the kept content; return its bytes.

        Does nothing if the pool is not paused.

        Raises:
            MemoryError: The source has too little memory. The pool stays paused, and the content is kept.
            OSError: The content could not be read back. The pool stays paused.
            RuntimeError: The source failed. The pool stays paused.
        """
    @property
    def paused(self) -> bool:
        """Whether the pool is paused."""
    def kept_regions(self) -> tuple[KeptRegion, ...]:
        """Return the regions that a trim cannot give back, in address order, with what keeps them."""
    def close(self) -> None:
        """Refuse all further requests. Regions go back to the source when the last allocation is freed."""
    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None, /
    ) -> None: ...

@final
class ArrayMemory:
    """A NumPy memory handler (NEP 49) over a pool, for a context of ``contextvars`` or the whole process.

    The data of an array goes back to the pool when the array is collected, on any thread; until then it keeps the
    pool alive.

    Args:
        pool: The pool that holds the data.
        keeps_small_data: Keep some data of small arrays that were collected, for the next ones. Every query of the
            pool counts such data as free; its peaks and its number of allocations may include it. False by default.
        serves_forked_children: In a forked child, which cannot use the pool, give out NumPy's own memory instead of
            refusing. False by default.

    Raises:
        ValueError: The pool's memory is not memory of this process.
        ImportError: NumPy is missing, or too old for memory handlers.
        RuntimeError: NumPy's memory handlers have an unknown version.
    """

    def __new__(
        cls, pool: Pool, *, keeps_small_data: bool = False, serves_forked_children: bool = False
    ) -> Self: ...
    def install(self) -> object:
        """Put the data of later arrays of the current context into the pool; return the former handler."""
    @staticmethod
    def restore(former: object) -> None:
        """Make a handler that ``install`` returned the current context's again.

        Raises:
            ValueError: ``former`` is not a handler.
        """
    def holds(self, address: SupportsIndex) -> bool:
        """Return whether the data of an array starts at ``address`` in the pool."""
    def install_process_wide(self) -> None:
        """Put the data of arrays of every context without a handler of its own into the pool.

        The pool then lives as long as the process.

        Raises:
            RuntimeError: Another pool serves the process, or NumPy's default handler cannot be replaced.
        """
    @staticmethod
    def stop_process_wide() -> bool:
        """End ``install_process_wide`` for new arrays; return whether it was in effect."""
    @staticmethod
    def take_refusal(at: tuple[str, int] | None = None) -> BaseException | None:
        """Return why a pool last refused memory to an array on this thread, once for each refusal.

        The attribute ``pool`` of the exception is the pool's name.

        Args:
            at: File name and line number. Given, the answer is ``None`` unless the array was to be made there, as
                far as that is known.
        """

@final
class EventLog:
    """A buffer that receives the events of pools.

    Args:
        events: The most events that it holds.
        keep: Which events a full buffer keeps, ``"last"`` or ``"first"``; the others are counted as lost.
        stacks: Number of innermost frames of Python's stack that the events of requests have as their tag; 0 by
            default. Pools with ``owner_tags`` have their own tags instead.

    Raises:
        ValueError: An argument is out of range.
    """

    def __new__(cls, events: int, keep: Literal["last", "first"], stacks: int = 0) -> Self: ...
    def start(self, pool: Pool) -> None:
        """Record a pool from now on: first its live allocations, by address."""
    def start_all(self) -> None:
        """Record all pools of the process, and those that are made from now on."""
    def stop(self) -> None:
        """Record no pool any more."""
    def write_journal(self, path: str, behind: int) -> None:
        """Make a journal of the events from now on: :meth:`flush` appends them, and so does each refusal.

        Args:
            path: The file. One that is there is replaced.
            behind: Milliseconds between two calls of :meth:`flush`, which readers tell.

        Raises:
            OSError: The file cannot be written.
        """
    def write_at_refusal(self, path: str) -> None:
        """Have each refusal write a journal of the events in the buffer."""
    def flush(self) -> None:
        """Write what the file lacks.

        Raises:
            OSError: The file could not be written, now or at a refusal; nothing more is written to it.
        """
    def close(self) -> None:
        """Write what the file lacks, and write no more to it."""
    def copy(self) -> bytes:
        """Return a copy of all events, packed, after the allocations that are live before the first one.

        A row has 40 bytes: time, id and size (64 bits each), then pool, thread, tag (-1 for none) and op (32 bits each;
        1 allocates, 2 frees, 3 is a refusal, 4 is an allocation from before), little-endian.

        Raises:
            RuntimeError: In a forked child.
        """
    @property
    def lost(self) -> int:
        """Number of events that a full buffer dropped, or that could not be written.

        Raises:
            RuntimeError: In a forked child.
        """
    @property
    def refused(self) -> int:
        """Number of requests that were refused so far."""
    @property
    def pools(self) -> dict[int, str]:
        """Names of the pools that were recorded so far, by number.

        Raises:
            RuntimeError: In a forked child.
        """
    @property
    def tags(self) -> list[str]:
        """Texts of the tags in packed events so far.

        Raises:
            RuntimeError: In a forked child.
        """

@disjoint_base
class ReplayResult:
    """The figures that every replay counts."""

    @property
    def refused(self) -> int:
        """Number of requests that were refused."""
    @property
    def first_refused(self) -> int | None:
        """Number of the event of the first refusal, from 0 on; ``None`` without one."""
    @property
    def ns_per_event(self) -> float:
        """Nanoseconds an event of the loop of allocations and frees alone; 0 without events."""

@final
class CachingReplay(ReplayResult):
    """The result of a replay in the model of PyTorch's allocator. Amounts are in bytes."""

    @property
    def peak_reserved(self) -> int:
        """The most bytes of all segments at once."""
    @property
    def peak_in_use(self) -> int:
        """The most bytes of all blocks in use at once."""
    @property
    def reserved(self) -> int:
        """Bytes of all segments at the end."""
    @property
    def segments(self) -> int:
        """Number of segments at the end."""

def replay_caching(
    program: Program,
    *,
    limit: int,
    stream: Buffer | None = None,
    max_split_size: int | None = None,
    roundup_divisions: int = 0,
    expandable_segments: bool = False,
    gc_threshold: float = 0.0,
) -> CachingReplay:
    """Play a program into a model of PyTorch's caching allocator.

    Args:
        program: The program.
        limit: The most bytes of all segments.
        stream: A buffer of 64-bit signed integers with the stream of each event; ``None`` (default): one stream.
        max_split_size: ``max_split_size_mb`` in bytes; ``None`` (default): every block may be split.
        roundup_divisions: ``roundup_power2_divisions``; 0 by default: requests are rounded to 512 bytes.
        expandable_segments: ``expandable_segments``; False by default.
        gc_threshold: ``garbage_collection_threshold``, from 0 (default: off) to less than 1. PyTorch obeys it in
            programs that call ``set_per_process_memory_fraction``.

    Raises:
        ValueError: An argument is out of range.
    """

def read_plain_pickle(data: bytes, /, rows: str | None = None) -> object:
    """Read a pickle of plain data. Nothing in it is executed or imported.

    Plain data are ``None``, booleans, numbers, texts, bytes, lists, tuples, and dictionaries whose keys are texts or
    integers.

    Args:
        data: The pickle, protocol 2 to 5. Bytes behind its end are ignored.
        rows: A key of the outermost dictionary, which has a list of lists there. Each of these becomes a
            :class:`PickledRows`, which takes less memory than objects do.

    Raises:
        ValueError: It asks for anything else, or is damaged or truncated; the text starts with ``byte N:``.
    """

@final
class PickledRows:
    """A list in a pickle of plain data, with a column for each key of its dictionaries.

    Items are made when they are asked for.
    """

    def __len__(self) -> int:
        """Return len(self)."""
    def __getitem__(self, key: int, /) -> object:
        """Return self[key]."""
    def integers(self, key: str, /, most: int) -> tuple[bytes, bytes]:
        """Return the integers under a key.

        Args:
            key: The key.
            most: The largest integer that the column takes; the smallest is 0.

        Returns:
            Unsigned integers of 64 bits, one a row, and a byte each: 1 where the row has such an integer, 0 otherwise.
        """
    def texts(self, key: str, /) -> tuple[bytes, list[str]]:
        """Return the texts under a key.

        Args:
            key: The key.

        Returns:
            A number for each row, signed of 32 bits: an index of the texts, -1 where the row has no text under the key.
            And the texts, each once.
        """
    def stacks(self, key: str, /, stacks: PickledStacks, only: bytes) -> bytes:
        """Number the stacks under a key, each a list of frames.

        Args:
            key: The key.
            stacks: Receives the stacks.
            only: A byte for each row: 0 where its stack does not count.

        Returns:
            A number for each row, signed of 32 bits: an index of ``stacks``, -1 where there is no stack.
        """

@final
class PickledStacks:
    """Stacks, each a list of frames: dictionaries with ``filename``, ``line`` and ``name``.

    As a sequence it has the text of each stack: a frame in each line, ``file:line name``, the innermost first. Texts
    are made when they are asked for.
    """

    def __new__(cls) -> PickledStacks: ...
    def __len__(self) -> int:
        """Return len(self)."""
    def __getitem__(self, key: int, /) -> str:
        """Return self[key]."""
    def number(self, frames: object, /) -> int:
        """Return the number of a stack, -1 if there is none.

        Args:
            frames: A list of dictionaries; anything else is no stack.
        """

@final
class GuestMemory:
    """Memory of a pool for a runtime of C or C++ in this process, its guest.

    The guest's data can be freed at any time, so the pool lives as long as the process. In pools with ``owner_tags``
    it has the guest's name as its owner. A request neither waits for a free nor collects garbage. In a forked child,
    which cannot use the pool, the guest gets memory of the C library instead.

    Args:
        pool: The pool, over memory of this process.
        name: The guest's name in owner tags and messages.

    Raises:
        ValueError: The pool's memory is not memory of this process.
    """

    #: The address of a table of C functions, which ``rust/bindings/src/guests/functions.rs`` describes.
    functions: ClassVar[int]
    #: The address of the allocator of tensors for tvm-ffi, a ``DLPackManagedTensorAllocator``.
    tvm_ffi_allocator: ClassVar[int]

    def __new__(cls, pool: Pool, name: str) -> Self: ...
    @property
    def address(self) -> int:
        """The address of the guest, the first argument of the functions in ``functions``."""
    def register_with_onnxruntime(self) -> None:
        """Make this memory the shared CPU allocator of ONNX Runtime's environment.

        Raises:
            RuntimeError: ONNX Runtime did not pass its functions, or refuses the allocator.
        """
    @staticmethod
    def unregister_from_onnxruntime() -> None:
        """Remove the shared CPU allocator of ONNX Runtime's environment. Sessions that use it keep it.

        Raises:
            RuntimeError: ONNX Runtime did not pass its functions, or none is registered.
        """
    def serve_tvm_ffi(self, process_wide: bool) -> None:
        """Make this memory that of ``tvm_ffi_allocator`` in this thread, or in every thread without one of its own."""
    @staticmethod
    def stop_tvm_ffi(process_wide: bool) -> None:
        """Undo ``serve_tvm_ffi``."""

@final
class OpenClSource:
    """Memory of an OpenCL context, as a source of pools: each region is a buffer.

    Args:
        library: The path of OpenCL's library, or of one that was linked with it, which made the handles.
        context: The handle of the context.
        queue: The handle of a queue of the context. It writes a byte into each region, for which the device then has
            memory.

    Raises:
        RuntimeError: The library cannot be used, or OpenCL fails.
    """

    def __new__(cls, library: str, context: int, queue: int) -> Self: ...
    @property
    def context(self) -> int:
        """The handle of the context."""

@final
class OpenClSharedMemory:
    """Memory of a fixed size that the host and the devices of an OpenCL context share, for several pools.

    It is fine-grained shared virtual memory: addresses of its pools are memory of this process, and kernels take them
    by ``clSetKernelArgSVMPointer``.

    Args:
        library: As for ``OpenClSource``.
        context: The handle of the context.
        capacity: The most bytes that pools may reserve from it together: a number, or a text such as ``"8GiB"``.
        within_machine: As for ``HostMemory``: for devices that are the machine's CPU.

    Raises:
        ValueError: ``capacity`` is out of range.
        RuntimeError: The library cannot be used, OpenCL fails or is older than 2.0, or a device of the context has no
            such memory.
    """

    def __new__(
        cls, library: str, context: int, capacity: _Size, *, within_machine: bool = False
    ) -> Self: ...
    @property
    def context(self) -> int:
        """The handle of the context."""
    @property
    def capacity(self) -> int:
        """The most bytes that pools may reserve from it together."""
    @property
    def used(self) -> int:
        """Bytes that all pools have reserved from it now."""

@final
class OpenClAllocator:
    """Makes buffers of an OpenCL context in a pool's memory.

    Args:
        pool: A pool over the context, or over memory of this process.
        library: As for ``OpenClSource``.
        context: The handle of the context.
        queue: The handle of the queue to which the program adds the commands that use the buffers; ``None`` if it is
            not known.
        alignment: What offsets of buffers are multiples of, in bytes: a power of two.
        in_host_memory: Whether the devices of the context work in memory of this process.
        wrap: Called with the handle of a new buffer and False; returns what ``allocate`` returns.
        refusal: Called with the name of a pool that refuses and its error; returns the exception to raise.

    Raises:
        ValueError: The pool's memory is other memory, or that of another context.
        RuntimeError: As for ``OpenClSource``.
    """

    def __new__(
        cls,
        pool: Pool,
        library: str,
        context: int,
        queue: int | None,
        alignment: int,
        in_host_memory: bool,
        wrap: Callable[[int, bool], Any],
        refusal: Callable[[str, Exception], Exception],
    ) -> Self: ...
    def allocate(self, nbytes: int) -> Any:
        """Make a buffer of ``nbytes`` bytes; ``None`` for zero bytes.

        Its memory goes back to the pool when OpenCL destroys it. Before a refusal, the pool waits for the commands of
        the queue and collects Python's garbage.

        Raises:
            ValueError: ``nbytes`` is out of range, or the pool is closed.
            RuntimeError: OpenCL fails; or the pool was created before a fork, in the parent process.

        A refusal is the exception that ``refusal`` returns.
        """

@final
class Program:
    """A recorded program of allocations and frees in which every free has its allocation.

    Args:
        op: One number an event: 1 allocates, 2 frees. A buffer of 64-bit signed integers, as are the others.
        id: The block's number, which may be used again after its free.
        size: Bytes requested; a free repeats them.

    Raises:
        ValueError: An event makes no sense; the text starts with ``event N:``, where N counts from 0.
    """

    def __new__(cls, op: Buffer, id: Buffer, size: Buffer) -> Self: ...
    @property
    def events(self) -> int:
        """Number of events."""
    @property
    def peak_live(self) -> int:
        """The most bytes, as requested, that are live at once."""

@final
class Plan:
    """Offsets for the buffers of a program in one arena, such that no two that live at the same time overlap.

    Every plan is checked when it is made. ``Pool(plan=…)`` follows it.

    Args:
        size: Bytes of each buffer, at least 1, in the order of the requests. Like the others it is a buffer of 64-bit
            signed integers.
        start: When it starts to live, in any unit of time; never smaller than that of the buffer before.
        end: The first time at which it no longer lives.
        offset: Where it lies, a multiple of ``alignment``.
        alignment: A power of two; sizes are rounded up to it. A pool follows plans with 256 or more.
        optimal: Whether a search has proven that no arena is smaller, which is not checked. Without that it is known of
            an arena of the lower bound alone.

    Raises:
        ValueError: A number is out of range, or two buffers overlap; the text names the buffers, which count from 0.
    """

    def __new__(
        cls,
        size: Buffer,
        start: Buffer,
        end: Buffer,
        offset: Buffer,
        *,
        alignment: _Size = 256,
        optimal: bool = False,
    ) -> Self: ...
    @property
    def requests(self) -> int:
        """Number of buffers."""
    @property
    def arena(self) -> int:
        """Bytes that hold all buffers."""
    @property
    def lower_bound(self) -> int:
        """The most bytes that live at once, each buffer rounded up to the alignment: no arena is smaller."""
    @property
    def alignment(self) -> int:
        """Offsets are multiples of this many bytes, and sizes are rounded up to it."""
    @property
    def optimal(self) -> bool:
        """Whether no arena is smaller: it has the lower bound, or the search of the plan tried everything below it."""
    def packed(self) -> list[bytes]:
        """The numbers of the buffers, packed as 64-bit signed integers: their sizes, starts, ends and offsets."""
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self, /) -> int: ...

def plan(
    program: Program,
    *,
    alignment: _Size = 256,
    seconds: float = 10.0,
    steps: int | None = None,
    seed: int = 0,
    progress: Callable[[int, int, float], object] | None = None,
) -> Plan:
    """Search for the smallest arena that holds the blocks of a program.

    Args:
        program: The program. Blocks of zero bytes get no place.
        alignment: Offsets are multiples of this power of two, and sizes are rounded up to it; 256 by default.
        seconds: The search ends after this time, 10 s by default, and earlier when no arena is smaller. It makes a
            first plan in any case.
        steps: The search ends after this many steps, each about the placing of one block. With enough ``seconds`` the
            same steps find the same plan on every machine. ``None`` (default): time alone counts.
        seed: Another number searches in another order; 0 by default.
        progress: A function that is called now and then with the bytes of the smallest arena so far (0 before the first
            one), the lower bound, and the seconds since the start.

    Raises:
        ValueError: An option is out of range.
    """

@final
class Replay(ReplayResult):
    """The result of a replay."""

    @property
    def stats(self) -> PoolStats:
        """The pool's counters at the end."""

@final
class Limits:
    """The limits that a search found, in bytes."""

    @property
    def min_limit(self) -> int:
        """The smallest limit at which a replay refuses nothing; of those that were tried, if not complete."""
    @property
    def safe_limit(self) -> int:
        """A limit from which up to 1.25 times it every limit serves; the smallest one, if complete."""
    @property
    def complete(self) -> bool:
        """Whether the search tried every limit that it has to."""
    @property
    def untried(self) -> tuple[int, int] | None:
        """The first and the last limit that the search did not try; ``None`` if it is complete."""

def replay(
    program: Program,
    *,
    limit: _Size,
    growth: bool = True,
    trim_on_oom: bool = False,
    gap: _Size = 0,
    joined: bool | None = None,
    policy: Literal["tensorflow", "tight"] = "tensorflow",
    elastic: bool = False,
    page_size: _Size | None = None,
    offsets: Buffer | None = None,
) -> Replay:
    """Play a program into a new pool of made-up addresses.

    Args:
        program: The program.
        limit: The most bytes that the pool may reserve: a number, or a text such as ``"64GiB"``.
        growth: Start with 2 MiB and double (default), or reserve the limit at the first request.
        trim_on_oom: Before a refusal, give wholly free regions back and grow again. False by default.
        gap: Bytes between one region and the next, a multiple of 256; 0 by default.
        joined: Join regions that touch. ``None`` (default): if ``gap`` is 0.
        policy: The split policy, ``"tensorflow"`` (default) or ``"tight"``. An elastic pool splits off every remainder.
        elastic: Play into an elastic pool: see :class:`Pool`. False by default.
        page_size: The page size of an elastic pool: a power of two from 256 bytes on. ``None`` (default): 2 MiB.
        offsets: A writable buffer of 64-bit signed integers, one an event, that receives the distances from the
            first region's start: -1 for a refusal, for a block of zero bytes, and for the free of either; a free
            repeats what it frees.

    Raises:
        ValueError: An option is out of range, or ``offsets`` has the wrong length.
    """

def time_pool(program: Program, pool: Pool, *, setup: int = 0, threads: int = 1) -> int:
    """Play a program in a pool, and return the nanoseconds that it took.

    Args:
        program: The program. What is live at its end is freed afterwards.
        pool: The pool.
        setup: Number of events at the start that are played before the time is taken.
        threads: Number of threads that play it at once, each with blocks of its own; from 1 (default) to 256. The
            time is that from the first start to the last end.

    Raises:
        MemoryError: The pool refuses a request. What was allocated is freed.
        ValueError: An argument is out of range.
        RuntimeError: The operating system refuses a thread.
    """

def time_functions(program: Program, allocate: int, free: int, *, setup: int = 0, threads: int = 1) -> int:
    """Play a program with two functions of C, and return the nanoseconds that it took. See :func:`time_pool`.

    Args:
        program: The program.
        allocate: Address of a function like ``malloc`` of C, which any number of threads may call at once.
        free: Address of the function that frees what it returns, like ``free`` of C.
        setup: Number of events at the start that are played before the time is taken.
        threads: Number of threads that play it at once.

    Raises:
        MemoryError: ``allocate`` returns a null pointer. What was allocated is freed.
        ValueError: An argument is out of range.
        RuntimeError: The operating system refuses a thread.
    """

@final
class Picture:
    """The content of a picture of a replay. Amounts are in bytes, events are numbers from 0 on."""

    @property
    def result(self) -> Replay:
        """The result of the whole replay; its time includes what the picture took."""
    @property
    def shown(self) -> tuple[int, int]:
        """The first event that is shown, and the first one behind them."""
    @property
    def points(self) -> bytes:
        """The curves: rows of seven 64-bit integers, each of some events.

        The last of these events; the least and the most bytes live, the most in use, the most reserved during them;
        free bytes and the largest free chunk after the last one.
        """
    @property
    def blocks(self) -> bytes:
        """The blocks of the largest area: rows of five 64-bit integers.

        Event of the allocation, event of the free (-1 for none), distance from the first region's start, bytes of the
        chunk, bytes requested.
        """
    @property
    def at_peak(self) -> bytes:
        """The blocks that are live at the peak, largest request first, in rows as those of :attr:`blocks`."""
    @property
    def peak(self) -> int | None:
        """The event after which the most bytes are live; ``None`` without events."""
    @property
    def top(self) -> int:
        """The end of the highest chunk, as a distance from the first region's start."""
    @property
    def shaded(self) -> int:
        """Number of blocks that are in the grid, not in :attr:`blocks`."""
    @property
    def grid_shape(self) -> tuple[int, int]:
        """Rows and columns of the grid: addresses up to :attr:`top`, and the events that are shown."""
    @property
    def grid(self) -> bytes:
        """Bytes from 0 to 255: the share of each cell that the blocks of the grid cover, row after row."""
    @property
    def refusals(self) -> list[tuple[int, int]]:
        """The refused requests that are shown: event and bytes."""
    @property
    def sizes(self) -> list[tuple[int, int]]:
        """Number and bytes of the requests that are shown, by size.

        Entry n is of those of more than 2^(n-1) and up to 2^n bytes.
        """

def picture(
    program: Program,
    *,
    limit: _Size,
    growth: bool = True,
    trim_on_oom: bool = False,
    gap: _Size = 0,
    joined: bool | None = None,
    policy: Literal["tensorflow", "tight"] = "tensorflow",
    elastic: bool = False,
    page_size: _Size | None = None,
    first: int = 0,
    last: int | None = None,
    points: int = 16384,
    blocks: int = 65536,
) -> Picture:
    """Play a program into a new pool of made-up addresses and keep what a picture of it shows.

    Args:
        program: The program.
        limit: As for :func:`replay`.
        growth: As for :func:`replay`.
        trim_on_oom: As for :func:`replay`.
        gap: As for :func:`replay`.
        joined: As for :func:`replay`.
        policy: As for :func:`replay`.
        elastic: As for :func:`replay`.
        page_size: As for :func:`replay`.
        first: The first event that is shown; those before it are replayed as well.
        last: The first event behind those that are shown; ``None`` (default): all are.
        points: The most points of the curves.
        blocks: The most blocks that are kept one by one.

    Raises:
        ValueError: An option is out of range.
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
    elastic: bool = False,
    page_size: _Size | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> Limits:
    """Find the smallest limit at which a replay refuses nothing, and one from which on limits are safe.

    Best fit is not monotone: a limit may serve while a larger one refuses. So the search tries every multiple of
    ``granularity`` from the peak of live bytes up to 1.25 times the safe limit, on all cores. Where regions stay
    apart, a safe limit serves with rising and with falling addresses of regions, because of equal chunks the pool
    uses the one with the lower address.

    Args:
        program: The program to replay.
        granularity: Limits are multiples of this many bytes, itself a multiple of 256; 64 KiB by default.
        seconds: The search ends after this time at the latest, 60 s by default; ``Limits.untried`` says what it
            left out.
        growth: As for :func:`replay`.
        trim_on_oom: As for :func:`replay`.
        gap: As for :func:`replay`.
        joined: As for :func:`replay`.
        policy: As for :func:`replay`.
        elastic: As for :func:`replay`. Limits are at least a page then.
        page_size: As for :func:`replay`.
        progress: A function that is called now and then with the number of limits that are decided, and of all.

    Raises:
        ValueError: An option is out of range, or no limit serves the program.
    """

def parse_size(size: _Size, /) -> int:
    """Return the bytes of a size such as ``4096``, ``"512KiB"``, ``"1.5GiB"`` or ``"2gb"``.

    The results of ``format_size`` are sizes, too.

    Raises:
        ValueError: The value is not a size, is negative, or is above 2**63 - 256.
        TypeError: The value is neither a whole number nor a text.
    """

def format_size(nbytes: int, /) -> str:
    """Return a size as text for people: ``24 MiB``, ``1.51 GiB``, ``300 B``."""

def collect_garbage(pool: Pool | None) -> bool:
    """Run Python's garbage collector before a refusal; return whether it ran.

    It does not run where the pool's option, or for memory without a pool the environment, turns it off. It does not
    run a second time with no allocation and no free of the pool since a first run that freed nothing of the pool.

    Raises:
        ValueError: ``ALLOTMENT_COLLECT_GARBAGE`` is neither 0 nor 1.
    """

def one_line(text: str, /) -> str:
    """Return a text with an escape for every unprintable character, such as a newline in a file name."""

def show_text(text: str, /) -> str:
    """Return a text as messages show it: unprintable characters as escapes, cut at 200 characters."""

def show_value(value: object, /) -> str:
    """Return a value as messages show it: its ``repr``, unprintable characters as escapes, cut at 200 characters."""

def cuda_devices() -> list[tuple[str, int, tuple[int, int], str, str]] | None:
    """Return the devices that the CUDA driver lists, in its order; ``None`` if there is no driver.

    Each is a tuple of name, bytes of memory, compute capability, address on the PCI bus, and identifier.
    """

def cuda_memory_info(ordinal: int) -> tuple[int, int]:
    """Return free and total bytes of a CUDA device's memory; other processes count."""

def cuda_stream_priorities(ordinal: int) -> tuple[int, int]:
    """Return the greatest and the least priority of a CUDA device's streams."""

def machine_memory() -> int | None:
    """Return the bytes of memory that this machine has, within the limits of the process's control groups.

    ``None`` where the system does not tell.
    """

def set_tag(tag: str | None) -> str | None:
    """Set this thread's tag, the owner of its allocations in pools with ``owner_tags``; return the former tag."""

def all_stats() -> list[tuple[str, int, PoolStats]]:
    """Return name, number and counters of every pool that is alive, in the order in which they were made."""

@final
class TorchAllocator:
    """A pair of C functions of this module for ``torch.cuda.memory.CUDAPluggableAllocator``.

    They are ``void *alloc(ssize_t size, int device, cudaStream_t stream)``, which returns null if the pool refuses, and
    ``void free(void *ptr, ssize_t size, int device, cudaStream_t stream)``. They need no interpreter and never wait for
    a free. The pools must be kept alive; a pool with live memory of PyTorch's stays.

    Args:
        pools: The pool of each device, by PyTorch's number of it.

    Raises:
        ValueError: There is no pool.
        RuntimeError: All pairs are in use by pools that are alive.
    """

    def __new__(cls, pools: dict[int, Pool]) -> Self: ...
    @property
    def alloc_name(self) -> str:
        """The symbol of the function that allocates."""
    @property
    def free_name(self) -> str:
        """The symbol of the function that frees."""
    @staticmethod
    def take_refusal() -> BaseException | None:
        """Return the last refusal of any thread as an exception, and forget it; ``None`` if there is none.

        Its attribute ``pool`` is the name of the pool, if one refused.
        """

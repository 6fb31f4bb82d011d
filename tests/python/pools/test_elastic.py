"""Elastic pools from Python: options, memory of the process, moved pages, pauses, forks.

Longer than 300 lines: one rule after the other of elastic pools, with the same few helpers.
"""

import os
import random
import resource
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from allotment import Allocation, Explanation, InvalidFreeError, OutOfMemoryError, Pool
from allotment.integrations import numpy as pooled
from support.child import run_program

KIB, MIB = 1 << 10, 1 << 20

Bytes = NDArray[np.uint8]


def resident() -> int:
    """Return the resident bytes of the process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def mappings() -> int:
    return len(Path("/proc/self/maps").read_text().splitlines())


def filled(pool: Pool, nbytes: int, seed: int = 0) -> tuple[Allocation, Bytes]:
    """Allocate memory and fill it with bytes that cannot be compressed."""
    allocation = pool.allocate(nbytes)
    view = np.frombuffer(allocation, np.uint8)
    view[:] = np.random.default_rng(seed).integers(0, 256, nbytes, np.uint8)
    return allocation, view


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"elastic": True, "guard": True}, "an elastic pool cannot have the option guard"),
        ({"page_size": 4096}, "a page size is for elastic pools"),
        ({"elastic": True, "page_size": 5000}, "page size 5000 is not a power of two"),
        ({"elastic": True, "page_size": 256}, "a multiple of 4096 bytes"),
        ({"elastic": True, "page_size": "128MiB"}, "at most the limit of 67108864 bytes"),
        ({"elastic": True, "page_size": -1}, "page_size must be between 0 and"),
        ({"elastic": True, "page_size": "x"}, "page_size 'x': not a size"),
        (
            {"elastic": True, "source": SimpleNamespace(reserve=lambda *_: None, release=lambda *_: None)},
            "this source cannot commit memory page by page",
        ),
    ],
)
def test_options_that_make_no_sense(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Pool("64MiB", **options)


def test_a_limit_below_a_page_names_both() -> None:
    with pytest.raises(ValueError, match=r"page size 2097152 is not .* at most the limit of 1048576 bytes"):
        Pool("1MiB", elastic=True)
    assert Pool("1MiB", elastic=True, page_size="1MiB").elastic


def test_guard_mode_from_the_environment_names_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALLOTMENT_GUARD", "1")
    with pytest.raises(
        ValueError, match="guard mode, which ALLOTMENT_GUARD=1 turns on: pass guard=False, or"
    ):
        Pool("64MiB", elastic=True)
    assert Pool("64MiB", elastic=True, guard=False).elastic


def advised(refused: OutOfMemoryError | Explanation) -> dict[str, Any]:
    return {advice.action: advice for advice in refused.advice}


def test_alignment_takes_no_room() -> None:
    pool = Pool(16384, elastic=True, page_size=4096)
    held = pool.allocate(16384)
    with pytest.raises(OutOfMemoryError) as raised:
        pool.allocate(4096, alignment=1 << 21)
    assert raised.value.verdict == "full"
    assert "in use and the request together are above the limit of 4 pages of 4096 bytes" in str(raised.value)
    assert "padding" not in str(raised.value)
    advice = advised(raised.value)
    assert (list(advice["free"].allocations), advice["raise_limit"].bytes) == ([held.id], 20480)
    pool.set_limit(20480)
    assert pool.allocate(4096, alignment=1 << 21).address % (1 << 21) == 0
    held.free()
    pool = Pool(16384, elastic=True, page_size=4096)
    held = pool.allocate(12288)
    with pytest.raises(OutOfMemoryError) as raised:
        pool.allocate(8192, alignment=65536)
    assert advised(raised.value)["ask_for"].bytes == 4096
    pool.allocate(4096, alignment=65536)


def test_the_limit_holds_for_whole_pages() -> None:
    pool = Pool(8191, elastic=True, page_size=4096)
    with pytest.raises(
        OutOfMemoryError, match="the request alone is above the limit of 1 page of 4096"
    ) as raised:
        pool.malloc(5000)
    assert raised.value.verdict == "limit"
    assert advised(raised.value)["ask_for"].bytes == 4096
    pool.malloc(4096)
    with pytest.raises(OutOfMemoryError, match="full: what is in use") as raised:
        pool.malloc(3840)
    assert raised.value.verdict == "full"


@pytest.mark.parametrize("freed", [0, 2])
def test_a_single_free_is_advised_where_it_serves(freed: int) -> None:
    pool = Pool("6MiB", elastic=True)
    held = [pool.allocate(MIB) for _ in range(3)]
    held[1].free()
    # Page 0 has one block and a hole, page 1 the other block.
    advice = advised(pool.explain(4 * MIB))["free"]
    assert len(advice.allocations) == 1
    held[freed].free()
    assert pool.can_allocate(4 * MIB)


def test_what_pages_in_use_have_beside_is_free() -> None:
    pool = Pool("64MiB", elastic=True)
    pool.malloc(MIB)
    stats = pool.stats()
    assert (stats.free, stats.largest_free, stats.fragmentation) == (MIB, MIB, 0.0)
    assert (stats.num_regions, stats.num_grants) == (1, 1)
    pool.malloc(MIB)
    assert pool.stats().num_commits == stats.num_commits == 1


def test_advice_trusts_no_promise_that_was_broken() -> None:
    done = run_program(
        """
        import re
        import resource
        from allotment import OutOfMemoryError, Pool

        MIB = 1 << 20

        def used(field):
            with open("/proc/self/status") as status:
                return int(re.search(rf"{field}:\\s+(\\d+)", status.read())[1]) << 10

        def follow(pool, nbytes, expected, live=()):
            try:
                pool.malloc(nbytes)
            except OutOfMemoryError as error:
                refused = error
            else:
                raise AssertionError(nbytes)
            assert refused.verdict == "source", refused
            for advice in refused.advice:
                assert not advice.needs_grant, refused
                if advice.action == "ask_for":
                    pool.free(pool.malloc(advice.bytes))
                elif advice.action == "free":
                    for block in live:
                        if block.id in advice.allocations:
                            block.free()
                    pool.free(pool.malloc(nbytes))
            assert [advice.action for advice in refused.advice] == expected, refused

        # Addresses: one range, with holes of 8 MiB.
        pool = Pool("64MiB", elastic=True, page_size="64KiB", collect_garbage=False)
        resource.setrlimit(resource.RLIMIT_AS, (used("VmSize") + 80 * MIB, -1))
        blocks = [pool.allocate(8 * MIB) for _ in range(8)]
        for block in blocks[::2]:
            block.free()
        follow(pool, 32 * MIB, ["free", "ask_for"], blocks[1::2])
        resource.setrlimit(resource.RLIMIT_AS, (-1, -1))

        # Memory: 4 MiB are held, and 2 more are to be had.
        resource.setrlimit(resource.RLIMIT_DATA, (1 << 40, -1))
        pool = Pool("64MiB", elastic=True, page_size="64KiB", collect_garbage=False)
        pool.malloc(3 * MIB)
        pool.free(pool.malloc(MIB))
        before = pool.stats()
        resource.setrlimit(resource.RLIMIT_DATA, (used("VmData") + 2 * MIB, -1))
        follow(pool, 32 * MIB, ["ask_for"])
        assert pool.stats().num_commits == before.num_commits, "no page moved in vain"
        """
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_resident_memory_follows() -> None:
    pool = Pool("256MiB", elastic=True)
    before = resident()
    first, view = filled(pool, 128 * MIB)
    assert 120 * MIB < resident() - before < 144 * MIB
    assert pool.stats().committed == pool.stats().reserved == 128 * MIB
    del view
    first.free()
    assert pool.stats().committed == 128 * MIB
    assert pool.trim(target="64MiB") == 64 * MIB
    assert 56 * MIB < resident() - before < 80 * MIB
    assert pool.trim() == 64 * MIB
    assert resident() - before < 16 * MIB
    assert pool.stats().committed == 0


def stamped(view: NDArray[np.uint64], stamp: int) -> None:
    view[:] = np.arange(stamp, stamp + view.size, dtype=np.uint64)


def test_contents_stay_while_pages_move() -> None:
    chosen = random.Random(5)
    # The smallest pages: nearly every request at the limit moves some.
    pool = Pool("8MiB", elastic=True, page_size="4KiB", collect_garbage=False)
    live: list[tuple[Allocation, NDArray[np.uint64], int]] = []
    maps = mappings()
    refused = checked = 0
    for event in range(20_000):
        size = 8 * chosen.randint(1, chosen.choice([64, 4096, 40_000]))
        try:
            allocation = pool.allocate(size)
        except OutOfMemoryError:
            refused += 1
        else:
            view = np.frombuffer(allocation, np.uint64)
            stamped(view, event << 32)
            live.append((allocation, view, event << 32))
            if chosen.random() < 0.5:
                continue
        if not live:
            continue
        allocation, view, stamp = live.pop(chosen.randrange(len(live)))
        assert view[0] == stamp
        assert (np.diff(view) == 1).all()
        checked += 1
        del view
        allocation.free()
    for _, view, stamp in live:
        assert view[0] == stamp
        assert (np.diff(view) == 1).all()
    stats = pool.stats()
    assert refused > 100
    assert checked > 5000
    # Each page received memory again and again, and never were there more than the limit has.
    assert stats.num_commits > 10 * (8 * MIB // (4 * KIB))
    assert stats.peak_reserved == 8 * MIB
    if Path("/proc/sys/vm/overcommit_memory").read_text().strip() != "2":
        assert abs(mappings() - maps) <= 8


def varying_batches(pool: Pool) -> tuple[float, int]:
    """Run a program over batches of varying lengths in a pool; return its result and the peak of live bytes."""
    total = 0.0
    chosen = random.Random(9)
    with pooled.use(pool):
        kept: list[NDArray[np.float64]] = []
        for step in range(60):
            rows = chosen.randint(300_000, 1_500_000)
            batch = np.full(rows, float(step))
            hidden = np.sqrt(batch) + 1.0
            kept.append(hidden[: rows // 3].copy())
            if len(kept) > 6:
                kept.pop(chosen.randrange(len(kept)))
            total += float(hidden.sum()) + float(kept[0][-1])
            del batch, hidden
        total += sum(float(one.sum()) for one in kept)
        del kept
    return total, pool.stats().peak_requested


def test_arrays_of_numpy_need_little_more_than_what_is_live() -> None:
    expected, peak = varying_batches(Pool("4GiB"))
    limit = peak * 21 // 20
    with pytest.raises(MemoryError):
        varying_batches(Pool(limit))
    elastic = Pool(limit, elastic=True, page_size="64KiB")
    assert varying_batches(elastic) == (expected, peak)
    assert elastic.stats().num_refused == 0
    assert elastic.stats().num_live == 0


@pytest.fixture(name="keep", params=["host", "file", "none"])
def fixture_keep(request: pytest.FixtureRequest, tmp_path: Path) -> str | Path | None:
    named: dict[str, str | Path | None] = {"host": "host", "file": tmp_path / "content", "none": None}
    return named[request.param]


def test_a_pause_and_a_resume_keep_addresses_and_content(keep: str | Path | None, tmp_path: Path) -> None:
    pool = Pool("512MiB", elastic=True)
    before = resident()
    held = [filled(pool, 64 * MIB, seed) for seed in range(4)]
    holes = pool.allocate("16MiB")
    holes.free()
    addresses = [allocation.address for allocation, _ in held]
    sums = [zlib.crc32(view) for _, view in held]
    committed = pool.stats().committed
    assert committed >= 256 * MIB
    assert pool.pause(keep=keep) == committed
    assert (pool.paused, pool.stats().committed) == (True, 0)
    if keep == "host":
        assert resident() - before > 240 * MIB
    else:
        # A buffer for the file may stay with the process.
        assert resident() - before < 24 * MIB
    # The content stays in the file.
    other = tmp_path / "other"
    assert (pool.pause(keep=keep), pool.pause(keep=other), other.exists()) == (0, 0, False)
    assert pool.resume() == pool.stats().committed == 256 * MIB
    assert pool.resume() == 0
    assert not pool.paused
    assert [allocation.address for allocation, _ in held] == addresses
    if keep is not None:
        assert [zlib.crc32(view) for _, view in held] == sums
    for seed, (_, view) in enumerate(held):
        view[:] = seed
    assert all((view == seed).all() for seed, (_, view) in enumerate(held))
    if keep == "host":
        assert resident() - before < 256 * MIB + 24 * MIB


def test_zeros_are_not_kept_in_a_pause(keep: str | Path | None) -> None:
    pool = Pool("512MiB", elastic=True)
    before = resident()
    untouched = pool.allocate(256 * MIB)
    cleared, zeros = filled(pool, 32 * MIB)
    zeros[:] = 0
    # A single byte, the last one of a block of 64 KiB that is zero otherwise.
    zeros[MIB - 1] = 7
    held, view = filled(pool, 16 * MIB)
    expected = zlib.crc32(view)
    pool.pause(keep=keep)
    assert resident() - before < (16 if keep == "host" else 0) * MIB + 16 * MIB
    if isinstance(keep, Path):
        assert keep.stat().st_size == 16 * MIB + 64 * KIB
    assert pool.resume() == pool.stats().committed == 304 * MIB
    # Pages of zeros get their memory when they are written to.
    assert resident() - before < 48 * MIB
    if keep is not None:
        assert (zlib.crc32(view), zeros.sum(), zeros[MIB - 1]) == (expected, 7, 7)
        assert not np.frombuffer(untouched, np.uint8).any()
    del view, zeros
    for allocation in (untouched, cleared, held):
        allocation.free()


def test_requests_of_a_paused_pool_are_refused_and_frees_are_not() -> None:
    pool = Pool("64MiB", elastic=True, page_size="64KiB")
    address = pool.malloc(MIB)
    kept, view = filled(pool, 2 * MIB)
    expected = zlib.crc32(view)
    pool.pause()
    calls: list[Callable[[], object]] = [
        lambda: pool.malloc(1),
        lambda: pool.allocate(1),
        lambda: pool.can_allocate(1),
        lambda: pool.explain(1),
    ]
    for call in calls:
        with pytest.raises(
            RuntimeError, match="the pool is paused, and none of its pages has memory: resume it"
        ):
            call()
    pool.free(address)
    with pytest.raises(InvalidFreeError):
        pool.free(address)
    assert pool.trim() == 0
    assert pool.stats().num_live == 1
    # What was freed needs no memory any more.
    assert pool.resume() == 2 * MIB
    assert zlib.crc32(view) == expected
    assert pool.malloc(MIB) > 0
    del view
    kept.free()


def test_a_pool_is_closed_while_it_is_paused() -> None:
    before = resident()
    pool = Pool("256MiB", elastic=True)
    first, view = filled(pool, 128 * MIB)
    pool.pause(keep=None)
    pool.close()
    del view
    first.free()
    assert pool.stats().num_live == 0
    assert resident() - before < 16 * MIB
    with pytest.raises(ValueError, match="closed"):
        pool.malloc(1)


def test_a_pause_that_fails_changes_nothing(tmp_path: Path) -> None:
    pool = Pool("64MiB", elastic=True, page_size="64KiB")
    kept, view = filled(pool, 8 * MIB)
    expected, before = zlib.crc32(view), pool.stats()
    missing = tmp_path / "missing" / "content"
    with pytest.raises(FileNotFoundError) as raised:
        pool.pause(keep=missing)
    assert str(raised.value) == f"[Errno 2] No such file or directory: '{missing}'"
    assert raised.value.filename == str(missing)
    with pytest.raises(IsADirectoryError):
        pool.pause(keep=tmp_path)
    for device in ("/dev/null", "/dev/full"):
        with pytest.raises(OSError, match=f"the file {device} .* neither a regular file nor a block device"):
            pool.pause(keep=device)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (MIB, limits[1]))
    try:
        with pytest.raises(OSError, match="the content of the pool could not be saved: File too large"):
            pool.pause(keep=tmp_path / "content")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    odd: Any = 3
    with pytest.raises(TypeError, match=r"expected str, bytes or os\.PathLike object, not int"):
        pool.pause(keep=odd)
    with pytest.raises(FileNotFoundError):
        pool.pause(keep=os.fsencode(missing))
    assert list(tmp_path.iterdir()) == []
    assert (pool.paused, pool.stats(), zlib.crc32(view)) == (False, before, expected)
    assert kept.address == view.ctypes.data


@pytest.mark.skipif(sys.platform != "linux", reason="the size of the process is read as Linux has it")
def test_a_pause_without_memory_for_the_content_changes_nothing() -> None:
    done = run_program(
        """
        import re, resource
        import numpy as np
        from pathlib import Path
        from allotment import Pool

        pool = Pool("256MiB", elastic=True)
        view = np.frombuffer(pool.allocate("128MiB"), np.uint8)
        view[:] = 1
        size = int(re.search(r"VmSize:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) << 10
        resource.setrlimit(resource.RLIMIT_AS, (size + (32 << 20), -1))
        try:
            pool.pause()
        except MemoryError as error:
            print(error)
        print(pool.paused, int(view.sum()) == 128 << 20)
        """
    )
    text = (
        "the process has no memory for the 134217728 bytes of content of the pool: keep them in a file, or "
    )
    assert (done.stdout, done.stderr) == (f"{text}discard them\nFalse True\n", "")


def test_a_file_of_a_pause_is_private_and_no_file_of_another_pool_is_lost(tmp_path: Path) -> None:
    pools = [Pool("64MiB", elastic=True, page_size="64KiB") for _ in range(2)]
    held = [filled(pool, MIB) for pool in pools]
    expected = [zlib.crc32(view) for _, view in held]
    file, link = tmp_path / "content", tmp_path / "link"
    file.write_text("a letter")
    file.chmod(0o644)
    link.symlink_to(file)
    for pool in pools:
        pool.pause(keep=link)
    assert sorted(tmp_path.iterdir()) == [file, link]
    assert (link.readlink(), file.stat().st_mode & 0o777, file.stat().st_size) == (file, 0o600, MIB)
    for pool in pools:
        pool.resume()
    assert [zlib.crc32(view) for _, view in held] == expected


def test_only_elastic_pools_pause() -> None:
    pool = Pool("64MiB")
    with pytest.raises(ValueError, match="needs an elastic pool: this one was made without elastic=True"):
        pool.pause()
    assert (pool.elastic, pool.paused, pool.resume()) == (False, False, 0)
    # Of other pools `committed` is what is reserved.
    pool.malloc(1)
    assert (pool.stats().committed, pool.stats().num_commits) == (2 * MIB, 0)


def test_a_child_reads_and_makes_pools_of_its_own() -> None:
    done = run_program(
        """
        import os
        import numpy as np
        from allotment import Pool

        pool = Pool("64MiB", elastic=True, page_size="64KiB")
        pages = [pool.allocate("1MiB") for _ in range(60)]
        for number, page in enumerate(pages):
            np.frombuffer(page, np.uint8)[:] = number
        for page in pages[::2]:
            page.free()
        # Pages move before and after the fork.
        wide = pool.allocate("20MiB")
        np.frombuffer(wide, np.uint8)[:] = 99
        child = os.fork()
        if child == 0:
            assert all((np.frombuffer(page, np.uint8) == 2 * n + 1).all() for n, page in enumerate(pages[1::2]))
            for call in (lambda: pool.malloc(1), pool.pause, pool.resume, pool.trim):
                try:
                    call()
                except RuntimeError as error:
                    assert "forked" in str(error)
                else:
                    raise AssertionError(call)
            own = Pool("16MiB", elastic=True, page_size="64KiB")
            block = own.allocate("4MiB")
            np.frombuffer(block, np.uint8)[:] = 1
            own.pause()
            own.resume()
            assert (np.frombuffer(block, np.uint8) == 1).all()
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert (np.frombuffer(wide, np.uint8) == 99).all()
        wide.free()
        other = pool.allocate("30MiB")
        np.frombuffer(other, np.uint8)[:] = 5
        assert all((np.frombuffer(page, np.uint8) == 2 * n + 1).all() for n, page in enumerate(pages[1::2]))
        """
    )
    assert (done.returncode, done.stderr) == (0, "")

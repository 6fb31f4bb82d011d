"""What refusals and explanations say beside the figures: who holds the memory, what is in the way."""

import json
import sys

import pytest

from allotment import OwnerGroup, Pool, SizeGroup, Splitter
from support.child import run_program
from support.devices import MIB, next_line, run_on_gpus
from support.pools.refusals import refusal


@pytest.mark.parametrize("unit", [1, 3, 64])
def test_the_allocation_between_the_largest_holes_is_named(unit: int) -> None:
    pool = Pool(64 * unit * MIB, growth=False)
    first, between, last = (pool.allocate(size * unit * MIB) for size in (24, 16, 24))
    first.free()
    last.free()
    error = refusal(pool, 32 * unit * MIB)
    holes = 24 * unit * MIB
    assert error.splitter == Splitter(between.address, between.size, between.id, None, holes, holes)
    assert f"allocation {between.id} of" in str(error)
    assert error.suggestion.startswith(f"free allocation {between.id}")
    assert pool.explain(32 * unit * MIB).splitter == error.splitter
    # What is suggested helps.
    between.free()
    pool.free(pool.malloc(64 * unit * MIB))


def test_the_largest_groups_by_size_come_first() -> None:
    pool = Pool("64MiB", growth=False)
    for size, count in {256: 7, 1024: 5, 4096: 4, 65536: 3, 1 << 20: 2, 2 << 20: 1, 8 << 20: 1}.items():
        for _ in range(count):
            pool.malloc(size)
    groups = refusal(pool, "60MiB").by_size
    assert groups[:2] == (
        SizeGroup(8 << 20, 1, 8 << 20, 8 << 20),
        SizeGroup(2 << 20, 2, 1 << 20, 1 << 20),
    ) or groups[:2] == (SizeGroup(8 << 20, 1, 8 << 20, 8 << 20), SizeGroup(2 << 20, 1, 2 << 20, 2 << 20))
    assert len(groups) == 4
    assert [group.bytes for group in groups] == sorted((group.bytes for group in groups), reverse=True)
    assert "and 3 sizes more" in str(refusal(pool, "60MiB"))


def test_many_sizes_are_counted_by_doublings() -> None:
    pool = Pool("64GiB", source="address-space")
    for granules in range(1, 4097):
        pool.malloc(granules * 256)
    top = refusal(pool, "65GiB").by_size[0]
    assert (top.smallest, top.largest, top.count) == (2048 * 256, 4095 * 256, 2048)


def test_lines_of_python_are_noted_where_that_is_wanted() -> None:
    pool = Pool("64MiB", owner_tags=True)
    line = next_line()
    kept = [pool.allocate(MIB) for _ in range(3)]
    pool.malloc(256)
    error = refusal(pool, "128MiB")
    assert error.by_owner == (
        OwnerGroup(3 * MIB, 3, f"test_reports.py:{line}"),
        OwnerGroup(256, 1, f"test_reports.py:{line + 1}"),
    )
    owners = {chunk.owner for region in pool.snapshot().regions for chunk in region.chunks if chunk.in_use}
    assert owners == {owner.owner for owner in error.by_owner}
    (first, *_) = json.loads(pool.snapshot().to_json())["regions"][0]["chunks"]
    assert first["owner"] == f"test_reports.py:{line}"
    assert len(kept) == 3
    assert refusal(Pool("1MiB"), "2MiB").by_owner == ()


@pytest.mark.parametrize(("value", "on"), [("1", True), ("0", False), ("", False)])
def test_the_environment_says_whether_owners_are_noted(
    value: str, on: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ALLOTMENT_OWNER_TAGS", value)
    assert Pool("1MiB").owner_tags is on
    assert Pool("1MiB", owner_tags=not on).owner_tags is not on


def test_a_value_that_is_no_switch_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALLOTMENT_OWNER_TAGS", "yes")
    with pytest.raises(ValueError, match=r"ALLOTMENT_OWNER_TAGS=.yes. is neither 0 nor 1"):
        Pool("1MiB")


def test_operations_are_noted_with_the_line_that_asked() -> None:
    program = """
    import pickle
    import allotment
    import allotment.tf as tf
    with tf.device("/GPU:0"):
        a = tf.ones([512, 512])
        b = tf.matmul(a, a)
        try:
            tf.zeros([64 << 20])
        except tf.errors.ResourceExhaustedError as refused:
            error = refused
    print(*sorted(owner.owner for owner in error.by_owner))
    print(error.num_live, "set by" in str(error), error.limit_set_by)
    copy = pickle.loads(pickle.dumps(error))
    print(copy.by_owner == error.by_owner, copy.suggestion == error.suggestion)
    """
    done = run_on_gpus("1:64MiB", program, ALLOTMENT_OWNER_TAGS="1")
    assert done.returncode == 0, done.stderr
    owners, limit, same = done.stdout.splitlines()
    # The text of a program starts on line 2.
    assert "MatMul at <string>:7" in owners
    assert limit.startswith("2 True ")
    assert same == "True True"


def test_what_set_the_limit_is_named() -> None:
    pool = Pool("1MiB")
    assert refusal(pool, "8MiB").limit_set_by == "limit"
    pool.set_limit("2MiB")
    assert refusal(pool, "8MiB").limit_set_by == "set_limit"
    program = """
    import allotment
    import allotment.tf as tf
    allotment.experimental.set_memory_limit("GPU:0", "8MiB")
    try:
        with tf.device("/GPU:0"):
            tf.zeros([4 << 20])
    except tf.errors.ResourceExhaustedError as refused:
        print(refused.limit_set_by, "set by allotment.experimental.set_memory_limit" in str(refused))
    """
    done = run_on_gpus("1:64MiB", program)
    assert done.stdout == "allotment.experimental.set_memory_limit True\n", done.stderr


def test_explanations_agree_with_what_happens() -> None:
    pool = Pool("4MiB", growth=False)
    fits = pool.explain("4MiB")
    assert (fits.fits, fits.verdict, fits.suggestion, fits.by_size) == (True, "fits", None, ())
    assert pool.can_allocate("4MiB")
    for size, verdict in (("5MiB", "limit"), ("4MiB", "full")):
        if verdict == "full":
            pool.malloc("1MiB")
        explained = pool.explain(size)
        error = refusal(pool, size)
        assert (explained.fits, explained.verdict, error.verdict) == (False, verdict, verdict)
        assert (explained.text, explained.suggestion) == (str(error), error.suggestion)
        assert not pool.can_allocate(size)
    with pytest.raises(ValueError, match="-1"):
        pool.explain(-1)
    pool.close()
    with pytest.raises(ValueError, match="closed"):
        pool.explain(1)


def test_what_keeps_regions_is_named() -> None:
    pool = Pool("64MiB")
    small, large = pool.allocate(MIB), pool.allocate(8 * MIB)
    assert [region.num_live for region in pool.kept_regions()] == [1, 1]
    large.free()
    pool.trim()
    (kept,) = pool.kept_regions()
    assert (kept.size, kept.in_use, kept.num_live, kept.largest) == (2 * MIB, MIB, 1, small.id)
    small.free()
    assert pool.kept_regions() == ()
    assert pool.trim() == 2 * MIB


def test_the_words_of_a_million_chunks_take_no_walk_of_the_text() -> None:
    pool = Pool("1TiB", source="address-space", growth=False)
    for _ in range(100_000):
        pool.malloc(300)
    error = refusal(pool, "2TiB")
    assert len(str(error).splitlines()) <= 25
    assert error.by_size == (SizeGroup(512 * 100_000, 100_000, 512, 512),)


@pytest.mark.skipif(sys.platform != "linux", reason="the limit of data and its use are those of Linux")
@pytest.mark.parametrize("options", ["", ", elastic=True, page_size=4096"])
def test_a_refusal_in_a_process_without_memory_is_an_error(options: str) -> None:
    done = run_program(
        f"""
        import re, resource
        from pathlib import Path
        from allotment import OutOfMemoryError, Pool

        def data():
            return int(re.search(r"VmData:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) << 10

        # Host memory counts as data once it is committed.
        resource.setrlimit(resource.RLIMIT_DATA, (1 << 40, -1))
        pool = Pool("64MiB", collect_garbage=False{options})
        pool.malloc(20_000)
        kept = []
        resource.setrlimit(resource.RLIMIT_DATA, (data() + (64 << 10), -1))
        try:
            while True:
                kept.append(bytearray(100_000))
        except MemoryError:
            pass
        try:
            pool.malloc("32MiB")
        except OutOfMemoryError as error:
            print(error.verdict)
        """
    )
    assert (done.stdout, done.stderr) == ("source\n", "")

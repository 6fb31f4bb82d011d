"""Stacks of Python in recordings, and rings of the last events that begin with the pool or the program."""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from allotment import Pool
from allotment._core import set_tag
from allotment.trace import Columns, read_columns, record
from support.child import DEADLINE_SECONDS
from support.command import allotment as run_allotment


def innermost(columns: Columns) -> list[list[str]]:
    """Return names of frames of each event's stack, the innermost first."""
    assert columns.owner is not None
    return [
        [line.split(" ", 1)[1] for line in columns.owners[owner].splitlines()] if owner >= 0 else []
        for owner in columns.owner
    ]


def test_stacks_are_those_of_python_at_each_request(tmp_path: Path) -> None:
    pool = Pool("1GiB", source="address-space")

    def ask(depth: int) -> int:
        return ask(depth - 1) if depth else pool.malloc(100)

    with pool.record(stacks=4) as recording, pool.record(tmp_path / "t", stacks=2):
        first = ask(0)
        ask(2)
        # A free repeats the stack of its allocation.
        pool.free(first)
    name = f"{test_stacks_are_those_of_python_at_each_request.__name__}.<locals>.ask"
    (columns,) = recording.columns()
    stacks = innermost(columns)
    assert [stack[:3] for stack in stacks[:2]] == [[name, stacks[0][1], stacks[0][2]], [name] * 3]
    assert stacks[0][1] == test_stacks_are_those_of_python_at_each_request.__name__
    assert [len(stack) for stack in stacks] == [4, 4, 4]
    assert stacks[2] == stacks[0]
    assert columns.owners[0].startswith(f"{__file__}:{ask.__code__.co_firstlineno + 1} ")
    # The most frames that a running recording asks for.
    with np.load(tmp_path / "t") as file:
        assert len(json.loads(bytes(file["tags"]))) == 2
    assert read_columns(tmp_path / "t").owners == columns.owners
    # After the recordings nothing takes stacks.
    with pool.record() as plain:
        ask(0)
    assert plain.columns()[0].owner is None
    with pytest.raises(ValueError, match="stacks must be from 0 to 64, not 65"):
        pool.record(stacks=65)


def test_stacks_begin_with_the_tag_of_the_thread_and_leave_owner_tags_alone() -> None:
    pool = Pool("1GiB", source="address-space")
    tagged = Pool("1GiB", source="address-space", owner_tags=True)
    former = set_tag("MatMul")
    try:
        with record(stacks=1) as recording:
            pool.malloc(100)
            tagged.malloc(100)
    finally:
        assert set_tag(former) == "MatMul"
    texts = {text for columns in recording.columns() for text in columns.owners}
    here = f"{__file__}:"
    assert {text.replace(text.partition(here)[2], "") for text in texts} == {"MatMul", f"MatMul\n{here}"}
    assert [group.owner for group in tagged.explain("2GiB").by_owner] == ["MatMul"]


def test_stacks_of_many_threads_and_short_lived_code_are_their_own() -> None:
    pool = Pool("1GiB", source="address-space")
    wrong: list[str] = []

    def work(number: int) -> None:
        for step in range(200):
            # New code each time, at addresses that are used again.
            names: dict[str, Any] = {"pool": pool}
            exec(f"def only_{number}_{step}(): return pool.malloc({1000 * number + step + 1})", names)
            names[f"only_{number}_{step}"]()

    with pool.record(stacks=1, events=10_000) as recording:
        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for number in range(9000):  # More than the table of stacks holds.
            exec(compile("pool.malloc(1)", f"file{number}", "exec"), {"pool": pool})
    (columns,) = recording.columns()
    assert len(columns.op) == 9800
    for (stack,), size in zip(innermost(columns)[:800], columns.size[:800], strict=True):
        number, step = divmod(size - 1, 1000)
        if stack != f"only_{number}_{step}":
            wrong.append(stack)
    assert wrong == []
    assert {text.partition(":")[0] for text in columns.owners[800:]} == {
        f"file{number}" for number in range(9000)
    }


def test_a_pool_with_a_ring_has_its_last_events_from_the_first_on() -> None:
    assert Pool("1MiB").recording is None
    pool = Pool("1GiB", source="address-space", record_events=100)
    assert pool.recording is not None
    kept = [pool.malloc(size) for size in (1, 2, 3)]
    pool.free(kept[1])
    (columns,) = pool.recording.columns()
    assert list(zip(columns.op, columns.size, strict=True)) == [(1, 1), (1, 2), (1, 3), (2, 2)]
    for size in range(1, 501):
        pool.free(pool.malloc(size))
    (columns,) = pool.recording.columns()
    # The two blocks that are still live come first.
    assert [*columns.op] == [1, 1] + [1, 2] * 50
    assert [*columns.size] == [1, 3] + [size for size in range(451, 501) for _ in range(2)]
    assert pool.recording.lost == 904
    with pytest.raises(ValueError, match="events must be from 1 to"):
        Pool("1MiB", record_events=0)


@pytest.mark.parametrize("refuses", [False, True])
def test_the_command_keeps_the_last_events(tmp_path: Path, refuses: bool) -> None:
    program = "from allotment import Pool\npool = Pool('1MiB', source='address-space')\n"
    program += "for size in range(1, 21): pool.free(pool.malloc(size))\n"
    if refuses:
        program += "try: pool.malloc(2 << 20)\nexcept MemoryError: pass\nimport time\ntime.sleep(0.5)\n"
        program += "for size in range(1, 21): pool.free(pool.malloc(30))\n"
    done = run_allotment(
        "record", "--last", "4", "--stacks", "3", "-o", tmp_path / "t", "--", sys.executable, "-c", program
    )
    assert (done.returncode, done.stderr) == (0, "")
    columns = read_columns(tmp_path / "t")
    # Of four events the first frees a block from before, or the last is the refusal.
    assert columns.size[-1] == 20
    assert len(columns.op) - columns.origin.blocks_at_start == 4 - refuses
    assert [one.requested for one in columns.origin.refusals] == [2 << 20] * refuses
    assert columns.owners[-1].endswith(" <module>")
    assert any("events were dropped" in text for text in columns.origin.missing)


def test_settings_of_the_environment_that_make_no_sense_are_named(tmp_path: Path) -> None:
    program = "from allotment import Pool\nPool('1MiB')"
    environment = {"ALLOTMENT_RECORD": str(tmp_path / "t"), "ALLOTMENT_RECORD_EVENTS": "many"}
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=DEADLINE_SECONDS,
    )
    assert "ValueError: ALLOTMENT_RECORD_EVENTS='many' is not a whole number of 0 or more" in done.stderr
    line = run_allotment("record", "--tags", "--stacks", "2", "--", "true").stderr
    assert "'--tags' and '--stacks' exclude each other" in line

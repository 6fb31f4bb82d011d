"""Refusals in recordings: of the pool, of its source, and for lack of machine memory."""

import json
import random
from pathlib import Path

import numpy as np
import pytest

import allotment
from allotment import HostMemory, Pool
from allotment._core import machine_memory
from allotment.integrations.numpy import use
from allotment.trace import TraceError, read_columns, read_trace, read_traces, record
from support.command import allotment as run_allotment
from support.command import replay_json


def test_refusals_are_part_of_the_trace(tmp_path: Path) -> None:
    pool = Pool("1MiB", growth=False, source="address-space")
    with pool.record(tmp_path / "t"):
        pool.malloc(1000)
        for size in (2 << 20, 3 << 20):
            with pytest.raises(allotment.OutOfMemoryError):
                pool.malloc(size)
        pool.malloc(500)
    with np.load(tmp_path / "t") as columns:
        assert columns["size"].tolist() == [1000, 500]
    refusals = read_trace(tmp_path / "t").origin.refusals
    assert [(one.event, one.requested, one.live) for one in refusals] == [
        (1, 2 << 20, 1000),
        (1, 3 << 20, 1000),
    ]
    assert len(replay_json(tmp_path / "t")["out_of_memory"]) == 2


def test_failures_of_a_source_are_refusals_of_the_trace(tmp_path: Path) -> None:
    class Source:
        def reserve(self, nbytes: int, alignment: int) -> tuple[int, int]:
            raise OSError("the device is gone")

        def release(self, address: int, nbytes: int) -> None: ...

    pool = Pool("1MiB", source=Source())
    with pool.record(tmp_path / "t"), pytest.raises(allotment.OutOfMemoryError, match="the device is gone"):
        pool.malloc(1000)
    assert pool.stats().num_refused == 1
    assert [one.requested for one in read_trace(tmp_path / "t").origin.refusals] == [1000]


@pytest.mark.skipif(machine_memory() is None, reason="a system that does not tell its memory")
def test_refusals_for_lack_of_machine_memory_are_part_of_the_trace(tmp_path: Path) -> None:
    pool = Pool("64TiB", source=HostMemory("64TiB", within_machine=True))
    with pool.record(tmp_path / "t"), use(pool), pytest.raises(MemoryError):
        np.empty(32 << 40, np.uint8)
    assert pool.stats().num_refused == 1
    assert [one.requested for one in read_trace(tmp_path / "t").origin.refusals] == [32 << 40]


def test_a_refusal_dumps_the_ring(tmp_path: Path) -> None:
    pool = Pool("1MiB", growth=False, source="address-space")
    with pool.record(on_oom=tmp_path / "oom.npz"):
        pool.malloc(1000)
        assert not (tmp_path / "oom.npz").exists()
        with pytest.raises(allotment.OutOfMemoryError):
            pool.malloc(2 << 20)
    assert [one.requested for one in read_trace(tmp_path / "oom.npz").origin.refusals] == [2 << 20]


def test_a_ring_knows_what_was_live_before_its_first_event(tmp_path: Path) -> None:
    path = tmp_path / "oom.npz"
    pool = Pool("8MiB", source="address-space", owner_tags=True, record_events=20)
    with pool.record(events=20, on_oom=path):
        held = [pool.malloc(100_000) for _ in range(60)]
        for _ in range(30):
            pool.free(pool.malloc(1000))
        with pytest.raises(allotment.OutOfMemoryError) as caught:
            pool.malloc("4MiB")
        journal = read_columns(path)
    assert pool.recording is not None
    for columns in (journal, read_columns(path), *pool.recording.columns()):
        assert [one.live for one in columns.origin.refusals] == [caught.value.live_requested] == [6_000_000]
        assert columns.origin.live_at_end == 100_000 * len(held)
        assert columns.program().peak_live == 6_001_000
        # One small block is in use before the ring's first event, which frees it.
        assert columns.origin.blocks_at_start == 61
        assert list(columns.size)[:60] == [100_000] * 60
        assert columns.owner is not None
        assert "test_recorded_refusals.py" in columns.owners[columns.owner[0]]
        assert columns.origin.incomplete
    with np.load(path) as members:
        assert members["op"].tolist()[:60] == [1] * 60
    report = run_allotment("replay", path).stdout
    assert "4 MiB (4194304 bytes) asked for with 5.72 MiB (6000000 bytes) live" in report


def test_a_ring_of_several_pools_has_the_blocks_of_each(tmp_path: Path) -> None:
    path, chosen = tmp_path / "t", random.Random(5)
    pools = [Pool("1GiB", source="address-space", name=name) for name in ("one", "two")]
    with record(events=3000) as recording:
        held: list[list[int]] = [[], []]
        for _ in range(20_000):
            which = chosen.randrange(2)
            if held[which] and chosen.random() < 0.49:
                pools[which].free(held[which].pop(chosen.randrange(len(held[which]))))
            else:
                held[which].append(pools[which].malloc(chosen.randrange(1, 9000)))
        recording.dump(path)
    live = {pool.name: pool.stats().requested for pool in pools}
    traces = {trace.origin.device: trace for trace in read_traces(path)}
    assert {name: traces[name].origin.live_at_end for name in live} == live
    assert all(traces[name].origin.live_at_start > 0 for name in live)


@pytest.mark.parametrize("number", [-1, 4, True, "1"])
def test_a_wrong_number_of_blocks_from_before_is_an_error(tmp_path: Path, number: object) -> None:
    pool = Pool("1MiB", source="address-space")
    with pool.record(tmp_path / "t"):
        pool.free(pool.malloc(100))
    with np.load(tmp_path / "t") as members:
        changed = {name: members[name] for name in members}
    header = json.loads(str(changed["header"])) | {"live_before": number}
    with (tmp_path / "t").open("wb") as file:
        np.savez(file, allow_pickle=False, **changed | {"header": np.array(json.dumps(header))})
    with pytest.raises(TraceError, match="live_before"):
        read_trace(tmp_path / "t")

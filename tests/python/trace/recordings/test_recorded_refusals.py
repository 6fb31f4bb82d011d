"""Refusals in recordings: of the pool, of its source, and for lack of machine memory."""

from pathlib import Path

import numpy as np
import pytest

import allotment
from allotment import HostMemory, Pool
from allotment._core import machine_memory
from allotment.integrations.numpy import use
from allotment.trace import read_trace
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

"""Simulated GPUs with more memory than the machine: one warning, and a refusal instead of the kernel's killer."""

from typing import Any

import numpy as np
import pytest

import allotment.tf as tf
from allotment import HostMemory, Pool
from allotment._core import machine_memory
from allotment.integrations.numpy import use
from support.devices import fresh, pools, run_on_gpus

MIB = 1 << 20
GIB = 1 << 30
BLOCK = GIB // 4

with_known_memory = pytest.mark.skipif(
    machine_memory() is None, reason="a system that does not tell its memory"
)


def available() -> int:
    with open("/proc/meminfo", encoding="ascii") as file:
        (line,) = (line for line in file if line.startswith("MemAvailable:"))
    return int(line.split()[1]) * 1024


@with_known_memory
def test_more_simulated_memory_than_there_is_warns_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    machine = machine_memory() or 0
    fresh(monkeypatch, f"4:{machine // 4 + MIB}").ready()
    for _ in range(2):
        tf.config.list_logical_devices()
    (message,) = caplog.messages
    assert "this machine has" in message
    assert "is refused" in message


@with_known_memory
def test_as_much_as_there_is_does_not_warn(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    machine = machine_memory() or 0
    fresh(monkeypatch, f"2:{machine}").ready()
    assert len(caplog.messages) == 1
    caplog.clear()
    fresh(monkeypatch, f"2:{machine // 2}").ready()
    assert caplog.messages == []


@with_known_memory
@pytest.mark.parametrize("growth", [True, False])
def test_arrays_that_the_machine_has_no_memory_for_are_refused(growth: bool) -> None:
    # Nothing is written to: what was handed out and may be written to counts.
    memory = HostMemory("64TiB", within_machine=True)
    many = [Pool("16TiB", source=memory, growth=growth) for _ in range(3)]
    before = available()
    held: list[np.ndarray[Any, Any]] = []
    with pytest.raises(MemoryError):  # noqa: PT012 - filled until it is raised
        while len(held) * BLOCK <= before + GIB:
            with use(many[len(held) % len(many)]):
                held.append(np.empty(BLOCK, np.uint8))
    # Other programs may have taken some meanwhile.
    assert before * 3 // 4 - 2 * GIB <= len(held) * BLOCK <= before
    # Addresses may never be written to.
    many[0].free(many[0].malloc(BLOCK))
    held.clear()
    with use(many[0]):
        np.empty(BLOCK, np.uint8)


@with_known_memory
def test_operations_are_refused_and_the_device_serves_on() -> None:
    program = """
    import allotment.tf as tf
    with tf.device("/GPU:0"):
        try:
            tf.zeros([1 << 44])
        except tf.errors.ResourceExhaustedError as refused:
            print(refused.verdict, "this machine has" in str(refused))
        print(float(tf.reduce_sum(tf.ones([1000]))))
        print(tf.config.experimental.get_memory_info("GPU:0")["current"] > 0)
    """
    done = run_on_gpus("1:1024TiB", program)
    assert done.stdout == "source True\n1000.0\nFalse\n", done.stderr
    assert done.stderr.count("this machine has") == 1


def test_reserving_stays_free(monkeypatch: pytest.MonkeyPatch) -> None:
    (pool,) = pools(fresh(monkeypatch, "1:1TiB"))
    pool.free(pool.malloc(MIB))
    assert pool.stats().reserved == 1 << 40


def test_other_host_memory_is_not_watched() -> None:
    assert HostMemory(1024).within_machine is False
    # Address space without a write.
    pool = Pool("16TiB", source=HostMemory("16TiB"))
    pool.free(pool.malloc("8TiB"))

"""How long do an eager operation and a device scope take, compared with NumPy and TensorFlow?

Budgets: the sum of two 2 by 2 tensors takes at most 3 times NumPy's time on the CPU, 5 times on a simulated GPU, and a
fifth of TensorFlow's; a scope takes at most a fifth of TensorFlow's. This package and NumPy are measured alternately in
this process; TensorFlow alternates with them in another process, if ``ALLOTMENT_TENSORFLOW`` names a Python interpreter
with TensorFlow, as in ``make bench``.
"""

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from time import perf_counter_ns

import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

import allotment
import allotment.tf as tf

ROUNDS, CALLS = 15, 20_000

TENSORFLOW = """
import sys, time
import tensorflow as tf
a = tf.constant([[1.0, 2.0], [3.0, 4.0]])
def add():
    return a + a
def scope():
    with tf.device("/CPU:0"):
        pass
for line in sys.stdin:
    call, calls = {"add": add, "scope": scope}[line.strip()], 5_000
    start = time.perf_counter_ns()
    for _ in range(calls):
        call()
    print((time.perf_counter_ns() - start) / calls, flush=True)
"""


def once(call: Callable[[], object]) -> float:
    """Return the nanoseconds per call in one round."""
    start = perf_counter_ns()
    for _ in range(CALLS):
        call()
    return (perf_counter_ns() - start) / CALLS


def scope() -> None:
    with tf.device("/CPU:0"):
        pass


def adders() -> dict[str, Callable[[], object]]:
    array = np.array([[1.0, 2.0], [3.0, 4.0]], np.float32)
    added: dict[str, Callable[[], object]] = {"numpy": lambda: np.add(array, array)}
    for device in tf.config.list_logical_devices():
        with tf.device(device):
            a = tf.constant(array)
        added[device.name] = lambda a=a: a + a  # type: ignore[misc]
    return added


@pytest.fixture(scope="module", autouse=True)
def gpu() -> None:
    allotment.testing.simulate_gpus("1:1GiB")


def report(name: str, ratio: float, budget: float) -> None:
    sys.__stdout__.write(f"\n{name}: {ratio:.2f} (budget {budget:g})\n")  # type: ignore[union-attr]


@pytest.mark.parametrize(("device", "budget"), [("/device:CPU:0", 3), ("/device:GPU:0", 5)])
def test_add_beside_numpy(benchmark: BenchmarkFixture, device: str, budget: float) -> None:
    added = adders()
    with tf.device(device):
        numpy, ours = zip(*((once(added["numpy"]), once(added[device])) for _ in range(ROUNDS)), strict=True)
        benchmark(added[device])
    benchmark.extra_info["times NumPy"] = min(ours) / min(numpy)
    report(f"add on {device}, times NumPy's", min(ours) / min(numpy), budget)


@pytest.mark.parametrize("what", ["add", "scope"])
def test_beside_tensorflow(benchmark: BenchmarkFixture, what: str) -> None:
    python = os.environ.get("ALLOTMENT_TENSORFLOW")
    if not python:
        pytest.skip("ALLOTMENT_TENSORFLOW names no Python with TensorFlow")
    ours = {"add": adders()["/device:CPU:0"], "scope": scope}[what]
    with (
        subprocess.Popen(
            [python, "-c", textwrap.dedent(TENSORFLOW)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, "CUDA_VISIBLE_DEVICES": "-1", "TF_CPP_MIN_LOG_LEVEL": "3"},
        ) as peer,
        tf.device("/CPU:0"),
    ):
        assert peer.stdin is not None
        assert peer.stdout is not None
        pairs = []
        for _ in range(ROUNDS):
            peer.stdin.write(what + "\n")
            peer.stdin.flush()
            pairs.append((float(peer.stdout.readline()), once(ours)))
        peer.stdin.close()
        theirs, mine = zip(*pairs, strict=True)
        benchmark(ours)
    benchmark.extra_info["share of TensorFlow's"] = min(mine) / min(theirs)
    report(f"{what}, share of TensorFlow's {min(theirs):.0f} ns", min(mine) / min(theirs), 0.2)

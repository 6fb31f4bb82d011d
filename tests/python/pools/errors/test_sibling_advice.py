"""Refusals of pools that share one memory: idle regions of siblings are used, or named."""

import ctypes
import random
import threading
import time

import numpy as np
import pytest

import allotment
from allotment import HostMemory, OutOfMemoryError, Pool
from support.child import run_program
from support.pools.refusals import refusal

KIB = 1 << 10
MIB = 1 << 20


def test_what_a_sibling_quarantines_stays_until_it_is_needed() -> None:
    memory = HostMemory("64MiB")
    guarded = Pool("32MiB", source=memory, guard=True)
    pool = Pool("64MiB", source=memory)
    allocation = guarded.allocate("1MiB")
    view = np.frombuffer(allocation, np.uint8)
    address = allocation.address
    del view
    allocation.free()
    assert pool.can_allocate(1)
    assert pool.explain("48MiB").fits
    ctypes.memset(address, 7, 1)
    with pytest.raises(allotment.MemoryDamageError):
        guarded.trim()


def test_a_child_counts_its_own_share_of_a_shared_memory() -> None:
    run = run_program("""
import os
import allotment

memory = allotment.HostMemory("8MiB")
parent = allotment.Pool("8MiB", source=memory, growth=False)
parent.malloc(1)
child = os.fork()
if child == 0:
    pool = allotment.Pool("8MiB", source=memory)
    fits = memory.used == 0 and pool.explain("4MiB").fits
    pool.malloc("4MiB")
    os._exit(0 if fits else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
""")
    assert run.stdout.split() == ["0"]


def test_b206_idle_regions_of_a_sibling_are_used() -> None:
    memory = HostMemory("1000MiB")
    idle = Pool("400MiB", source=memory, growth=False)
    idle.free(idle.malloc(1))
    pool = Pool("700MiB", source=memory)
    held = pool.malloc("100MiB")
    assert (idle.stats().reserved, memory.used) == (400 * MIB, 528 * MIB)
    assert not pool.explain("600MiB").fits
    refusal(pool, "600MiB")
    assert idle.stats().reserved == 400 * MIB, "no use beside the limit: it stays"

    assert pool.explain("550MiB").fits
    assert pool.can_allocate("550MiB")
    pool.free(pool.malloc("550MiB"))
    assert idle.stats().reserved == 0
    pool.free(held)


def test_idle_regions_that_a_sibling_is_set_to_keep_are_named() -> None:
    memory = HostMemory("100MiB")
    keeping = Pool("100MiB", source=memory, name="keeping", trim_on_oom=False)
    keeping.free(keeping.malloc("60MiB"))
    pool = Pool("100MiB", source=memory)
    error = refusal(pool, "80MiB")
    assert error.verdict == "source"
    piece = error.advice[0]
    idle = keeping.stats().reserved
    assert (piece.action, piece.targets, piece.bytes) == ("trim", [("keeping", idle)], idle)
    assert not pool.explain("80MiB").fits
    keeping.trim()
    pool.free(pool.malloc("80MiB"))


def test_b218_a_request_that_waits_gets_what_a_sibling_hands_back() -> None:
    memory = HostMemory("100MiB")
    other = Pool("100MiB", source=memory, trim_on_oom=False)
    other.free(other.malloc("60MiB"))
    pool = Pool("100MiB", source=memory, wait_seconds=30)
    timer = threading.Timer(0.3, other.trim)
    timer.start()
    start = time.monotonic()
    pool.free(pool.malloc("80MiB"))
    assert 0.2 < time.monotonic() - start < 10
    timer.join()


def test_a_sibling_that_frees_while_a_request_waits_is_trimmed() -> None:
    memory = HostMemory("100MiB")
    other = Pool("100MiB", source=memory)
    held = other.malloc("60MiB")
    pool = Pool("100MiB", source=memory, wait_seconds=30)
    timer = threading.Timer(0.3, other.free, [held])
    timer.start()
    start = time.monotonic()
    pool.free(pool.malloc("80MiB"))
    assert time.monotonic() - start < 10
    timer.join()
    assert other.stats().reserved == 0


def test_pools_on_one_memory_trim_each_other_under_threads() -> None:
    memory = HostMemory("64MiB")
    pools = [Pool("48MiB", source=memory) for _ in range(4)]
    refused = []

    def work(pool: Pool, seed: int) -> None:
        generator = random.Random(seed)
        for _ in range(200):
            try:
                pool.free(pool.malloc(generator.randrange(1, 16 * MIB)))
            except OutOfMemoryError as error:
                refused.append(error.verdict)

    threads = [threading.Thread(target=work, args=(pool, seed)) for seed, pool in enumerate(pools)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # Sixteen MiB each fit at once; regions are larger than requests, so now and then one is refused.
    assert set(refused) <= {"source"}
    assert memory.used <= memory.capacity
    for pool in pools:
        pool.trim()
    assert memory.used == 0

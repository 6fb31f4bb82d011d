"""Limits, growth and giving back, while pools and devices are in use."""

import time

import numpy as np
import pytest
from prometheus_client.parser import text_string_to_metric_families

import allotment
import allotment.tf as tf
from allotment import OutOfMemoryError, Pool
from support.child import run_program
from support.devices import MIB, fresh, gpus, pools, run_on_gpus, split


def resident() -> int:
    """Bytes of this process in physical memory."""
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * 4096


def test_a_limit_goes_up_and_down() -> None:
    pool = Pool("8MiB")
    held = pool.allocate("6MiB")
    with pytest.raises(OutOfMemoryError):
        pool.allocate("6MiB")
    pool.set_limit("16MiB")
    more = pool.allocate("6MiB")
    assert (pool.limit, pool.stats().limit) == (16 * MIB, 16 * MIB)
    more.free()
    reserved = pool.stats().reserved
    with pytest.raises(
        ValueError, match=f"8388608 is below the {reserved} bytes that are reserved: trim first"
    ):
        pool.set_limit("8MiB")
    assert pool.limit == 16 * MIB
    pool.set_limit("8MiB", trim=True)
    assert pool.stats().reserved <= pool.limit == 8 * MIB
    with pytest.raises(ValueError, match="stay reserved after a trim"):
        pool.set_limit("1MiB", trim=True)
    held.free()


@pytest.mark.parametrize("limit", [0, -1, "0B", 1 << 64, 1.5, None])
def test_odd_limits_change_nothing(limit: object) -> None:
    pool = Pool("8MiB")
    with pytest.raises((ValueError, TypeError)):
        pool.set_limit(limit)  # type: ignore[arg-type]
    assert pool.limit == 8 * MIB


def test_growth_is_turned_off_and_on() -> None:
    pool = Pool("64MiB")
    pool.malloc(MIB)
    pool.set_growth(False)
    assert pool.growth is False
    pool.malloc(2 * MIB)
    assert pool.stats().reserved == 64 * MIB
    pool.set_growth(True)
    assert pool.growth is True


def test_logical_devices_change_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    context = fresh(monkeypatch, "2:64MiB")
    split(gpus()[0], 16, 16)
    first, second, third = tf.config.list_logical_devices("GPU")
    allotment.experimental.set_memory_limit(first, "32MiB")
    allotment.experimental.set_memory_limit("GPU:2", "8MiB")
    allotment.experimental.set_memory_growth(third, True)
    allotment.experimental.set_memory_growth("GPU:0", True)
    assert [pool.limit for pool in pools(context)] == [32 * MIB, 16 * MIB, 8 * MIB]
    assert [pool.growth for pool in pools(context)] == [True, False, True]
    details = allotment.experimental.get_logical_device_details(first)
    assert (details["memory_limit"], details["memory_growth"]) == (32 * MIB, True)
    assert details["memory_limit_set_by"] == "allotment.experimental.set_memory_limit"
    with pytest.raises(ValueError, match="above the 48 MiB"):
        allotment.experimental.set_memory_limit(first, "49MiB")
    allotment.experimental.set_memory_limit(first, "48MiB")
    with pytest.raises(ValueError, match="No matching devices found for 'GPU:7'"):
        allotment.experimental.set_memory_limit("GPU:7", "8MiB")
    with pytest.raises(ValueError, match="has no pool"):
        allotment.experimental.set_memory_limit("CPU:0", "8MiB")
    with pytest.raises(TypeError):
        allotment.experimental.set_memory_growth(second, "on")  # type: ignore[arg-type]


def test_a_device_is_never_limited_below_what_it_holds() -> None:
    program = """
    import allotment
    import allotment.tf as tf
    MIB = 1 << 20
    with tf.device("/GPU:0"):
        small = tf.zeros([MIB // 4])
        large = tf.zeros([8 * MIB // 4])
    del large
    try:
        allotment.experimental.set_memory_limit("GPU:0", "4MiB")
    except ValueError as error:
        print("trim first" in str(error))
    allotment.experimental.set_memory_limit("GPU:0", "4MiB", trim=True)
    print(allotment.experimental.get_logical_device_details("GPU:0")["memory_limit"] // MIB)
    print(small.numpy().any(), allotment.experimental.trim())
    """
    done = run_on_gpus("1:64MiB", program, TF_FORCE_GPU_ALLOW_GROWTH="true")
    assert done.stdout.splitlines() == ["True", "4", "False 0"], done.stderr


def test_b004_what_is_free_goes_back_and_the_process_shrinks() -> None:
    for growth in (True, False):
        pool = Pool("256MiB", growth=growth)
        held = [pool.allocate(8 * MIB) for _ in range(10)]
        for one in held:
            np.frombuffer(one, np.uint8)[:] = 1
        full = resident()
        for one in held:
            one.free()
        assert pool.trim() > 0
        assert pool.stats().reserved == 0
        assert resident() < full - 60 * MIB
    pool = Pool("256MiB")
    kept = pool.allocate(4 * MIB)
    np.frombuffer(kept, np.uint8)[:] = 7
    before = resident()
    large = pool.allocate(32 * MIB)
    np.frombuffer(large, np.uint8)[:] = 1
    large.free()
    pool.trim()
    assert resident() < before + 8 * MIB
    assert len(pool.snapshot().regions) == 1
    assert np.all(np.frombuffer(kept, np.uint8) == 7)


def test_what_is_free_beside_live_memory_goes_back_too() -> None:
    pool = Pool("256MiB", growth=False)
    before = resident()
    held = [pool.allocate(8 * MIB) for _ in range(16)]
    for one in held:
        np.frombuffer(one, np.uint8)[:] = 1
    kept = held.pop(7)
    for one in held:
        one.free()
    assert resident() > before + 100 * MIB
    assert pool.trim() == 0
    assert resident() < before + 8 * MIB + 4 * MIB
    assert np.all(np.frombuffer(kept, np.uint8) == 1)
    again = pool.allocate(64 * MIB)
    assert not np.frombuffer(again, np.uint8).any()
    again.free()
    kept.free()


def test_devices_give_back(monkeypatch: pytest.MonkeyPatch) -> None:
    both = pools(fresh(monkeypatch, "2:64MiB"))
    for pool in both:
        pool.free(pool.malloc(MIB))
    assert allotment.experimental.trim("GPU:0") == 64 * MIB
    assert [pool.stats().reserved for pool in both] == [0, 64 * MIB]
    assert allotment.experimental.trim() == 64 * MIB
    with pytest.raises(ValueError, match="has no pool"):
        allotment.experimental.trim("CPU:0")


def test_an_idle_pool_is_trimmed_by_itself() -> None:
    pool = Pool("64MiB", idle_trim_seconds=0.02)
    kept = pool.allocate(MIB)
    pool.free(pool.malloc(8 * MIB))
    deadline = time.monotonic() + 10
    while pool.stats().reserved > 2 * MIB and time.monotonic() < deadline:
        time.sleep(0.01)
    assert pool.stats().reserved == 2 * MIB
    kept.free()


def test_b213_idle_pools_share_a_thread_that_ends_with_the_last() -> None:
    done = run_program("""
    import os, time
    from allotment import Pool

    def threads():
        return len(os.listdir("/proc/self/task"))

    before, most = threads(), 0
    for number in range(100_000):
        Pool("1MiB", idle_trim_seconds=86400)
        if number % 1000 == 0:
            most = max(most, threads() - before)
    kept = [Pool("1MiB", idle_trim_seconds=86400) for _ in range(20_000)]
    print(max(most, threads() - before))
    del kept
    end = time.monotonic() + 20
    while threads() > before and time.monotonic() < end:
        time.sleep(0.01)
    print(threads() - before)
    """)
    assert (done.returncode, done.stdout.split()) == (0, ["1", "0"]), done.stderr


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf"), 1e-9])
def test_odd_times_to_be_idle_are_refused(seconds: float) -> None:
    with pytest.raises(ValueError, match="idle_trim_seconds"):
        Pool("1MiB", idle_trim_seconds=seconds)


def test_metrics_are_those_of_the_pools() -> None:
    pool = Pool("8MiB", name='metrics "pool"')
    held = pool.allocate(MIB)
    text = allotment.experimental.metrics_text()
    found = {
        (sample.name, sample.labels["number"]): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.labels["pool"] == 'metrics "pool"'
    }
    figures = {name: value for (name, _), value in found.items()}
    assert len(found) == len(figures)
    stats = pool.stats()
    assert figures["allotment_pool_in_use_bytes"] == stats.in_use == MIB
    assert figures["allotment_pool_reserved_bytes"] == stats.reserved
    assert figures["allotment_pool_limit_bytes"] == 8 * MIB
    assert figures["allotment_pool_fragmentation_ratio"] == stats.fragmentation
    assert figures["allotment_pool_live"] == 1
    assert figures["allotment_pool_allocs_total"] == 1
    held.free()

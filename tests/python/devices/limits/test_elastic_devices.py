"""Elastic memory of devices: set before the start, for pools of whole GPUs and of logical devices."""

import json
from typing import Any

import numpy as np
import pytest

import allotment
import allotment.tf as tf
from allotment.devices.context import context
from allotment.devices.reports.devices import report_devices
from allotment.devices.reports.text import report_text
from support.devices import MIB, fresh, gpus, pools, split

pytestmark = pytest.mark.not_opencl("OpenCL gives whole regions, and not single pages")

set_elastic = allotment.experimental.set_memory_elastic
get_elastic = allotment.experimental.get_memory_elastic


def test_the_pools_of_an_elastic_gpu_are_elastic(monkeypatch: pytest.MonkeyPatch) -> None:
    made = fresh(monkeypatch, "2:64MiB")
    first, second = gpus()
    assert (get_elastic(first), get_elastic(second)) == (False, False)
    set_elastic(first, True)
    set_elastic(second, True)
    set_elastic(second, False)
    assert (get_elastic(first), get_elastic(second)) == (True, False)
    assert [pool.elastic for pool in pools(made)] == [True, False]
    details = allotment.experimental.get_logical_device_details
    assert [details(f"GPU:{index}")["memory_elastic"] for index in (0, 1)] == [True, False]
    report = report_devices(made)
    assert [one.memory_elastic for one in report.logical] == [None, True, False]
    assert "pool GPU_0_bfc, elastic\n" in report_text(report)
    assert "pool GPU_1_bfc\n" in report_text(report)
    json.dumps(report.as_dict())


def test_whole_numbers_are_switches_as_they_are_for_growth(monkeypatch: pytest.MonkeyPatch) -> None:
    fresh(monkeypatch, "1:64MiB")
    (gpu,) = gpus()
    number: Any
    for number, expected in ((1, True), (0, False), (2, True)):
        set_elastic(gpu, number)
        assert get_elastic(gpu) is expected
    wrong: Any
    for wrong in ("yes", 1.0, None):
        with pytest.raises(TypeError, match=r"but expected one of: \(bool, int\)"):
            set_elastic(gpu, wrong)
    assert get_elastic(gpu)


def test_where_a_plain_gpu_is_fragmented_an_elastic_one_has_memory() -> None:
    with allotment.testing.runtime("2:64MiB"):
        set_elastic(gpus()[1], True)
        for device in ("GPU:0", "GPU:1"):
            with tf.device(device):
                held = [tf.ones([4 * MIB // 4]) for _ in range(15)]
                # Every second one is dropped: half of the memory is free, in pieces.
                del held[::2]
                if device == "GPU:0":
                    with pytest.raises(tf.errors.ResourceExhaustedError):
                        tf.ones([16 * MIB // 4])
                else:
                    wide = tf.ones([32 * MIB // 4])
                    assert np.all(wide.numpy() == 1)
                    assert all(np.all(one.numpy() == 1) for one in held)
        plain, elastic = (pool.stats() for pool in pools(context()))
        assert elastic.num_commits > elastic.committed // (2 * MIB)
        assert elastic.committed <= 64 * MIB
        assert plain.num_commits == 0


def test_logical_devices_keep_to_their_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    made = fresh(monkeypatch, "1:64MiB")
    (gpu,) = gpus()
    split(gpu, 16, 48)
    set_elastic(gpu, True)
    small, large = pools(made)
    assert (small.elastic, large.elastic) == (True, True)
    for pool, room in ((small, 16 * MIB), (large, 48 * MIB)):
        addresses = [pool.malloc(2 * MIB) for _ in range(room // (2 * MIB))]
        with pytest.raises(allotment.OutOfMemoryError):
            pool.malloc(256)
        assert len(set(addresses)) == len(addresses)
    assert small.stats().committed + large.stats().committed == 64 * MIB
    # Limits of devices in use move as those of other pools.
    with pytest.raises(ValueError, match="is above the"):
        allotment.experimental.set_memory_limit("GPU:0", "17MiB")
    assert allotment.experimental.trim() == 0


def test_growth_decides_when_memory_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    for growth in (True, False):
        made = fresh(monkeypatch, "1:64MiB")
        (gpu,) = gpus()
        set_elastic(gpu, True)
        allotment.experimental.set_memory_growth(gpu, growth)
        (pool,) = pools(made)
        pool.malloc(1)
        assert pool.stats().committed == (2 * MIB if growth else 64 * MIB)


def test_only_gpus_and_only_before_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    fresh(monkeypatch, "1:64MiB")
    cpu, gpu = tf.config.list_physical_devices()
    for call in (lambda: set_elastic(cpu, True), lambda: get_elastic(cpu)):
        with pytest.raises(
            ValueError, match="Only a GPU's memory can be elastic, not that of /physical_device:CPU:0"
        ):
            call()
    odd: Any = "yes"
    with pytest.raises(TypeError, match="'yes' has type str"):
        set_elastic(gpu, odd)
    stranger: Any = "GPU:0"
    with pytest.raises(ValueError, match="Unrecognized device: 'GPU:0'"):
        set_elastic(stranger, True)
    tf.config.list_logical_devices()
    set_elastic(gpu, False)
    with pytest.raises(RuntimeError, match="cannot be modified after being initialized") as late:
        set_elastic(gpu, True)
    assert "Elastic memory of /physical_device:GPU:0: False now, and this call asks for True" in (
        str(late.value) + "".join(getattr(late.value, "__notes__", ()))
    )


@pytest.mark.simulated_gpus("memory that the host does not write to is not guarded")
def test_guarded_memory_is_not_elastic(monkeypatch: pytest.MonkeyPatch) -> None:
    made = fresh(monkeypatch, "1:64MiB", ALLOTMENT_GUARD="1")
    (gpu,) = gpus()
    with pytest.raises(ValueError, match="cannot be elastic while ALLOTMENT_GUARD=1"):
        set_elastic(gpu, True)
    set_elastic(gpu, False)
    assert [pool.elastic for pool in pools(made)] == [False]


def test_a_limit_below_a_page_is_an_error_at_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    fresh(monkeypatch, "1:64MiB")
    (gpu,) = gpus()
    set_elastic(gpu, True)
    allotment.experimental.set_memory_limit(gpu, "1MiB")
    with pytest.raises(
        tf.errors.InvalidArgumentError,
        match=r"in pages of 2 MiB, and a limit of 1 MiB, set by allotment.experimental.set_memory_limit, is less",
    ):
        tf.config.list_logical_devices()
    allotment.experimental.set_memory_limit(gpu, "2MiB")
    assert len(tf.config.list_logical_devices("GPU")) == 1


@pytest.mark.parametrize("with_options", [False, True])
def test_the_pools_of_a_session_are_elastic(monkeypatch: pytest.MonkeyPatch, with_options: bool) -> None:
    made = fresh(monkeypatch, "2:64MiB")
    set_elastic(gpus()[1], True)
    v1 = tf.compat.v1
    options = v1.GPUOptions(visible_device_list="1,0", per_process_gpu_memory_fraction=0.5)
    config = v1.ConfigProto(gpu_options=options) if with_options else None
    with tf.Graph().as_default(), v1.Session(config=config) as session:
        assert session.run(tf.reduce_sum(tf.ones([4]))) == 4
    # The session's list puts the second GPU first.
    assert [made.created.gpus[index].plan.elastic for index in (0, 1)] == [with_options, not with_options]
    elastic = made.created.gpus[0 if with_options else 1]
    assert elastic.pool is not None
    assert elastic.pool.elastic
    assert elastic.plan.physical.device == gpus()[1]


def test_a_limit_of_a_session_below_a_page_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    fresh(monkeypatch, "1:64MiB")
    set_elastic(gpus()[0], True)
    v1 = tf.compat.v1
    splits = v1.GPUOptions.Experimental(
        virtual_devices=[v1.GPUOptions.Experimental.VirtualDevices(memory_limit_mb=[1, 8])]
    )
    config = v1.ConfigProto(gpu_options=v1.GPUOptions(experimental=splits))
    with pytest.raises(
        tf.errors.InvalidArgumentError,
        match=r"in pages of 2 MiB, and a limit of 1 MiB, set by gpu_options\.experimental\.virtual_devices",
    ):
        v1.Session(config=config)


def test_a_session_that_finds_a_plain_pool_says_so(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    fresh(monkeypatch, "1:64MiB")
    v1 = tf.compat.v1
    v1.Session(config=v1.ConfigProto()).close()
    set_elastic(gpus()[0], True)
    v1.Session(config=v1.ConfigProto()).close()
    said = "allotment.experimental.set_memory_elastic has no effect on GPU:0: its pool was made earlier"
    assert said in caplog.text


def test_tensorflow_s_names_are_as_they_were() -> None:
    assert not any("elastic" in name for name in dir(tf.config) + dir(tf.config.experimental))

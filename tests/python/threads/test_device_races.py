"""Settings, limits, scopes and logs of devices that threads use and change at the same time."""

import itertools
import logging
from functools import partial
from typing import Any

import pytest

import allotment.tf as tf
from allotment import experimental, testing
from allotment.devices import placement_log
from allotment.devices.context import context
from support.attempts import run_together

pytestmark = pytest.mark.usefixtures("hasty_switches")


def test_a_warning_is_given_once(caplog: pytest.LogCaptureFixture) -> None:
    keys = [*map(str, range(2000))]

    def report() -> None:
        for key in keys:
            context().report(key, f"warning {key}")

    with testing.runtime():
        run_together([report] * 4)
    assert sorted(caplog.messages) == sorted(f"warning {key}" for key in keys)


def test_limits_of_one_gpu_are_never_above_its_memory() -> None:
    with testing.runtime("1:64MiB"):
        gpu = tf.config.list_physical_devices("GPU")[0]
        tf.config.set_logical_device_configuration(gpu, [tf.config.LogicalDeviceConfiguration(16)] * 2)
        for _ in range(50):
            for device in ("GPU:0", "GPU:1"):
                experimental.set_memory_limit(device, "16MiB")
            outcomes = run_together(
                [partial(experimental.set_memory_limit, name, "40MiB") for name in ("GPU:0", "GPU:1")]
            )
            assert sum(outcome.error is None for outcome in outcomes) == 1
            details = [experimental.get_logical_device_details(name) for name in ("GPU:0", "GPU:1")]
            assert sum(each["memory_limit"] for each in details) == 56 << 20


def test_a_limit_and_growth_are_both_kept() -> None:
    with testing.runtime("1:64MiB"):
        for growth, limit in itertools.islice(itertools.product((True, False), range(16, 41)), 50):
            outcomes = run_together(
                [
                    partial(experimental.set_memory_growth, "GPU:0", growth),
                    partial(experimental.set_memory_limit, "GPU:0", limit << 20),
                ]
            )
            assert [outcome.error for outcome in outcomes] == [None, None]
            details = experimental.get_logical_device_details("GPU:0")
            assert (details["memory_growth"], details["memory_limit"]) == (growth, limit << 20)


def test_lines_of_many_threads_leave_the_log_off(capfd: pytest.CaptureFixture[str]) -> None:
    with testing.runtime():
        for _ in range(20):
            run_together(
                [lambda: placement_log.log_line("a line")] * 3
                + [lambda: placement_log.warn_of_copy("a copy")]
            )
        assert placement_log.logger.level == logging.NOTSET
        assert placement_log.logger.handlers == []
    lines = capfd.readouterr().err.splitlines()
    assert (lines.count("a line"), lines.count("a copy")) == (60, 20)


def test_a_replaced_runtime_counts_changes_of_flags_up_alone() -> None:
    versions = []

    def replace() -> None:
        for _ in range(100):
            with testing.runtime():
                versions.append(context().flags_version)

    def change() -> None:
        for _ in range(2000):
            before = context().flags_version
            tf.config.experimental.enable_op_determinism()
            assert context().flags_version > before

    outcomes = run_together([replace, change, change])
    assert [outcome.error for outcome in outcomes] == [None] * 3
    assert all(earlier < later for earlier, later in itertools.pairwise(versions))


def test_each_thread_has_scopes_of_devices_and_memory_of_its_own() -> None:
    with testing.runtime("4:16MiB"):

        def work(number: int) -> int:
            name = f"GPU:{number}"
            with experimental.memory_scope("thread", name) as scope, tf.device(name):
                for _ in range(50):
                    value = tf.ones([100]) + 1.0
                    assert value.device.endswith(name)
                    with tf.device("CPU:0"):
                        assert tf.identity(value).device.endswith("CPU:0")
            return scope.allocated

        outcomes = run_together([lambda number=number: work(number) for number in range(4)])  # type: ignore[misc]
        assert [outcome.error for outcome in outcomes] == [None] * 4
        assert len({outcome.value for outcome in outcomes}) == 1
        assert [
            tf.config.experimental.get_memory_info(f"GPU:{number}")["current"] for number in range(4)
        ] == [0] * 4


def test_flags_and_policies_change_while_operations_run() -> None:
    with testing.runtime("2:16MiB"):

        def work() -> None:
            for _ in range(150):
                with tf.device("GPU:1"):
                    assert float(tf.reduce_sum(tf.ones([10]))) == 10.0

        def change() -> None:
            for step in range(150):
                tf.config.set_soft_device_placement(step % 2 == 0)
                tf.config.experimental.set_device_policy("silent" if step % 2 else "warn")

        outcomes: list[Any] = run_together([work, work, change, change])
        assert [outcome.error for outcome in outcomes] == [None] * 4

"""Options that another one overrides: each is one warning."""

import os
from collections.abc import Callable

import pytest

import allotment
import allotment.tf as tf
from support.devices import MIB, fresh, gpus, limits, pools, run_on_gpus, split


def own_limit_over_everything() -> None:
    tf.config.gpu.set_per_process_memory_fraction(0.5)
    allotment.experimental.set_memory_limit(gpus()[0], "16MiB")


def own_growth_over_tensorflows() -> None:
    tf.config.experimental.set_memory_growth(gpus()[0], True)
    allotment.experimental.set_memory_growth(gpus()[0], False)


RESERVE = {"TF_DEVICE_MIN_SYS_MEMORY_IN_MB": "16"}
FRACTION = "config.gpu.set_per_process_memory_fraction(0.5) has no effect on /physical_device:GPU:0: "


@pytest.mark.parametrize(
    ("environ", "configure", "limit", "warnings"),
    [
        (
            RESERVE,
            lambda: tf.config.gpu.set_per_process_memory_fraction(0.5),
            48,
            [FRACTION + "TF_DEVICE_MIN_SYS_MEMORY_IN_MB sets its limit, as in TensorFlow."],
        ),
        (
            RESERVE,
            lambda: split(gpus()[0], 40),
            40,
            [
                "TF_DEVICE_MIN_SYS_MEMORY_IN_MB has no effect on /physical_device:GPU:0: its logical devices have "
                "limits of their own."
            ],
        ),
        (
            RESERVE,
            own_limit_over_everything,
            16,
            [
                "TF_DEVICE_MIN_SYS_MEMORY_IN_MB has no effect on /physical_device:GPU:0: "
                "allotment.experimental.set_memory_limit sets its limit.",
                FRACTION + "allotment.experimental.set_memory_limit sets its limit.",
            ],
        ),
        (
            {},
            own_growth_over_tensorflows,
            64,
            [
                "set_memory_growth(True) has no effect on /physical_device:GPU:0: "
                "allotment.experimental.set_memory_growth(False) sets its growth."
            ],
        ),
        (
            {"TF_CPU_BFC_MEM_LIMIT_IN_MB": "64"},
            lambda: None,
            64,
            [
                "TF_CPU_BFC_MEM_LIMIT_IN_MB has no effect: the CPU has a pool only with TF_CPU_ALLOCATOR_USE_BFC=true."
            ],
        ),
        ({}, lambda: tf.config.gpu.set_per_process_memory_fraction(0.5), 32, []),
        (RESERVE, lambda: None, 48, []),
    ],
)
def test_what_has_no_effect_is_said_once(
    environ: dict[str, str],
    configure: Callable[[], None],
    limit: int,
    warnings: list[str],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    context = fresh(monkeypatch, "1:64MiB", **environ)
    configure()
    for _ in range(2):
        assert limits(context) == [("GPU:0", limit)]
    assert caplog.messages == warnings


def test_a_session_says_it_of_its_options(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    fresh(monkeypatch, "1:64MiB", **RESERVE)
    v1 = tf.compat.v1
    options = v1.ConfigProto(gpu_options=v1.GPUOptions(per_process_gpu_memory_fraction=0.5))
    for _ in range(2):
        with tf.Graph().as_default():
            v1.Session(config=options)
    (message,) = caplog.messages
    assert message.startswith("gpu_options.per_process_gpu_memory_fraction(0.5) has no effect")


def test_a_live_limit_over_a_fraction(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    context = fresh(monkeypatch, "1:64MiB")
    tf.config.gpu.set_per_process_memory_fraction(0.5)
    for size in ("48MiB", "16MiB"):
        allotment.experimental.set_memory_limit("GPU:0", size)
    assert limits(context) == [("GPU:0", 16)]
    assert caplog.messages == [
        "allotment.experimental.set_memory_limit replaces the limit of /device:GPU:0: 48 MiB, where "
        "config.gpu.set_per_process_memory_fraction(0.5) set 32 MiB."
    ]


@pytest.mark.parametrize(
    ("forced", "asked", "warned"), [("true", False, 1), ("false", True, 1), ("true", True, 0)]
)
def test_live_growth_over_the_environment(
    forced: str, asked: bool, warned: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    context = fresh(monkeypatch, "1:64MiB", TF_FORCE_GPU_ALLOW_GROWTH=forced)
    context.ready()
    caplog.clear()
    for _ in range(2):
        allotment.experimental.set_memory_growth("GPU:0", asked)
    assert [pool.growth for pool in pools(context)] == [asked]
    assert len(caplog.messages) == warned
    assert all(f"although TF_FORCE_GPU_ALLOW_GROWTH is {forced}" in message for message in caplog.messages)


@pytest.mark.parametrize("name", ["ALLOTMENT_OWNER_TAGS", "ALLOTMENT_GUARD"])
def test_switches_that_change_late_are_said_once(
    name: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    environ = {"ALLOTMENT_SIMULATED_GPUS": "1:64MiB"}
    context = allotment.devices.context.Context(environ)
    monkeypatch.setattr(allotment.devices.context, "_context", context)
    context.ready()
    environ[name] = "1"
    for _ in range(2):
        tf.config.list_logical_devices()
    (message,) = caplog.messages
    assert message.startswith(f"{name} changed from unset to '1' too late")


def test_tags_that_come_late_are_said_where_they_are_missed() -> None:
    program = """
    import os
    import allotment
    import allotment.tf as tf
    with tf.device("/GPU:0"):
        a = tf.ones([1024])
        os.environ["ALLOTMENT_OWNER_TAGS"] = "1"
        for _ in range(2):
            try:
                tf.zeros([64 << 20])
            except tf.errors.ResourceExhaustedError as refused:
                print(refused.by_owner)
    """
    done = run_on_gpus("1:64MiB", program)
    assert done.stdout == "()\n()\n"
    assert done.stderr.count("ALLOTMENT_OWNER_TAGS changed from unset to '1' too late") == 1


def test_devices_note_owners_where_the_environment_said_so_at_the_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("ALLOTMENT_OWNER_TAGS", raising=False)
    context = fresh(monkeypatch, "1:64MiB", ALLOTMENT_OWNER_TAGS="1")
    assert [pool.owner_tags for pool in pools(context)] == [True]
    assert "ALLOTMENT_OWNER_TAGS" not in os.environ


def test_b208_a_refusal_says_what_set_the_limit_and_what_the_device_has(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Field report B208.
    program = """
    import allotment
    import allotment.tf as tf
    gpu, = tf.config.list_physical_devices("GPU")
    tf.config.set_logical_device_configuration(gpu, [tf.config.LogicalDeviceConfiguration(512)])
    with tf.device("/GPU:0"):
        kept = tf.zeros([500 << 18])
        try:
            tf.zeros([64 << 18])
        except tf.errors.ResourceExhaustedError as refused:
            print(refused)
    """
    done = run_on_gpus("1:1024MiB", program)
    lines = [" ".join(line.split()) for line in done.stdout.splitlines()]
    assert f"limit 512 MiB {512 * MIB} bytes, set by logical device configuration" in lines
    assert f"device has 1 GiB {1024 * MIB} bytes, /physical_device:GPU:0" in lines

"""Messages about devices name the value, say what is allowed, and what to do."""

import re
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

import allotment
import allotment.tf as tf
from support.devices import fresh, gpus, run_on_gpus, split

Config = tf.config.LogicalDeviceConfiguration
# Given what their types do not allow.
config: Any = tf.config
experimental: Any = tf.config.experimental


def refused(call: Callable[[], object], *kinds: type[Exception]) -> str:
    with pytest.raises(kinds or Exception) as raised:
        call()
    text = str(raised.value)
    # Short, and nothing in it can change what a terminal shows.
    assert len(text) < 800
    assert text.replace("\n", "").isprintable()
    return text


def test_a_different_split_after_the_start_shows_both(monkeypatch: pytest.MonkeyPatch) -> None:
    fresh(monkeypatch, "1:1024MiB")
    split(gpus()[0], 100, Config(200, experimental_priority=None))
    tf.config.list_logical_devices()
    split(gpus()[0], 100, 200)
    text = refused(lambda: split(gpus()[0], 300), RuntimeError)
    assert text.startswith("Virtual devices cannot be modified after being initialized\n")
    assert "/physical_device:GPU:0: [100 MiB, 200 MiB] now, and this call asks for [300 MiB]" in text
    assert "restart the program" in text
    assert [each.memory_limit for each in tf.config.get_logical_device_configuration(gpus()[0]) or ()] == [
        100,
        200,
    ]


def test_a_split_of_a_device_that_was_whole_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    fresh(monkeypatch, "1:1024MiB")
    tf.config.list_logical_devices()
    text = refused(lambda: split(gpus()[0], Config(300, -1, 2)), RuntimeError)
    assert "which was not configured" in text
    assert "[300 MiB priority -1 ordinal 2]" in text


@pytest.mark.parametrize(
    ("change", "now", "wanted"),
    [
        (lambda: experimental.set_memory_growth(gpus()[0], True), "None", "True"),
        (lambda: allotment.experimental.set_memory_limit(gpus()[0], 1000), "None", "1000"),
        (lambda: tf.config.set_visible_devices([], "GPU"), "GPU:0']", "CPU:0']"),
        (lambda: tf.config.gpu.set_per_process_memory_fraction(0.5), "0.0", "0.5"),
        (lambda: tf.config.threading.set_intra_op_parallelism_threads(3), "None", "3"),
    ],
)
def test_any_late_change_says_what_is_and_what_is_asked_for(
    change: Callable[[], None], now: str, wanted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fresh(monkeypatch, "1:64MiB")
    tf.config.list_logical_devices()
    text = refused(change, RuntimeError)
    assert re.search(rf"{re.escape(now)} now, and this call asks for .*{re.escape(wanted)}\. It was", text)
    assert "restart the program" in text


@pytest.mark.parametrize(
    "function",
    [
        lambda given: experimental.set_memory_growth(given, True),
        experimental.get_memory_growth,
        experimental.get_device_details,
        lambda given: tf.config.set_logical_device_configuration(given, [Config(1)]),
        tf.config.get_logical_device_configuration,
        lambda given: allotment.experimental.set_memory_growth(given, True),
        allotment.experimental.get_memory_growth,
        lambda given: allotment.experimental.set_memory_limit(given, 1000),
        allotment.experimental.trim,
        lambda given: allotment.experimental.memory_scope("x", given),
        allotment.experimental.get_logical_device_details,
        experimental.get_memory_info,
        experimental.get_memory_usage,
        experimental.reset_memory_stats,
    ],
)
def test_a_list_where_one_device_is_expected(
    function: Callable[[Any], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    fresh(monkeypatch, "2:64MiB")
    several: tuple[Any, ...] = (gpus(), gpus()[:1], tuple(gpus()), [])
    for given in several:
        text = refused(partial(function, given), ValueError, TypeError)
        assert re.search(
            rf"expects one (Physical|Logical)Device.*, got {type(given).__name__}; loop over it", text
        )
    for number in (7, 1.5):
        assert "expects one" in refused(partial(function, number), ValueError, TypeError)


def test_the_function_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    fresh(monkeypatch, "1:64MiB")
    text = refused(lambda: experimental.set_memory_growth([gpus()[0]], True), ValueError)
    assert text.endswith("set_memory_growth expects one PhysicalDevice, got list; loop over it")
    text = refused(lambda: experimental.set_memory_growth("GPU:0", True), ValueError)
    assert "got str; take one from list_physical_devices(), which has: /physical_device:CPU:0, " in text
    text = refused(lambda: config.set_visible_devices([gpus()], "GPU"), ValueError)
    assert text.endswith("got list; pass a list of them")
    text = refused(lambda: experimental.get_memory_info(gpus()[0]), TypeError)
    assert text.endswith("got PhysicalDevice; the logical devices on it are: /device:GPU:0")


def test_a_scope_of_several_devices_says_how_to_write_it() -> None:
    program = """
    import allotment
    import allotment.tf as tf
    try:
        with tf.device(tf.config.list_physical_devices("GPU")):
            pass
    except ValueError as error:
        print(error)
    """
    done = run_on_gpus("1:64MiB", program)
    assert done.stdout.endswith(
        "device.__enter__ expects one name of a device, got list; open a scope for each\n"
    ), done


@pytest.mark.parametrize(
    "limit", [2**1000, 10**400, 2.0**1000, -1, -7.5, float("nan"), float("inf"), 1 << 43]
)
def test_a_limit_that_is_no_amount_names_the_field(limit: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    fresh(monkeypatch, "1:64MiB")
    split(gpus()[0], Config(memory_limit=limit))
    text = refused(tf.config.list_logical_devices, ValueError)
    assert "memory_limit of /physical_device:GPU:0 must be a number of MiB" in text
    assert str(limit)[:100] in text
    assert "ower" not in text
    # Nothing is half-applied: the setting can be corrected.
    split(gpus()[0], 32)
    assert len(tf.config.list_logical_devices("GPU")) == 1


@pytest.mark.parametrize("limit", [True, False, "1024", [], 1j])
def test_a_limit_that_is_no_number_names_the_field(limit: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    fresh(monkeypatch, "1:64MiB")
    split(gpus()[0], Config(memory_limit=limit))
    text = refused(tf.config.list_logical_devices, TypeError)
    assert (
        f"memory_limit of /physical_device:GPU:0 must be a number of MiB, such as 1024, not {limit!r}" in text
    )


@pytest.mark.parametrize("limit", [0, 0.5, -0.5])
def test_a_limit_of_nothing_is_tensorflows_and_warns(
    limit: float, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    fresh(monkeypatch, "1:64MiB")
    split(gpus()[0], limit)
    for _ in range(2):
        assert allotment.experimental.get_logical_device_details("GPU:0")["memory_limit"] == 0
    (message,) = caplog.messages
    assert "Nothing can be allocated on /device:GPU:0: its limit is 0 bytes" in message


def session(**options: Any) -> None:
    v1 = tf.compat.v1
    with tf.Graph().as_default():
        v1.Session(config=v1.ConfigProto(gpu_options=v1.GPUOptions(**options)))


@pytest.mark.parametrize("fraction", [-1, float("nan"), float("inf"), 2**2000])
def test_a_fraction_out_of_range_names_the_field(fraction: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    fresh(monkeypatch, "1:64MiB")
    text = refused(lambda: tf.config.gpu.set_per_process_memory_fraction(fraction), ValueError)
    assert "fraction must be 0 (TensorFlow's rule), or above 0 and up to 1" in text
    text = refused(lambda: session(per_process_gpu_memory_fraction=fraction), ValueError, RuntimeError)
    assert "per_process_gpu_memory_fraction must be" in text


def test_a_fraction_above_1_names_the_field(monkeypatch: pytest.MonkeyPatch) -> None:
    fresh(monkeypatch, "1:64MiB")
    text = refused(lambda: session(per_process_gpu_memory_fraction=2), tf.errors.InternalError)
    assert "gpu_options.per_process_gpu_memory_fraction is 2.0: it must be above 0 and up to 1" in text
    tf.config.gpu.set_per_process_memory_fraction(1.5)
    text = refused(tf.config.list_logical_devices, tf.errors.InternalError)
    assert "config.gpu.set_per_process_memory_fraction is 1.5: it must be above 0 and up to 1" in text


def test_a_fraction_of_nothing_warns(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    fresh(monkeypatch, "1:64MiB")
    tf.config.gpu.set_per_process_memory_fraction(1e-300)
    tf.config.list_logical_devices()
    (message,) = caplog.messages
    assert "its limit is 0 bytes, set by config.gpu.set_per_process_memory_fraction(1e-300)" in message


def test_limits_of_a_session_name_their_field(monkeypatch: pytest.MonkeyPatch) -> None:
    fresh(monkeypatch, "1:64MiB")
    v1 = tf.compat.v1
    virtual = v1.GPUOptions.Experimental.VirtualDevices(memory_limit_mb=[-1.0])
    options = v1.GPUOptions.Experimental(virtual_devices=[virtual])
    text = refused(lambda: session(experimental=options), tf.errors.InvalidArgumentError)
    assert "gpu_options.experimental.virtual_devices.memory_limit_mb must be a number of MiB" in text


def test_an_allocator_that_there_is_not_lists_those_there_are(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    fresh(monkeypatch, "1:64MiB", TF_GPU_ALLOCATOR="bogus\n").ready()
    (message,) = caplog.messages
    assert r"TF_GPU_ALLOCATOR='bogus\n' has no effect here" in message
    assert "cuda_malloc, cuda_malloc_async, memory_guard" in message
    text = refused(lambda: session(allocator_type="bogus" * 100), tf.errors.InvalidArgumentError)
    assert text.startswith("Invalid allocator type: bogusbogus")
    assert "must be 'BFC', or empty" in text


HUGE = "GPU:" + "x" * 10_000


@pytest.mark.parametrize(
    "call",
    [
        lambda: experimental.get_memory_info(HUGE),
        lambda: experimental.reset_memory_stats(HUGE),
        lambda: allotment.experimental.trim(HUGE),
        lambda: allotment.experimental.get_logical_device_details("\x1b[31mGPU:0"),
        lambda: experimental.set_memory_growth(HUGE, True),
        lambda: experimental.get_device_details(HUGE),
        lambda: config.get_logical_device_configuration([HUGE]),
        lambda: config.set_visible_devices(HUGE),
        lambda: tf.device("/" + HUGE).__enter__(),
        lambda: tf.device(["\x1b" * 10_000]).__enter__(),
        lambda: experimental.set_device_policy(HUGE),
        lambda: allotment.experimental.set_memory_growth("GPU:0", HUGE),  # type: ignore[arg-type]
        lambda: allotment.experimental.set_memory_limit("GPU:0", HUGE),
        lambda: allotment.experimental.set_memory_limit("GPU:0", 10**5000),
        lambda: session(visible_device_list=HUGE),
        lambda: session(visible_device_list="9" * 4000),
        lambda: allotment.testing.simulate_gpus(HUGE),
        lambda: allotment.Pool(HUGE),
        lambda: allotment.Pool(10**5000),
        lambda: allotment.Pool("1MiB", policy=HUGE),  # type: ignore[arg-type]
    ],
)
def test_whatever_is_passed_the_message_is_short(
    call: Callable[[], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    fresh(monkeypatch, "1:64MiB")
    refused(call, ValueError, TypeError, tf.errors.InvalidArgumentError)

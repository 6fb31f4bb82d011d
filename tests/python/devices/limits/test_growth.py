"""Memory growth: asking for it, when it must agree, and what takes it away (B012, B013, B014)."""

from typing import Any

import pytest

import allotment.tf as tf
from allotment import Pool
from support.devices import MIB, fresh, gpus, next_line, pools

Config = tf.config.LogicalDeviceConfiguration
set_growth = tf.config.experimental.set_memory_growth
get_growth = tf.config.experimental.get_memory_growth
DIFFER = "Memory growth cannot differ between GPU devices"
TOO_LATE = "Physical devices cannot be modified after being initialized"


def reserved_for(pool: Pool, nbytes: int) -> int:
    pool.malloc(nbytes)
    return pool.stats().reserved


@pytest.mark.parametrize("enable", [True, False, 1])
def test_growth_is_kept_as_it_was_given(enable: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    fresh(monkeypatch, "1:64MiB")
    assert get_growth(gpus()[0]) is None
    set_growth(gpus()[0], enable)
    assert get_growth(gpus()[0]) is enable


def test_what_has_no_growth(monkeypatch: pytest.MonkeyPatch) -> None:
    fresh(monkeypatch)
    (cpu,) = tf.config.list_physical_devices()
    with pytest.raises(ValueError, match="Cannot set memory growth on non-GPU and non-Pluggable devices"):
        set_growth(cpu, True)
    with pytest.raises(KeyError) as raised:
        get_growth(cpu)
    assert raised.value.args == (cpu,)
    strangers: list[Any] = ["GPU:0", None, tf.config.PhysicalDevice("/physical_device:GPU:0", "GPU")]
    for stranger in strangers:
        with pytest.raises(ValueError, match="Unrecognized device") as error:
            get_growth(stranger)
        assert str(error.value) == f"Unrecognized device: {stranger!r}"
        with pytest.raises(ValueError, match="Unrecognized device") as error:
            set_growth(stranger, True)
        assert str(error.value) == f"Unrecognized device: {stranger!r}"
    # Configured devices are refused before the type is looked at.
    tf.config.set_logical_device_configuration(cpu, [Config()])
    with pytest.raises(
        ValueError, match="Cannot set memory growth on device when virtual devices configured"
    ):
        set_growth(cpu, True)


def test_growth_takes_the_first_2_mib_and_no_growth_takes_all(monkeypatch: pytest.MonkeyPatch) -> None:
    (pool,) = pools(fresh(monkeypatch, "1:64MiB"))
    assert (pool.growth, reserved_for(pool, 1)) == (False, 64 * MIB)
    context = fresh(monkeypatch, "1:64MiB")
    set_growth(gpus()[0], True)
    (pool,) = pools(context)
    # The worked example: 5,000,000 doubles 2 MiB to 8 MiB.
    assert (pool.growth, reserved_for(pool, 5_000_000)) == (True, 8_388_608)


def test_b012_settings_come_before_the_first_use(monkeypatch: pytest.MonkeyPatch) -> None:
    # Field report B012 (tensorflow-yolov4-tflite#171): (a) looking does no harm; (b) the refusal says who was
    # first; (c) the same value again is fine.
    context = fresh(monkeypatch, "1:256MiB")
    (gpu,) = gpus()
    get_growth(gpu)
    tf.config.get_visible_devices()
    set_growth(gpu, True)
    context.ready()
    set_growth(gpu, True)

    fresh(monkeypatch, "1:256MiB")
    line = next_line()
    tf.config.list_logical_devices()
    for enable in (True, False):  # Unset is a value of its own, so that False is a change.
        with pytest.raises(RuntimeError) as raised:
            set_growth(gpu, enable)
        assert str(raised.value).startswith(f"{TOO_LATE}\n")
        assert f"list_logical_devices() in {__file__}, line {line}." in str(raised.value)
    assert get_growth(gpu) is None


def test_b013_growth_must_agree_among_visible_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    # Field report B013 (yolov3-tf2#225): (a) and (b).
    context = fresh(monkeypatch, "2:256MiB")
    first, second = gpus()
    set_growth(first, True)
    with pytest.raises(ValueError, match=DIFFER) as raised:
        tf.config.list_logical_devices()
    assert "/physical_device:GPU:0 has True, /physical_device:GPU:1 has None" in str(raised.value)
    assert not context.is_ready
    set_growth(second, True)
    assert len(tf.config.list_logical_devices("GPU")) == 2


def test_b013_hidden_gpus_have_no_say(monkeypatch: pytest.MonkeyPatch) -> None:
    # (c)
    fresh(monkeypatch, "2:256MiB")
    tf.config.set_visible_devices(gpus()[:1], "GPU")
    set_growth(gpus()[0], True)
    assert len(tf.config.list_logical_devices("GPU")) == 1


@pytest.mark.parametrize(
    ("one", "other", "agree"), [(True, 1, True), (False, None, False), (True, False, False)]
)
def test_what_counts_as_the_same(one: Any, other: Any, agree: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    context = fresh(monkeypatch, "2:64MiB")
    for gpu, value in zip(gpus(), (one, other), strict=True):
        if value is not None:
            set_growth(gpu, value)
    if agree:
        context.ready()
    else:
        with pytest.raises(ValueError, match=DIFFER):
            context.ready()


GETTERS = [
    tf.config.get_soft_device_placement,
    tf.debugging.get_log_device_placement,
    tf.config.threading.get_intra_op_parallelism_threads,
    tf.config.threading.get_inter_op_parallelism_threads,
    tf.config.optimizer.get_jit,
    tf.config.optimizer.get_experimental_options,
]


@pytest.mark.parametrize("getter", GETTERS)
def test_getters_that_put_the_settings_together_check_them(
    getter: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    fresh(monkeypatch, "2:64MiB")
    set_growth(gpus()[0], True)
    with pytest.raises(ValueError, match=DIFFER):
        getter()
    tf.config.set_visible_devices(gpus()[:1], "GPU")
    getter()


def test_growth_that_is_no_bool_is_found_when_the_settings_are_put_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fresh(monkeypatch, "1:64MiB")
    odd: Any = "yes"
    set_growth(gpus()[0], odd)
    assert repr(get_growth(gpus()[0])) == "'yes'"
    with pytest.raises(TypeError, match="'yes' has type str"):
        tf.config.list_logical_devices()


@pytest.mark.parametrize("split", ["GPU", "CPU"])
def test_b014_a_split_takes_growth_away_with_a_warning(
    split: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    # Field report B014 (tensorflow#38367): TensorFlow's rule, but not in silence.
    context = fresh(monkeypatch, "1:1024MiB")
    cpu, gpu = tf.config.list_physical_devices()
    set_growth(gpu, True)
    if split == "GPU":
        tf.config.set_logical_device_configuration(gpu, [Config(memory_limit=256)])
    else:
        tf.config.set_logical_device_configuration(cpu, [Config(), Config()])
    assert get_growth(gpu) is True
    (pool,) = pools(context)
    limit = 256 * MIB if split == "GPU" else 1024 * MIB
    assert (pool.growth, pool.limit, reserved_for(pool, MIB)) == (False, limit, limit)
    (warning,) = caplog.messages
    assert warning.startswith("Memory growth of /physical_device:GPU:0 has no effect")
    assert "allotment.experimental.set_memory_growth" in warning


def test_b014_growth_after_a_split_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    fresh(monkeypatch, "1:1024MiB")
    (gpu,) = gpus()
    tf.config.set_logical_device_configuration(gpu, [Config(memory_limit=256)])
    for _ in range(2):
        with pytest.raises(
            ValueError, match="Cannot set memory growth on device when virtual devices configured"
        ):
            set_growth(gpu, True)
        tf.config.list_logical_devices()


def test_the_environment_beats_a_split(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    context = fresh(monkeypatch, "1:64MiB", TF_FORCE_GPU_ALLOW_GROWTH="true")
    set_growth(gpus()[0], True)
    tf.config.set_logical_device_configuration(gpus()[0], [Config(memory_limit=32)])
    (pool,) = pools(context)
    assert pool.growth
    # The split had taken growth away; the environment brings it back.
    (warning,) = caplog.messages
    assert "Original config value was 0." in warning

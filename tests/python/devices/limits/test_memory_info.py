"""Memory figures by device name (B010, B011, B022). Texts of TensorFlow 2.21."""

from typing import Any

import pytest

import allotment.tf as tf
from allotment import Pool
from allotment.devices.context import Context
from support.devices import CPU, MIB, fresh, notes, run_on_gpus

info = tf.config.experimental.get_memory_info
reset = tf.config.experimental.reset_memory_stats
GPU = CPU.replace("CPU", "GPU")


def parsing(text: str) -> str:
    return (
        f"Failed parsing device name: '{text}'. Note a valid device string should at least contain a device type "
        'and a device index, like "GPU:0".'
    )


def pool_of(context: Context) -> Pool:
    pool = context.ready().devices[1].pool
    assert pool is not None
    return pool


def refusal(text: Any, ask: Any = info) -> ValueError:
    with pytest.raises(ValueError, match=r".") as raised:
        ask(text)
    return raised.value


@pytest.mark.parametrize("text", ["CPU:0", "/cpu:0", "/CPU:0", "/device:CPU:0", CPU, "", "/", "CPU:00", None])
def test_the_cpu_has_no_figures(text: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    fresh(monkeypatch)
    assert str(refusal(text)) == f"Allocator stats not available for device '{text or ''}'"
    assert str(refusal(text, reset)) == f"Cannot reset memory stats for device '{text or ''}'"


@pytest.mark.parametrize(
    "text", ["GPU:0", "cpu:0", "Cpu:0", "CPU:1", "/gpu:0", "FOO:0", "/job:worker/device:CPU:0"]
)
def test_a_name_that_fits_nothing(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fresh(monkeypatch)
    for ask in (info, reset):
        error = refusal(text, ask)
        assert str(error) == f"No matching devices found for '{text}'"
        assert "There are: /device:CPU:0." in notes(error)


@pytest.mark.parametrize("text", ["nonexistent", "GPU", "CPU", "CPU:", "CPU:GPU", "/cpu", "CPU:*", "CPU:0 "])
def test_a_text_that_is_no_name(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fresh(monkeypatch)
    assert str(refusal(text)) == parsing(text)


@pytest.mark.parametrize("text", ["/cpu:*", "/device:CPU:*", "/device:CPU", "/job:localhost", ""])
def test_a_name_that_fits_several(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fresh(monkeypatch)
    (cpu,) = tf.config.list_physical_devices()
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
    other = CPU.replace("CPU:0", "CPU:1")
    assert (
        str(refusal(text)) == f"Multiple devices match the provided string '{text}': '{CPU}' and '{other}'."
    )


@pytest.mark.parametrize("value", [1, 1.5, ["CPU:0"], tf.config.PhysicalDevice("CPU:0", "CPU")])
def test_a_name_is_a_text(value: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    fresh(monkeypatch)
    for ask in (info, reset):
        with pytest.raises(TypeError):
            ask(value)


@pytest.mark.parametrize("value", [b"CPU:0", bytearray(b"CPU:0")])
def test_bytes_are_a_name(value: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    fresh(monkeypatch)
    assert str(refusal(value)) == "Allocator stats not available for device 'CPU:0'"
    with pytest.raises(ValueError, match=r"^Cannot reset memory stats for device 'CPU:0'$"):
        reset(value)


@pytest.mark.parametrize("text", ["GPU:0", "/GPU:0", "/gpu:0", "/device:GPU:0", "/device:GPU", GPU, "/gpu:*"])
def test_b011_names_of_a_gpu(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # Field report B011 (maxtext#739).
    pool = pool_of(fresh(monkeypatch, "1:64MiB"))
    assert info(text) == {"current": 0, "peak": 0}
    pool.free(pool.malloc(1000))
    assert info(text) == {"current": 0, "peak": 1024}
    reset(text)
    assert info(text) == {"current": 0, "peak": 0}


@pytest.mark.parametrize(
    ("text", "words", "hint"),
    [
        ("gpu:0", "No matching devices found for 'gpu:0'", "Write 'GPU:0'"),
        ("GPU:7", "No matching devices found for 'GPU:7'", "There are: /device:CPU:0, /device:GPU:0."),
        ("unknown_device:0", "No matching devices found for 'unknown_device:0'", "There are: /device:CPU:0,"),
        ("GPU", parsing("GPU"), "as in 'GPU:0'"),
        ("GPU:", parsing("GPU:"), "as in 'GPU:0'"),
        ("GPU:CPU", parsing("GPU:CPU"), "as in 'GPU:0'"),
        ("cuda:0", "No matching devices found for 'cuda:0'", "Write '/GPU:0'"),
        # Field report B022: a physical name is told from a logical one.
        ("/physical_device:GPU:0", parsing("/physical_device:GPU:0"), "write '/device:GPU:0'"),
    ],
)
def test_b011_a_refusal_says_what_to_write(
    text: str, words: str, hint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fresh(monkeypatch, "1:64MiB")
    first, second = str(refusal(text)).splitlines()
    assert first == words
    assert hint in second


def test_b011_the_cpu_beside_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    fresh(monkeypatch, "1:64MiB")
    assert str(refusal("CPU:0")) == "Allocator stats not available for device 'CPU:0'"
    for text in ("", None, "/"):
        assert str(refusal(text)).startswith("Multiple devices match the provided string")


def test_b010_a_reset_takes_the_peak_to_now(monkeypatch: pytest.MonkeyPatch) -> None:
    # Field report B010 (Torch-FL#362).
    pool = pool_of(fresh(monkeypatch, "1:1GiB"))
    kept = pool.malloc("10MiB")
    pool.free(pool.malloc("20MiB"))
    assert info("GPU:0") == {"current": 10 * MIB, "peak": 30 * MIB}
    reset("GPU:0")
    assert info("GPU:0") == {"current": 10 * MIB, "peak": 10 * MIB}
    pool.malloc("5MiB")
    assert info("GPU:0") == {"current": 15 * MIB, "peak": 15 * MIB}
    assert pool.stats().num_allocs == 3
    pool.free(kept)


def test_current_counts_chunks_and_not_what_is_reserved(monkeypatch: pytest.MonkeyPatch) -> None:
    context = fresh(monkeypatch, "1:64MiB")
    tf.config.experimental.set_memory_growth(tf.config.list_physical_devices("GPU")[0], True)
    # The worked example: the whole region of 8 MiB is handed out, less than twice the request.
    pool_of(context).malloc(5_000_000)
    assert info("GPU:0") == {"current": 8_388_608, "peak": 8_388_608}


def test_the_older_question_is_answered_with_a_notice_once() -> None:
    done = run_on_gpus(
        "1:64MiB",
        """
        import allotment.tf as tf
        for _ in range(2):
            print(tf.config.experimental.get_memory_usage("GPU:0"))
        """,
    )
    assert done.stdout == "0\n0\n"
    assert done.stderr.count("Use tf.config.experimental.get_memory_info(device)['current'] instead.") == 1
    assert "From <string>:4: get_memory_usage is deprecated" in done.stderr

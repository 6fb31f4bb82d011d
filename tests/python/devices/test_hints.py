"""What is printed is read, and a refusal says what to write (B022)."""

import pytest

import allotment.tf as tf
from allotment.devices.messages.device_name_hint import hint_for
from allotment.devices.names import device_name, parse, parse_runtime
from support.devices import fresh


def test_b022_what_is_printed_is_read_by_both_grammars(monkeypatch: pytest.MonkeyPatch) -> None:
    # Field report B022 (tensorflow#39857).
    for device in fresh(monkeypatch, "2:64MiB").ready().devices:
        for text in (device.name, device.short_name, device.logical_device.name):
            assert parse(text).matches(parse(device.name))
            name = parse_runtime(text)
            assert name is not None
            assert name.matches(device_name(device.kind, device.index))


@pytest.mark.parametrize("text", ["GPU:0", "gpu:0", "/gpu:0", "/GPU:0", "/device:GPU:0", "CPU", "/cpu:0"])
def test_b022_names_people_write_are_read(text: str) -> None:
    assert parse(text).kind in ("CPU", "GPU")


@pytest.mark.parametrize("text", ["GPU:a", "GPU:0:1", "/GPU:0/CPU:0", "cuda:0"])
def test_b022_names_that_make_no_sense_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse(text)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("cuda:0", "Write '/GPU:0'."),
        ("cuda", "Write '/GPU:0'."),
        ("gpu:1", "Write 'GPU:1' or '/gpu:1'."),
        (
            "/physical_device:GPU:0",
            "'/physical_device:GPU:0' names a physical device; write '/device:GPU:0' or '/device:GPU:1'.",
        ),
        (
            "/physical_device:GPU:7",
            "'/physical_device:GPU:7' names a physical device that no logical device is on.",
        ),
        ("GPU", "Write a type and an index, as in 'GPU:0', '/GPU:0' or '/device:GPU:0'."),
        ("GPU:7", ""),
    ],
)
def test_b022_a_refusal_says_what_to_write(monkeypatch: pytest.MonkeyPatch, text: str, hint: str) -> None:
    context = fresh(monkeypatch, "1:64MiB")
    half = tf.config.LogicalDeviceConfiguration(memory_limit=32)
    tf.config.set_logical_device_configuration(tf.config.list_physical_devices("GPU")[0], [half, half])
    there = "There are: /device:CPU:0, /device:GPU:0, /device:GPU:1."
    assert hint_for(text, context.ready().devices) == f"{hint} {there}".strip()

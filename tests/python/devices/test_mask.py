"""`CUDA_VISIBLE_DEVICES`: which GPUs there are, and what their numbers mean (B017, B018)."""

import pytest

import allotment
import allotment.tf as tf
from allotment.devices.environment.visible_devices_mask import read_mask
from support.devices import fresh

EIGHT = [f"GPU-{index:08x}-0000-4000-8000-000000000000" for index in range(8)]


def hardware_of(monkeypatch: pytest.MonkeyPatch, gpus: str, mask: str | None) -> list[int]:
    environ = {} if mask is None else {"CUDA_VISIBLE_DEVICES": mask}
    fresh(monkeypatch, gpus, **environ)
    listed = tf.config.list_physical_devices("GPU")
    assert [device.name for device in listed] == [f"/physical_device:GPU:{n}" for n in range(len(listed))]
    return [tf.config.experimental.get_device_details(device)["hardware_index"] for device in listed]


# Field report B017 (pytorch#90543): the driver's rules, one value a process.
@pytest.mark.parametrize(
    ("mask", "left"),
    [
        (None, [0, 1, 2, 3, 4, 5, 6, 7]),
        ("0,1,2,3", [0, 1, 2, 3]),
        ("3,1", [3, 1]),
        ("0,1,2,3,-1,5,6,7", [0, 1, 2, 3]),
        ("-1", []),
        ("", []),
        # Spaces around an index do not matter; what follows its digits does not, either.
        (" 3 , 1 ", [3, 1]),
        ("1gpu2,2ampere", [1, 2]),
        ("+1", [1]),
        # What names no device ends the list.
        ("2,8,1", [2]),
        ("2,NoDevFiles,1", [2]),
        ("NoDevFiles", []),
        ("2,,1", [2]),
        ("x", []),
        # A device that is named twice leaves none.
        ("0,1,0", []),
        ("3,3", []),
        # But not one that the list no longer reaches.
        ("0,-1,0", [0]),
        # Identifiers, or prefixes of them that fit one device.
        (EIGHT[5], [5]),
        ("GPU-00000003,GPU-00000001", [3, 1]),
        ("GPU-0000000", []),
        ("GPU-00000003,GPU-ffff,GPU-00000001", [3]),
        (f"GPU-00000002,{EIGHT[2]}", []),
        # A list has one kind of item.
        ("GPU-00000003,1", [3]),
        ("1,GPU-00000003", [1]),
        ("MIG-00000003", []),
    ],
)
def test_b017_the_mask_is_read_as_the_driver_does(
    mask: str | None, left: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert hardware_of(monkeypatch, "8:16MiB", mask) == left


@pytest.mark.parametrize(
    ("mask", "said"),
    [
        ("2,8,1", "'8' names no GPU"),
        ("abc", "'abc' names no GPU"),
        ("GPU-0000000", "'GPU-0000000' names no GPU"),
        ("0,1,0", "'0' names a GPU for the second time"),
    ],
)
def test_a_mask_that_makes_no_sense_is_said_once(
    mask: str, said: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    hardware_of(monkeypatch, "8:16MiB", mask)
    (warning,) = caplog.messages
    assert f"CUDA_VISIBLE_DEVICES={mask!r}: {said}" in warning


@pytest.mark.parametrize("mask", ["-1", "", "NoDevFiles", "0,1,2,3,-1,5,6,7"])
def test_a_mask_that_hides_on_purpose_needs_no_word(
    mask: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    hardware_of(monkeypatch, "8:16MiB", mask)
    assert caplog.messages == []


def test_a_mask_without_gpus_needs_no_word(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    assert hardware_of(monkeypatch, "0", "0,1") == []
    assert caplog.messages == []


def test_a_prefix_must_be_an_identifier_s() -> None:
    assert read_mask("GPU-1", ["GPU-1"]).chosen == (0,)
    assert read_mask("GPU-1,", ["GPU-1"]).chosen == (0,)
    assert read_mask("GPU-", ["GPU-1"]).chosen == (0,)
    assert read_mask("MIG-1", ["GPU-1"]).chosen == ()


@pytest.mark.simulated_gpus("cards have names of their own")
@pytest.mark.not_opencl("cards have names of their own")
def test_b018_numbers_are_those_of_the_mask(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    # Field report B018 (tensorflow#50300): hardware 2 comes first, and is GPU:0.
    caplog.set_level("INFO", logger="allotment.devices")
    assert hardware_of(monkeypatch, "4:64MiB", "2,0") == [2, 0]
    names = [
        tf.config.experimental.get_device_details(gpu)["device_name"]
        for gpu in tf.config.list_physical_devices("GPU")
    ]
    assert names == [f"Simulated GPU (hardware {n}, 64 MiB of host memory)" for n in (2, 0)]
    assert [d.name for d in tf.config.list_logical_devices("GPU")] == ["/device:GPU:0", "/device:GPU:1"]
    assert [
        allotment.experimental.get_logical_device_details(f"GPU:{n}")["hardware_index"] for n in range(2)
    ] == [
        2,
        0,
    ]
    # A start-up line tells the whole way: logical, visible, hardware.
    assert caplog.messages == [
        f"Created device /job:localhost/replica:0/task:0/device:GPU:{n} with 64 MB memory:  -> device: {n}, "
        f"name: {names[n]}, pci bus id: simulated, compute capability: 0.0"
        for n in range(2)
    ]
    with pytest.raises(ValueError, match="No matching devices found for '/GPU:2'") as raised:
        tf.config.experimental.get_memory_info("/GPU:2")
    assert "/device:GPU:0, /device:GPU:1" in str(raised.value)


def test_b018_hiding_one_makes_the_other_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    hardware_of(monkeypatch, "4:64MiB", "2,0")
    physical = tf.config.list_physical_devices("GPU")
    tf.config.set_visible_devices([physical[1]], "GPU")
    (logical,) = tf.config.list_logical_devices("GPU")
    details = allotment.experimental.get_logical_device_details(logical)
    assert (details["physical_device"], details["hardware_index"]) == (physical[1], 0)

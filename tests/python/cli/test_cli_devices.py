"""`allotment devices`: what there is, what masks and limits it, and what set that."""

import json
from typing import Any

from support.command import allotment, complaint
from support.devices import MIB

PLAIN = {
    "ALLOTMENT_SIMULATED_GPUS": "",
    "TF_FORCE_GPU_ALLOW_GROWTH": "false",
    "TF_DEVICE_MIN_SYS_MEMORY_IN_MB": "",
}


def devices_json(**environ: str) -> dict[str, Any]:
    done = allotment("devices", "--json", environment=PLAIN | environ)
    assert (done.returncode, done.stderr) == (0, "")
    report = json.loads(done.stdout)
    assert isinstance(report, dict)
    return report


def test_a_machine_without_gpus() -> None:
    report = devices_json()
    assert [device["name"] for device in report["physical"]] == ["/physical_device:CPU:0"]
    assert [device["name"] for device in report["logical"]] == ["/device:CPU:0"]
    assert report["logical"][0]["pool"] is None
    assert report["mask"]["hardware_gpus"] == 0


def test_masks_and_limits_and_what_set_them() -> None:
    report = devices_json(
        ALLOTMENT_SIMULATED_GPUS="2:64MiB,1:32MiB",
        CUDA_VISIBLE_DEVICES="2,0",
        TF_DEVICE_MIN_SYS_MEMORY_IN_MB="8",
    )
    assert report["mask"] == {"text": "2,0", "hardware_gpus": 3, "left": [2, 0]}
    _, first, second = report["physical"]
    assert first == {
        "name": "/physical_device:GPU:0",
        "device_type": "GPU",
        "visible": True,
        "device_name": "Simulated GPU (hardware 2, 32 MiB of host memory)",
        "hardware_index": 2,
        "uuid": "GPU-00000002-0000-4000-8000-000000000000",
        "memory": 32 * MIB,
        "simulated": True,
    }
    assert second["hardware_index"] == 0
    assert report["logical"][1] == {
        "name": "/device:GPU:0",
        "device_type": "GPU",
        "physical_device": "/physical_device:GPU:0",
        "memory_limit": 24 * MIB,
        "memory_limit_set_by": "TF_DEVICE_MIN_SYS_MEMORY_IN_MB",
        "memory_growth": False,
        "memory_growth_set_by": "TF_FORCE_GPU_ALLOW_GROWTH",
        "memory_elastic": False,
        "pool": "GPU_0_bfc",
        "in_use": 0,
        "peak_in_use": 0,
        "reserved": 0,
    }
    environment = {variable["name"]: variable["text"] for variable in report["environment"]}
    assert environment["CUDA_VISIBLE_DEVICES"] == "2,0"
    assert environment["ALLOTMENT_SIMULATED_GPUS"] == "2:64MiB,1:32MiB"


def test_the_text_says_the_same() -> None:
    done = allotment(
        "devices",
        environment=PLAIN | {"ALLOTMENT_SIMULATED_GPUS": "2:64MiB", "CUDA_VISIBLE_DEVICES": "1,0"},
    )
    assert (done.returncode, done.stderr) == (0, "")
    lines = [" ".join(line.split()) for line in done.stdout.splitlines()]
    for line in (
        "Physical devices",
        "/physical_device:GPU:0 used hardware 1 64 MiB Simulated GPU (hardware 1, 64 MiB of host memory) "
        "GPU-00000001-0000-4000-8000-000000000000",
        "CUDA_VISIBLE_DEVICES=1,0 leaves, of 2 GPUs by hardware index: 1, 0.",
        "Logical devices",
        "/device:CPU:0 on /physical_device:CPU:0",
        "/device:GPU:1 on /physical_device:GPU:1 limit 64 MiB, set by all of the GPU's memory growth off, "
        "set by TF_FORCE_GPU_ALLOW_GROWTH pool GPU_1_bfc",
        "CUDA_VISIBLE_DEVICES=1,0 which GPUs there are, and in which order",
    ):
        assert line in lines


def test_without_gpus_the_text_says_how_to_get_some() -> None:
    done = allotment("devices", environment=PLAIN)
    assert "ALLOTMENT_SIMULATED_GPUS=2 simulates two." in done.stdout


def test_an_unusable_variable_is_bad_input_in_one_line() -> None:
    line = complaint(allotment("devices", environment={"ALLOTMENT_SIMULATED_GPUS": "2:lots"}))
    assert "ALLOTMENT_SIMULATED_GPUS='2:lots'" in line


def test_a_warning_does_not_get_into_the_json() -> None:
    done = allotment("devices", "--json", environment=PLAIN | {"TF_CPU_ALLOCATOR_USE_BFC": "maybe"})
    assert done.returncode == 0
    assert done.stderr.count("TF_CPU_ALLOCATOR_USE_BFC='maybe'") == 1
    json.loads(done.stdout)

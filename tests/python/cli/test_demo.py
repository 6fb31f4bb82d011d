"""The demo: what it claims is true, and it looks the same every time."""

import re
from importlib.resources import files

import numpy as np

from support.command import allotment
from support.traces.best_fit import BestFit, replay
from support.traces.trace_files import Events

TIMES = re.compile(r"^  ns an event .*$", flags=re.M)

GIB = 1 << 30


def shipped() -> Events:
    with (files("allotment.trace") / "data" / "torch_resnet50_train_b16.npz").open("rb") as file:
        arrays = np.load(file, allow_pickle=False)
        return list(zip(*(arrays[name].tolist() for name in ("op", "id", "size")), strict=True))


def test_the_demo_fits_one_screen_and_repeats_itself() -> None:
    first, second = allotment("demo"), allotment("demo", environment={"COLUMNS": "40", "NO_COLOR": "1"})
    assert (first.returncode, first.stderr) == (second.returncode, second.stderr) == (0, "")
    assert TIMES.sub("", first.stdout) == TIMES.sub("", second.stdout)
    lines = first.stdout.splitlines()
    assert 20 <= len(lines) <= 40
    assert max(map(len, lines)) <= 100
    assert first.stdout.isascii()


def test_the_demo_says_what_the_trace_says() -> None:
    shown = allotment("demo").stdout
    cells = {
        match[1]: re.split(r"\s{2,}", match[2])
        for match in re.finditer(r"^  (\S+(?: \S+)*)\s{2,}(\S.*)$", shown, flags=re.M)
    }
    # As the recorder counted them.
    assert "13384 events" in shown
    assert f"{1_624_903_056 / GIB:.2f} GiB" == "1.51 GiB" in shown

    assert cells["limit"] == ["64 GiB", "1.67 GiB", "1.65 GiB"]
    assert cells["refused"][:2] == ["0", "0"]
    assert cells["first refused"][:2] == ["never", "never"]
    assert all(float(time) > 0 for time in cells["ns an event"])

    # The slow model, under the limit that is too small.
    events = shipped()
    limit = 1_771_673_856
    expected = replay(BestFit(limit), events)
    assert cells["refused"][2] == str(expected.refused)
    assert cells["first refused"][2] == f"event {expected.first_refused}"
    model = BestFit(limit)
    assert expected.first_refused is not None
    replay(model, events[: expected.first_refused])
    holes = [chunk.size for chunk in model.chunks if not chunk.used]
    asked = events[expected.first_refused][2]
    assert max(holes) < asked < sum(holes)
    spoken = " ".join(shown.split())
    for nbytes in (asked, sum(holes), max(holes)):
        assert any(text in spoken for text in (f"{nbytes / 2**20:.2f} MiB", f"{nbytes // 2**20} MiB")), nbytes
    assert f"{1 - max(holes) / sum(holes):.0%} of the free bytes" in spoken


def test_the_demo_splits_a_gpu_and_says_where_everything_ran() -> None:
    shown = allotment("demo").stdout
    device = "/job:localhost/replica:0/task:0/device:"
    ran = re.findall(r"Executing op (\S+) in device (\S+)", shown)
    assert ran == [
        ("Fill", device + "GPU:0"),
        ("MatMul", device + "GPU:0"),
        ("Identity", device + "GPU:1"),
        ("AddV2", device + "GPU:1"),
        ("Sum", device + "CPU:0"),
    ]
    # Ones times ones are 1,024 everywhere; one more, 2^20 times.
    assert f"The sum is {1025 << 20}." in shown
    held = re.findall(r"/device:GPU:(\d) +holds +(\d+) MiB of +(\d+) MiB", shown)
    assert held == [("0", "8", "64"), ("1", "4", "96")]


def test_the_demo_hits_a_limit_on_purpose() -> None:
    shown = allotment("demo").stdout
    assert "OOM when allocating tensor with shape[16777216] and type float" in shown
    for label, mib in {"limit": 64, "in use": 8, "free": 56, "largest free": 56}.items():
        assert re.search(rf"^ +{label} .*\b{mib << 20} bytes", shown, flags=re.M), label
    assert re.search(r"verdict +full", shown)


def test_the_demo_says_so_if_the_environment_hides_the_gpu() -> None:
    shown = allotment("demo", environment={"CUDA_VISIBLE_DEVICES": "-1"})
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "hides the simulated GPU" in shown.stdout

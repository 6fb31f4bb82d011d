"""The programs in examples/: they run as they are, and what they say is so."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[3] / "examples"


def run(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run an example as a user does."""
    return subprocess.run(
        [sys.executable, EXAMPLES / name, *arguments],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


def test_each_example_is_in_the_list_and_says_what_it_takes() -> None:
    listed = re.findall(r"^\| `(\w+\.py)`", (EXAMPLES / "README.md").read_text(encoding="utf-8"), flags=re.M)
    assert sorted(listed) == sorted(path.name for path in EXAMPLES.glob("*.py"))
    for name in listed:
        done = run(name, "--help")
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith("Usage: ")


LIBRARIES = ["cupy", "torch", "rmm", "numba", "cuda_core", "warp"]


@pytest.mark.gpu
@pytest.mark.parametrize("library", LIBRARIES)
def test_a_gpu_library_uses_a_pool_up_to_its_limit(library: str) -> None:
    done = run("gpu_libraries.py", library)
    if done.returncode == 1 and "which is not installed" in done.stderr:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    assert "in the pool: " in done.stdout
    assert "refused with " in done.stdout


@pytest.mark.parametrize("library", ["cupy", "cuda_core"])
def test_without_a_driver_the_gpu_example_says_so(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALLOTMENT_CUDA_DRIVER", "/nowhere/libcuda.so.1")
    done = run("gpu_libraries.py", library)
    assert (done.returncode, done.stdout) == (1, "")
    assert "Error: the CUDA driver was not found" in done.stderr


@pytest.mark.parametrize("replicas", [1, 4])
def test_digits_are_learned_on_any_number_of_gpus(replicas: int) -> None:
    done = run("data_parallel_digits.py", "--replicas", str(replicas), "--epochs", "3")
    assert (done.returncode, done.stderr) == (0, "")
    accuracy = re.search(r"accuracy on 360 test images: (\d+\.\d)%", done.stdout)
    assert accuracy is not None
    assert float(accuracy[1]) > 88
    rows = re.findall(r"/device:GPU:(\d+) │ (\d\.\d\d) MiB │ (\d\.\d\d) MiB", done.stdout)
    assert [int(index) for index, _, _ in rows] == list(range(replicas))
    for _, now, peak in rows:
        # The net's 150 KiB three times over, for Adam; gradients, pictures and a part of their windows while it trains.
        assert 0.4 < float(now) < float(peak) < 2.1


def test_three_libraries_share_a_limit() -> None:
    pytest.importorskip("onnxruntime", reason="ONNX Runtime is not installed")
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    done = run("shared_pool.py")
    assert (done.returncode, done.stderr) == (0, "")
    held = dict(re.findall(r"│ (\S+) +│ (\d\.\d\d) MiB │", done.stdout))
    assert {"pyarrow", "onnxruntime"} < held.keys()
    # A column of outputs, and two of inputs, of 4 bytes each.
    assert float(held["onnxruntime"]) == pytest.approx(0.38)
    assert float(held["pyarrow"]) > 0.75
    assert re.search(r"100000 scores, mean 0\.\d{3}; \d\.\d\d MiB at most", done.stdout)


def test_a_limit_that_is_too_small_is_named_by_the_library_that_hit_it() -> None:
    pytest.importorskip("onnxruntime", reason="ONNX Runtime is not installed")
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    done = run("shared_pool.py", "--limit", "1MiB")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("Error: ArrowMemoryError: pool 'scoring': out of memory: asked for")

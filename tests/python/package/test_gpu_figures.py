"""`make test-gpu` as far as it goes without a GPU: what it says, what it measures on a stand-in, and what it writes."""

import os
import re
import subprocess
import sys
from pathlib import Path

from support.cuda import DRIVER
from support.documents import ROOT

BENCH = ROOT / "benches/python/bench_gpu.py"


def run(*arguments: str, driver: str) -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, "ALLOTMENT_CUDA_DRIVER": driver, "ALLOTMENT_STAND_IN_MEMORY": str(16 << 30)}
    return subprocess.run(
        [sys.executable, BENCH, *arguments],
        capture_output=True,
        text=True,
        timeout=100,
        env=environ,
        check=False,
    )


def test_without_a_gpu_it_says_why() -> None:
    for arguments in (["--check"], []):
        done = run(*arguments, driver="/nowhere/libcuda.so.1")
        assert (done.returncode, done.stderr) == (3, "")
        assert done.stdout.startswith("the CUDA driver was not found: /nowhere/libcuda.so.1")


def test_figures_replace_those_of_the_last_run(tmp_path: Path) -> None:
    page = tmp_path / "README.md"
    page.write_text("# Benchmarks\n\n## On a GPU\n\nNothing yet.\n\n## After\n\nText.\n")
    for _ in range(2):
        done = run("--write", str(page), driver=str(DRIVER))
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
    text = page.read_text()
    assert text.startswith("# Benchmarks\n\n## On a GPU\n\nStand-in GPU, 20")
    assert text.endswith("\n\n## After\n\nText.\n")
    assert text.count("## On a GPU") == 1
    assert "Nothing yet" not in text
    for source in ("cuda:0", "cuda-vmm:0"):
        assert f"| full pool of 256 MiB over `{source}` | 256 MiB | 256 MiB |" in text
    reserved = re.search(r"changing sizes \| (\d+) MiB for (\d+) MiB live \|", text)
    assert reserved is not None
    assert int(reserved[2]) <= int(reserved[1]) < 3 * int(reserved[2])  # regions double


def test_the_page_has_a_place_for_the_figures() -> None:
    assert (ROOT / "benches/README.md").read_text(encoding="utf-8").count("\n## On a GPU\n") == 1

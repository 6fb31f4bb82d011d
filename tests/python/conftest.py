"""Pytest configuration for all tests."""

import gc
import signal
import sys
from collections.abc import Iterator

import pytest

from support.gpu import missing_gpu
from support.host_programs import Compile, compiler


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--gpus",
        choices=["simulated", "stand-in", "opencl"],
        default="simulated",
        help="what simulated GPUs of tests are: themselves, or GPUs of the stand-in driver with strict arrays, or "
        "devices of OpenCL",
    )


def pytest_configure(config: pytest.Config) -> None:
    match config.getoption("gpus"):
        case "stand-in":
            from support.arrays import stand_in_gpus

            stand_in_gpus.install()
        case "opencl":
            from support.arrays import opencl_gpus

            opencl_gpus.install()
    # A shell has its background jobs ignore interrupts, and children inherit that: some tests interrupt themselves.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish() -> None:
    """Have later collections of garbage skip what exists now: each refusal of a pool is behind one."""
    gc.collect()
    gc.freeze()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip what needs a GPU where there is none, and what does not hold for the kind of GPUs that there are."""
    missing = missing_gpu()
    # The marker of tests that do not hold for a kind, and how the reason begins.
    marker, kind = {
        "simulated": ("", ""),
        "stand-in": ("simulated_gpus", "with real GPUs"),
        "opencl": ("not_opencl", "with devices of OpenCL"),
    }[config.getoption("gpus")]
    for item in items:
        if missing and item.get_closest_marker("gpu"):
            item.add_marker(pytest.mark.skip(reason=missing))
        about = item.get_closest_marker(marker)
        if about is not None:
            item.add_marker(pytest.mark.skip(reason=f"{kind}: {about.args[0]}"))


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Compile:
    """Compile a program in C, once."""
    return compiler(tmp_path_factory.mktemp("compiled"))


@pytest.fixture
def hasty_switches() -> Iterator[None]:
    """Let threads switch as often as they can, where the interpreter has a GIL."""
    former = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(former)

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
        choices=["simulated", "stand-in"],
        default="simulated",
        help="what simulated GPUs of tests are: themselves, or GPUs of the stand-in driver with strict arrays",
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("gpus") == "stand-in":
        from support.arrays import stand_in_gpus

        stand_in_gpus.install()
    # A shell has its background jobs ignore interrupts, and children inherit that: some tests interrupt themselves.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish() -> None:
    """Have later collections of garbage skip what exists now: each refusal of a pool is behind one."""
    gc.collect()
    gc.freeze()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip what needs a GPU where there is none, and what is about simulated GPUs where there are others."""
    missing = missing_gpu()
    simulated = config.getoption("gpus") == "simulated"
    for item in items:
        if missing and item.get_closest_marker("gpu"):
            item.add_marker(pytest.mark.skip(reason=missing))
        about = item.get_closest_marker("simulated_gpus")
        if about is not None and not simulated:
            item.add_marker(pytest.mark.skip(reason=f"with real GPUs: {about.args[0]}"))


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

"""Pytest configuration for all tests."""

import signal
import sys
from collections.abc import Generator, Iterator
from typing import Any

import pytest

from support.interpreter import FREE_THREADED

#: Packages that have no wheels for interpreters without a GIL.
NOT_FREE_THREADED = ("re2",)


def pytest_configure() -> None:
    # A shell has its background jobs ignore interrupts, and children inherit that: some tests interrupt themselves.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, Any, Any]:
    """Skip tests that need a package which a free-threaded interpreter cannot have."""
    try:
        return (yield)
    except ModuleNotFoundError as error:
        if not (FREE_THREADED and error.name in NOT_FREE_THREADED):
            raise
        name = error.name
    pytest.skip(f"{name} has no wheel for free-threaded interpreters")


@pytest.fixture
def hasty_switches() -> Iterator[None]:
    """Let threads switch as often as they can, where the interpreter has a GIL."""
    former = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(former)

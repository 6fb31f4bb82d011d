"""Pytest configuration for all tests."""

import signal
import sys
from collections.abc import Iterator

import pytest


def pytest_configure() -> None:
    # A shell has its background jobs ignore interrupts, and children inherit that: some tests interrupt themselves.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def hasty_switches() -> Iterator[None]:
    """Let threads switch as often as they can, where the interpreter has a GIL."""
    former = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(former)

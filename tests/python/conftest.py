"""Pytest configuration for all tests."""

import signal


def pytest_configure() -> None:
    # A shell has its background jobs ignore interrupts, and children inherit that: some tests interrupt themselves.
    signal.signal(signal.SIGINT, signal.default_int_handler)

"""Fixtures of tests of NumPy's arrays in a pool."""

from collections.abc import Iterator

import pytest

from allotment import Pool
from allotment.integrations import numpy as pooled
from support.pools.numpy_handlers import DEFAULT, handler_name


@pytest.fixture
def pool() -> Pool:
    return Pool("512MiB")


@pytest.fixture(autouse=True)
def nothing_stays_installed() -> Iterator[None]:
    """Check that each test uninstalls what it installs."""
    yield
    assert handler_name() == DEFAULT
    with pytest.raises(RuntimeError, match="nothing to uninstall"):
        pooled.uninstall()

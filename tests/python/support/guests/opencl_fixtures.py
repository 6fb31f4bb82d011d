"""Fixtures for OpenCL: a context, a queue, and pools over both kinds of memory. The tests name it as a plugin."""

from collections.abc import Iterator
from typing import Any

import pytest

from allotment import Pool
from allotment.integrations import opencl as pooled
from support.guests.opencl import pyopencl


@pytest.fixture(scope="session")
def context() -> Any:
    cl = pyopencl()
    return cl.Context([cl.get_platforms()[0].get_devices()[0]])


@pytest.fixture
def queue(context: Any) -> Any:
    return pyopencl().CommandQueue(context)


@pytest.fixture(params=["parts", "host"])
def pool(request: pytest.FixtureRequest, context: Any) -> Pool:
    source = pooled.source(context) if request.param == "parts" else "host"
    return Pool("16MiB", name="guests", source=source, owner_tags=True)


@pytest.fixture
def nothing_stays_installed() -> Iterator[None]:
    pyopencl()
    import pyopencl.array as array

    own = array.Array.__init__
    yield
    assert array.Array.__init__ is own

"""Whether this machine has a GPU for the tests that need one."""

import os
from functools import cache

from allotment._core import cuda_devices


@cache
def missing_gpu() -> str | None:
    """Return why no test can run on a GPU here; ``None`` if one can."""
    if os.environ.get("ALLOTMENT_CUDA_DRIVER"):
        return "ALLOTMENT_CUDA_DRIVER names another driver than NVIDIA's"
    try:
        devices = cuda_devices()
    except RuntimeError as error:
        return f"no GPU can be used here: {error}"
    if devices is None:
        return "there is no CUDA driver here"
    return None if devices else "the CUDA driver lists no GPU"


__all__ = ["missing_gpu"]

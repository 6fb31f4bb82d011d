"""``tf.test``: queries about GPUs and the build, for tests. None of them initializes the runtime.

Source: docs/spec/device-config-api.md, section 10.
"""

from allotment.devices.context import context
from allotment.devices.names import short_name
from allotment.tf.names.deprecation import deprecated
from allotment.tf.names.missing_names import refuse_other_names
from allotment.tf.test import experimental


def is_gpu_available(
    cuda_only: bool = False, min_cuda_compute_capability: tuple[int, int] | None = None
) -> bool:
    """Whether the process has a GPU, simulated or real; deprecated. As ``tf.test.is_gpu_available``.

    Args:
        cuda_only: Has no effect, as in TensorFlow.
        min_cuda_compute_capability: Least major and minor number of the GPU; a simulated GPU has (0, 0).
    """
    del cuda_only
    deprecated("is_gpu_available", "Use `tf.config.list_physical_devices('GPU')` instead.")
    needed = min_cuda_compute_capability or (0, 0)
    gpus = (physical.gpu for physical in context().state().configuration.gpus)
    return any(gpu.compute_capability >= tuple(needed) for gpu in gpus if gpu is not None)


def gpu_device_name() -> str:
    """Return ``"/device:GPU:0"`` if the process has a GPU, else an empty text. As ``tf.test.gpu_device_name``."""
    return short_name("GPU", 0) if context().state().configuration.gpus else ""


def is_built_with_cuda() -> bool:
    """False: the package is not built with CUDA, but loads the driver at run time."""
    return False


def is_built_with_gpu_support() -> bool:
    """False: the package is not built with GPU libraries, but loads the driver at run time."""
    return False


def is_built_with_rocm() -> bool:
    """False: the package is not built with ROCm."""
    return False


def is_built_with_xla() -> bool:
    """False: the package has no XLA compiler."""
    return False


__all__ = [
    "experimental",
    "gpu_device_name",
    "is_built_with_cuda",
    "is_built_with_gpu_support",
    "is_built_with_rocm",
    "is_built_with_xla",
    "is_gpu_available",
]

refuse_other_names(__name__)

"""Questions that TensorFlow's tests ask: ``tf.test``. None of them initializes the runtime."""

from allotment.devices.context import context
from allotment.devices.names import short_name
from allotment.tf.names.deprecation import deprecated
from allotment.tf.names.missing_names import refuse_other_names
from allotment.tf.test import experimental


def is_gpu_available(
    cuda_only: bool = False, min_cuda_compute_capability: tuple[int, int] | None = None
) -> bool:
    """Whether there is a GPU, simulated or real; deprecated. As ``tf.test.is_gpu_available``.

    Args:
        cuda_only: Ignored, as in TensorFlow.
        min_cuda_compute_capability: Major and minor number that it must have; a simulated GPU has (0, 0).
    """
    del cuda_only
    deprecated("is_gpu_available", "Use `tf.config.list_physical_devices('GPU')` instead.")
    needed = min_cuda_compute_capability or (0, 0)
    gpus = (physical.gpu for physical in context().state().configuration.gpus)
    return any(gpu.compute_capability >= tuple(needed) for gpu in gpus if gpu is not None)


def gpu_device_name() -> str:
    """``"/device:GPU:0"`` if there is a GPU, else an empty text. As ``tf.test.gpu_device_name``."""
    return short_name("GPU", 0) if context().state().configuration.gpus else ""


def is_built_with_cuda() -> bool:
    """Whether this was built against CUDA: never; a driver is looked for at run time."""
    return False


def is_built_with_gpu_support() -> bool:
    """Whether this was built against a GPU's libraries: never; a driver is looked for at run time."""
    return False


def is_built_with_rocm() -> bool:
    """Whether this was built against ROCm: never."""
    return False


def is_built_with_xla() -> bool:
    """Whether TensorFlow's compiler is in here: never."""
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

"""How this was built: ``tf.sysconfig``."""

from collections import OrderedDict

from allotment.tf.names.missing_names import refuse_other_names


def get_build_info() -> dict[str, bool]:
    """Return what this was built against: no CUDA, no ROCm, no TensorRT; a driver is looked for at run time."""
    return OrderedDict(is_cuda_build=False, is_rocm_build=False, is_tensorrt_build=False)


__all__ = ["get_build_info"]

refuse_other_names(__name__)

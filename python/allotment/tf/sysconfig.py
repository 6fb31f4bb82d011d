"""``tf.sysconfig``: build information."""

from collections import OrderedDict

from allotment.tf.names.missing_names import refuse_other_names


def get_build_info() -> dict[str, bool]:
    """Return which GPU libraries the package was built with: none, as it loads the driver at run time.

    As ``tf.sysconfig.get_build_info``.
    """
    return OrderedDict(is_cuda_build=False, is_rocm_build=False, is_tensorrt_build=False)


__all__ = ["get_build_info"]

refuse_other_names(__name__)

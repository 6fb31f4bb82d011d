"""``tf.version``: the release of TensorFlow whose API this package follows."""

from typing import Final

from allotment.tf.names.missing_names import refuse_other_names

#: TensorFlow's version. This package's version is ``allotment.__version__``.
VERSION: Final = "2.21.0"
GIT_VERSION: Final = "v2.21.0-rc1-5-ga481b10260d"
COMPILER_VERSION: Final = "Clang 18.1.8"
GRAPH_DEF_VERSION: Final = 2474
GRAPH_DEF_VERSION_MIN_CONSUMER: Final = 0
GRAPH_DEF_VERSION_MIN_PRODUCER: Final = 0

__all__ = [
    "COMPILER_VERSION",
    "GIT_VERSION",
    "GRAPH_DEF_VERSION",
    "GRAPH_DEF_VERSION_MIN_CONSUMER",
    "GRAPH_DEF_VERSION_MIN_PRODUCER",
    "VERSION",
]

refuse_other_names(__name__)

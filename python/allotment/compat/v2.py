"""``tf.compat.v2``: the same objects as the package's own."""

import sys
from typing import TYPE_CHECKING, Any

from allotment import version
from allotment.missing_names import missing

#: TensorFlow's, for programs that look at it; that of this package is ``allotment.__version__``.
__version__ = version.VERSION

if TYPE_CHECKING:
    from allotment import config, debugging, errors, test
    from allotment.device_spec import DeviceSpec

    __all__ = ["DeviceSpec", "config", "debugging", "errors", "test"]


def __getattr__(name: str) -> Any:
    package = sys.modules["allotment"]
    if name in package.__all__:
        return getattr(package, name)
    raise missing(__name__, name, package.__all__)


def __dir__() -> list[str]:
    return sorted(sys.modules["allotment"].__all__)

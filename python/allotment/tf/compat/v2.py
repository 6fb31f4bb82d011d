"""``tf.compat.v2``: the same objects as the package's own."""

import sys
from typing import TYPE_CHECKING, Any

from allotment.tf import version
from allotment.tf.names.missing_names import missing_name_error, refuse_other_names

#: TensorFlow's, for programs that look at it; that of this package is ``allotment.__version__``.
__version__ = version.VERSION

if TYPE_CHECKING:
    from allotment.devices.device_spec import DeviceSpec
    from allotment.tf import config, debugging, errors, test

    __all__ = ["DeviceSpec", "config", "debugging", "errors", "test"]


def __getattr__(name: str) -> Any:
    package = sys.modules["allotment.tf"]
    if name in package.__all__:
        return getattr(package, name)
    raise missing_name_error(__name__, name, package.__all__)


def __dir__() -> list[str]:
    return sorted(sys.modules["allotment.tf"].__all__)


refuse_other_names(__name__)

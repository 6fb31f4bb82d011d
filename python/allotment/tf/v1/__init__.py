"""TensorFlow 1's API for programs with graphs and sessions: ``import allotment.tf.v1 as tf``.

The names are those of ``compat.v1``, but operations called through this module are always recorded in the default
graph. Importing the module does not affect the rest of the process, where operations run eagerly.
"""

import sys
from types import ModuleType
from typing import Any

from allotment.tf.compat import v1 as _compat
from allotment.tf.names.missing_names import missing_name_error, refuse_other_names
from allotment.tf.v1.namespaces import recording

#: Version of TensorFlow that the API follows; this package's version is ``allotment.__version__``.
__version__ = _compat.__version__
_names: dict[str, Any] = {}


def __getattr__(name: str) -> Any:
    if name not in _names:
        if name not in __dir__():
            raise missing_name_error(__name__, name, __dir__())
        _names[name] = recording(getattr(_compat, name), f"{__name__}.{name}")
    found = _names[name]
    if isinstance(found, ModuleType):
        # Makes `from allotment.tf.v1.nn import relu` work after the first access.
        sys.modules.setdefault(f"{__name__}.{name}", found)
    return found


def __dir__() -> list[str]:
    return dir(_compat)


refuse_other_names(__name__)

"""TensorFlow 1 as it was: ``import allotment.tf.v1 as tf`` above a program with graphs and sessions.

The names are those of ``compat.v1``, with one difference: operations are recorded in the default graph from the
start. Importing it changes nothing for the rest of the process, where operations go on to run eagerly.
"""

import sys
from types import ModuleType
from typing import Any

from allotment.tf.compat import v1 as _compat
from allotment.tf.names.missing_names import missing
from allotment.tf.v1.namespaces import in_graphs

#: TensorFlow's, for programs that look at it; that of this package is ``allotment.__version__``.
__version__ = _compat.__version__
_names: dict[str, Any] = {}


def __getattr__(name: str) -> Any:
    if name not in _names:
        if name not in __dir__():
            raise missing(__name__, name, __dir__())
        _names[name] = in_graphs(getattr(_compat, name), f"{__name__}.{name}")
    found = _names[name]
    if isinstance(found, ModuleType):
        # So that `from allotment.tf.v1.nn import relu` works once the name was looked at.
        sys.modules.setdefault(f"{__name__}.{name}", found)
    return found


def __dir__() -> list[str]:
    return dir(_compat)

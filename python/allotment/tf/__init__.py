"""TensorFlow's API over the devices and pools of ``allotment``: operations, gradients, graphs, Keras, strategies.

Replace a program's import of TensorFlow by ``import allotment.tf as tf``, or by ``import allotment.tf.v1 as tf`` for
TensorFlow 1. ``__init__.pyi`` lists the names; the first use of a name imports its module.
"""

from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Final as _Final

import lazy_loader as _lazy_loader

from allotment.tf.names.missing_names import missing_name_error as _missing_name_error
from allotment.tf.ops import operators as _operators  # noqa: F401 - gives tensors their operators
from allotment.tf.version import VERSION as _VERSION

#: Version of TensorFlow that the API follows; this package's version is ``allotment.__version__``.
__version__: _Final = _VERSION
#: A new axis of length 1, in an index.
newaxis: _Final = None

_load, _, _names = _lazy_loader.attach_stub(__name__, __file__)
__all__ = sorted([*_names, "__version__", "newaxis"])

if not _TYPE_CHECKING:

    def __getattr__(name):
        if name in __all__:
            return _load(name)
        raise _missing_name_error(__name__, name, __all__)


def __dir__() -> list[str]:
    return __all__

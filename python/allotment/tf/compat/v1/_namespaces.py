"""Namespaces of ``tf.compat.v1`` that have no file: those of ``tf`` with TensorFlow 1's parameters."""

from types import ModuleType

from allotment.tf import linalg, math, strings
from allotment.tf.compat.functions.namespace import Namespace
from allotment.tf.compat.v1.nn import in_top_k
from allotment.tf.compat.variables import initializers

_initializers = ModuleType("allotment.tf.compat.v1.initializers", initializers.__doc__)
_initializers.__dict__.update(
    {name.removesuffix("_initializer"): getattr(initializers, name) for name in initializers.__all__}
)

#: The namespaces by name.
NAMESPACES = {
    "initializers": _initializers,
    "linalg": Namespace(linalg),
    "math": Namespace(math, in_top_k=in_top_k),
    "strings": Namespace(strings),
}

__all__ = ["NAMESPACES"]

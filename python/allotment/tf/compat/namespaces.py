"""Namespaces of ``tf.compat.v1`` that differ from today's in the parameters of functions, or in a few names."""

from types import ModuleType
from typing import Any

from allotment.tf import linalg, math, strings
from allotment.tf.compat import initializers
from allotment.tf.compat.nn import in_top_k
from allotment.tf.compat.signatures import as_in_1
from allotment.tf.names.missing_names import missing_name_error


class Namespace(ModuleType):
    """A module whose functions have the parameters of TensorFlow 1, with some names of its own."""

    def __init__(self, module: ModuleType, **names: Any) -> None:
        name = module.__name__.rpartition(".")[2]
        super().__init__(f"allotment.tf.compat.v1.{name}", module.__doc__)
        self._module = module
        self.__dict__.update(names)
        self._own = tuple(names)

    def __getattr__(self, name: str) -> Any:
        if name not in self._module.__all__:
            raise missing_name_error(self.__name__, name, dir(self))
        return as_in_1(name, getattr(self._module, name))

    def __dir__(self) -> list[str]:
        return sorted({*self._module.__all__, *self._own})


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

__all__ = ["NAMESPACES", "Namespace"]

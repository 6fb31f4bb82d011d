"""Methods of ``tf.Variable`` from TensorFlow 1, most of which are defined for graphs only."""

from typing import Any, NoReturn

import numpy as np

from allotment.devices.dispatch import current_placement
from allotment.tf.names.deprecation import deprecated
from allotment.tf.ops.execute import run_on
from allotment.tf.ops.inference.shape_functions import Inference, Output
from allotment.tf.ops.table import Host, operation
from allotment.tf.ops.variables.resources import Storage
from allotment.tf.tensors.dtype import bool as bool_
from allotment.tf.tensors.reference import Reference
from allotment.tf.tensors.tensor import EagerTensor
from allotment.tf.tensors.tensor_shape import TensorShape, as_shape


def _is_initialized_shape(c: Inference) -> list[Output]:
    return c.one((), bool_)


_is_initialized = operation(
    "VarIsInitializedOp", lambda: np.ones((), np.bool_), shape=_is_initialized_shape, host=Host.OUTPUT
)


class LegacyVariable:
    """Base class of ``Variable`` with the methods that TensorFlow 1 programs call on variables."""

    _shape: TensorShape
    _storage: Storage

    @property
    def initializer(self) -> None:
        """``None``: an eager variable is initialized when it is created."""
        return None

    @property
    def initial_value(self) -> NoReturn:
        """Raise ``RuntimeError``: defined for graphs only."""
        raise RuntimeError("This property is not supported when eager execution is enabled.")

    def initialized_value(self) -> Any:
        """Raise an error: defined for graphs only.

        Raises:
            NotImplementedError: Always.
        """
        raise NotImplementedError("initialized_value() is defined for graphs only: use the variable itself.")

    @property
    def op(self) -> NoReturn:
        """Raise ``AttributeError``: defined for graphs only."""
        raise AttributeError("Tensor.op is undefined when eager execution is enabled.")

    @property
    def graph(self) -> NoReturn:
        """Raise ``AttributeError``: defined for graphs only."""
        raise AttributeError("Tensor.graph is undefined when eager execution is enabled.")

    def is_initialized(self, name: str | None = None) -> EagerTensor:
        """Return whether the variable has a value: a bool tensor of shape ``()``, true for eager variables."""
        return run_on(current_placement(), self._storage.device, _is_initialized, (), name=name)  # type: ignore[no-any-return]

    def eval(self, session: Any = None) -> NoReturn:  # noqa: ARG002 - TensorFlow's signature
        """Raise an error: defined for graphs only.

        Raises:
            RuntimeError: Always.
        """
        raise RuntimeError("This operation is not supported when eager execution is enabled.")

    def load(self: Any, value: Any, session: Any = None) -> None:  # noqa: ARG002 - TensorFlow's signature
        """Replace the value; deprecated in favour of ``assign``."""
        deprecated("Variable.load", "Prefer Variable.assign which has equivalent behavior in 2.X.")
        self.assign(value)

    def experimental_ref(self) -> Reference:
        """Return ``ref()``; deprecated in favour of ``ref``."""
        deprecated("Variable.experimental_ref", "Use ref() instead.")
        return Reference(self)

    def set_shape(self, shape: Any) -> None:
        """Refine the static shape: replace its unknown lengths by those of ``shape``.

        Raises:
            ValueError: The shapes are incompatible.
        """
        wanted = as_shape(shape)
        if not self._shape.is_compatible_with(wanted):
            raise ValueError(f"Shapes {self._shape} and {wanted} are not compatible")
        if self._shape.dims is None:
            self._shape = wanted
        elif wanted.dims is not None:
            pairs = zip(self._shape.dims, wanted.dims, strict=True)
            self._shape = TensorShape([new if old is None else old for old, new in pairs])


__all__ = ["LegacyVariable"]

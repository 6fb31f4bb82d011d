"""The numbers of a metric as variables, for programs that read or set them."""

import threading
from typing import Any

import numpy as np

from allotment.devices.dispatch import current_placement
from allotment.tf.keras.engine.replicas import PerReplicaNumber
from allotment.tf.ops.variables.resources import Storage
from allotment.tf.tensors.dtype import DType
from allotment.tf.tensors.tensor_shape import TensorShape
from allotment.tf.variables.aggregation import VariableAggregation, VariableSynchronization
from allotment.tf.variables.variable import Variable


class _NumberStorage(Storage):
    """The storage of a variable that is a number in host memory."""

    __slots__ = ("_number",)

    def __init__(self, number: PerReplicaNumber, dtype: DType) -> None:
        self._number = number
        self.dtype = dtype
        self.device = self.home = current_placement().host
        self.lock = threading.RLock()

    @property
    def array(self) -> Any:
        """The number as an array of rank 0."""
        return np.asarray(self._number.total(), self.dtype.numpy)

    @array.setter
    def array(self, value: Any) -> None:
        self._number.assign(float(value))


class NumberVariable(Variable):
    """A number of a metric as a variable without trainable values. The metric makes it, not the program.

    Args:
        number: The number.
        dtype: The type of the variable.
        name: Its name.
    """

    def __init__(self, number: PerReplicaNumber, dtype: DType, name: str) -> None:
        self._name = f"{name}:0"
        self._shape = TensorShape(())
        self._trainable = False
        self._constraint = None
        self._synchronization = VariableSynchronization.ON_READ
        self._aggregation = VariableAggregation.SUM
        self._storage = _NumberStorage(number, dtype)


__all__ = ["NumberVariable"]

"""Variables whose copies differ until a read in the cross-replica scope makes one value of them."""

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from allotment.tf.distribute.reductions.reduce_op import aggregation_op
from allotment.tf.distribute.scopes import current_replica
from allotment.tf.distribute.values import PerReplica
from allotment.tf.distribute.variables.distributed import DistributedVariable, tensors
from allotment.tf.ops.convert import to_tensor
from allotment.tf.tensors.tensor import EagerTensor
from allotment.tf.variables.aggregation import VariableAggregation

#: The public spelling of private methods, for messages.
_SPELLING: Final = {"_assign_part": "variable[...].assign"}


class SyncOnReadVariable(DistributedVariable):
    """A variable of which each replica changes its own copy, such as the counters and sums of metrics.

    Read in the cross-replica scope, the copies become one value as ``aggregation`` says: their sum, their mean, or
    the first one. A sum that is assigned there is divided among the copies.
    """

    def _as_tensor(self) -> EagerTensor:
        if current_replica() is not None:
            return super()._as_tensor()
        if self._aggregation is VariableAggregation.ONLY_FIRST_REPLICA:
            first: EagerTensor = self._strategy.extended._first_value(self._values[0].value())
            return first
        value: EagerTensor = self._strategy.extended.reduce_to(
            aggregation_op(self._aggregation), PerReplica(tensors(self)), self._values[0].device
        )
        return value

    def _change(self, method: str, value: Any, **options: Any) -> Any:
        if self._replica is not None:
            return getattr(self._own(), method)(value, **options)
        sums = self._aggregation is VariableAggregation.SUM
        if method != "assign" and sums:
            raise ValueError(
                f"SyncOnReadVariable does not support `{_SPELLING.get(method, method)}` in cross-replica context when "
                "aggregation is set to `tf.VariableAggregation.SUM`."
            )
        if self._aggregation is VariableAggregation.NONE:
            aggregation_op(self._aggregation)
        if method == "_assign_part":
            self._change_all(method, value, **options)
            return self._as_tensor()
        if method != "assign":
            # Each copy differs from the value that is read: all become that one, changed.
            given, read = to_tensor(value, self.dtype), self._as_tensor()
            value = read + given if method == "assign_add" else read - given
        elif sums:
            given = to_tensor(value, self.dtype)
            count = self._strategy.num_replicas_in_sync
            value = given / count if self.dtype.is_floating or self.dtype.is_complex else given // count
        self._change_all("assign", value, name=options["name"], read_value=False)
        return self._as_tensor() if options["read_value"] else None

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]:
        if copy is False:
            raise ValueError("a variable's memory is not shared with arrays: copy=False cannot be served")
        return np.array(self._as_tensor()._on_host(), dtype=dtype)


__all__ = ["SyncOnReadVariable"]

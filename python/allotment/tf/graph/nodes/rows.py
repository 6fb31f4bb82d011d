"""Rows of operations that only graphs have: placeholders, variables, iterators. Kernels of the session run them."""

from typing import Final

from allotment.tf.ops.inference.common import no_outputs, stated, unchanged
from allotment.tf.ops.table import CPU_ONLY, Host, operation
from allotment.tf.ops.variables.resources import ADD, SUBTRACT

PLACEHOLDER: Final = operation("Placeholder", lambda: None, shape=stated, host=Host.NEVER)
#: Its input is what it gives if nothing is fed.
PLACEHOLDER_WITH_DEFAULT: Final = operation("PlaceholderWithDefault", lambda array: array, shape=unchanged)
NO_OP: Final = operation("NoOp", lambda: None, shape=no_outputs)
#: Where a variable lives. The value is the session's.
VARIABLE: Final = operation("VariableV2", lambda: None, shape=stated, host=Host.NEVER)
HANDLE: Final = operation("VarHandleOp", lambda: None, shape=stated, host=Host.NEVER)
READ: Final = operation("ReadVariableOp", lambda array: array, shape=unchanged, host=Host.NEVER)
#: The changes of reference variables; those of resources have rows of their own in ``ops.resources``.
ASSIGN: Final = operation("Assign", lambda array: array, shape=unchanged, host=Host.NEVER)
#: An argument of such an assignment: the value may have another shape than the one before.
ANY_SHAPE: Final = "any shape"
#: The value of a variable, or the input while it has none.
INITIALIZED_VALUE: Final = operation(
    "InitializedValue", lambda array: array, shape=unchanged, host=Host.NEVER
)
#: Rows for an iterator over a data set: the iterator, its start, and its next element.
ITERATOR: Final = operation("IteratorV2", lambda: None, shape=stated, kinds=CPU_ONLY, host=Host.NEVER)
MAKE_ITERATOR: Final = operation("MakeIterator", lambda: (), shape=stated, kinds=CPU_ONLY, effect_only=True)
GET_NEXT: Final = operation("IteratorGetNext", lambda: None, shape=stated, kinds=CPU_ONLY, host=Host.NEVER)
ASSIGN_ADD: Final = operation("AssignAdd", ADD.function, shape=stated, fault=ADD.fault)
ASSIGN_SUBTRACT: Final = operation("AssignSub", SUBTRACT.function, shape=stated, fault=SUBTRACT.fault)

__all__ = [
    "ANY_SHAPE",
    "ASSIGN",
    "ASSIGN_ADD",
    "ASSIGN_SUBTRACT",
    "GET_NEXT",
    "HANDLE",
    "INITIALIZED_VALUE",
    "ITERATOR",
    "MAKE_ITERATOR",
    "NO_OP",
    "PLACEHOLDER",
    "PLACEHOLDER_WITH_DEFAULT",
    "READ",
    "VARIABLE",
]

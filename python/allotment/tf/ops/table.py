"""The operation table: what each operation is called, computes, and where it can run.

The functions users call are made from these rows (see ``execute``). A row says nothing about devices beyond the
kinds that have a kernel; where an operation runs is ``devices.placement``'s to decide.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, Literal, NamedTuple

from allotment.devices import memory_runner
from allotment.tf.ops.types.signatures import CONSTANT_ARGUMENTS, INPUT_NUMBERS
from allotment.tf.tensors.dtype import DType

#: Runs on every kind of device, the best first.
EVERYWHERE: Final = ("GPU", "CPU")
#: Has a CPU kernel only: texts, and what TensorFlow never ported.
CPU_ONLY: Final = ("CPU",)


#: Takes an ``Inference`` (``ops.inference``) and the row's own arguments, returns the type and shape of each output.
ShapeFunction = Callable[..., Sequence[tuple[DType, Any]]]


class Gradient(NamedTuple):
    """The gradient of an operation: makes gradients of its inputs from those of its outputs."""

    #: Takes the call and the gradient of each output, returns that of each input, ``None`` for one that has none.
    #: It is made of public operations, so that it can be recorded itself. Without it the operation is a constant.
    function: Callable[..., Any] | None
    #: Which inputs' values are needed, and not only their shapes and types.
    inputs: "Needed" = True
    #: The same of the outputs.
    outputs: "Needed" = False
    #: Whether the function takes ``IndexedSlices`` for gradients; for any other they become tensors before.
    slices: bool = False


#: All or none of the tensors, those at some places, or each one of which another has a gradient.
Needed = bool | tuple[int, ...] | Literal["beside others"]

#: The gradients of operations by name: those in ``ops.gradients``.
GRADIENTS: Final[dict[str, Gradient]] = {}


class Host(Enum):
    """Which values a GPU's kernel keeps in host memory (placement, section 5.3)."""

    #: Everything, if the first input is int32: arithmetic, comparison and shape handling.
    INT32 = "int32"
    #: The output, and no input is copied there: shapes and sizes. On the CPU only int32 is kept there.
    OUTPUT = "output"
    #: Everything, on the CPU, too: what computes shapes from shapes.
    ALL = "all"
    #: Nothing.
    NEVER = "never"


@dataclass(frozen=True, slots=True, eq=False)
class Operation:
    """One row of the table."""

    #: The name in placement logs and error texts, as TensorFlow's: ``AddV2``.
    name: str
    #: Computes the result: arrays first, then the operation's own arguments.
    function: Callable[..., Any]
    #: Kinds of device that have a kernel, the best first.
    kinds: tuple[str, ...] = EVERYWHERE
    #: Finds the types and shapes of the outputs in a graph; without it the operation has no place in one.
    shape: ShapeFunction | None = None
    #: Whether the function returns a tuple even if it makes one tensor: its arguments say how many.
    makes_tuple: bool = False
    #: Element type of the result: ``None`` means whatever the array has.
    result: DType | None = None
    #: The types that a GPU's kernel keeps in host memory.
    host: Host = Host.INT32
    #: Whether the kernel reads its inputs where they are: single numbers that say what to make.
    reads_anywhere: bool = False
    #: Of an operation that TensorFlow has not under its name: whether all inputs must have one element type, and a
    #: predicate that says which, ``None`` for all. For all others ``KERNEL_TYPES`` says it.
    same_dtype: bool = True
    takes: Callable[[DType], bool] | None = None
    #: Says what is wrong with the inputs' arrays and arguments, in TensorFlow's words, or ``None``.
    fault: Callable[..., str | None] | None = None
    #: Whether it is there for what it does and makes no tensor. In a graph it is not tried to learn of shapes.
    effect_only: bool = False
    #: Its gradient, if it is not that of all operations of the name.
    own_gradient: Gradient | None = None

    @property
    def gradient(self) -> Gradient | None:
        """The gradient of the operation; ``None`` if it has none."""
        return self.own_gradient or GRADIENTS.get(self.name)

    @property
    def constants(self) -> bool:
        """Whether TensorFlow makes constants of arguments before it places the operation."""
        return self.name in CONSTANT_ARGUMENTS

    def number(self, index: int) -> int | None:
        """TensorFlow's number of an input, or ``None`` if it does not look at it."""
        numbers = INPUT_NUMBERS.get(self.name)
        if numbers is None:
            return index
        return numbers[index] if index < len(numbers) else None


class StatefulArgument:
    """Base of arguments that change from run to run: where random numbers are drawn, or a variable's value."""

    __slots__ = ()


#: Every operation by name.
OPERATIONS: Final[dict[str, Operation]] = {}


def operation(name: str, function: Callable[..., Any], **fields: Any) -> Operation:
    """Enter a row into the table and return it.

    Raises:
        ValueError: The name is taken.
    """
    if name in OPERATIONS:
        raise ValueError(f"operation {name} is in the table already")
    row = OPERATIONS[name] = Operation(name, function, **fields)
    memory_runner.OPERATION_NAMES.setdefault(function, name)
    return row


def dims(array: Any) -> str:
    """Return the shape of an array as error texts show it: ``[2,3]``."""
    return "[" + ",".join(map(str, array.shape)) + "]"


def broadcast_fault(arrays: Sequence[Any]) -> str | None:
    """Return TensorFlow's error text for shapes that cannot be broadcast to each other, or ``None``."""
    import numpy as np

    try:
        np.broadcast_shapes(*(array.shape for array in arrays))
    except ValueError:
        return f"Incompatible shapes: {' vs. '.join(map(dims, arrays))}"
    return None


def same_shapes(*arrays: Any) -> str | None:
    """``fault`` of the operations that broadcast their inputs."""
    return broadcast_fault(arrays)

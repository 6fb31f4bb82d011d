"""Goes back through calls, from targets to sources, and adds up gradients on the way."""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from allotment.tf.ops.array.creation import zeros, zeros_like
from allotment.tf.ops.autodiff.differentiation import Call, Outline, is_differentiable
from allotment.tf.ops.indexing.indexed_slices import IndexedSlices, aggregate, dense
from allotment.tf.ops.table import Operation
from allotment.tf.tensors.tensor import EagerTensor

#: Gradients of one tensor that are still to be added up, by what the tensor is known by.
Pending = dict[Hashable, list[Any]]


class Step:
    """A call that was recorded, with what its inputs and outputs are known by."""

    __slots__ = ("args", "input_keys", "inputs", "kwargs", "name", "output_keys", "outputs", "row", "scope")

    def __init__(
        self,
        row: Operation,
        inputs: Sequence[Any],
        outputs: Sequence[Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        input_keys: Sequence[Hashable],
        output_keys: Sequence[Hashable],
        scope: Callable[[], AbstractContextManager[Any]] = nullcontext,
        name: str | None = None,
    ) -> None:
        self.row = row
        #: Tensors, or their outlines where the gradient needs no more; see ``Call``.
        self.inputs = inputs
        self.outputs = outputs
        self.args = args
        self.kwargs = kwargs
        self.input_keys = input_keys
        self.output_keys = output_keys
        #: Makes the scope in which a graph is to hold the nodes of its gradient.
        self.scope = scope
        #: Its name in a graph.
        self.name = name


def backward(
    steps: list[Step],
    targets: Sequence[tuple[Hashable, Any]],
    sources: Iterable[Hashable],
    *,
    keep: bool,
) -> Mapping[Hashable, Any]:
    """The gradients of sources that targets depend on.

    Args:
        steps: The calls in the order in which they were made.
        targets: What each target is known by, and its gradient.
        sources: What the sources are known by.
        keep: Whether ``steps`` is used again. If not, it is emptied, and tensors are freed on the way.

    Raises:
        LookupError: An operation on the way has no gradient.
    """
    wanted = set(sources)
    way = _between(steps, wanted)
    if not keep:
        steps.clear()
    pending: Pending = {}
    for key, given in targets:
        pending.setdefault(key, []).append(given)
    useful = wanted.union(*(step.output_keys for step in way))
    found: dict[Hashable, Any] = {}
    while way:
        # Taken off the list, so that its tensors go as soon as they are used.
        step = way.pop()
        gradients = [_taken(key, pending, wanted, found) for key in step.output_keys]
        if any(each is not None for each in gradients):
            _go_back(step, gradients, useful, pending)
    for key in wanted & pending.keys():
        found[key] = _sum(pending.pop(key))
    return found


def _between(steps: Sequence[Step], sources: set[Hashable]) -> list[Step]:
    """The steps that sources lead to."""
    reached = set(sources)
    way = []
    for step in steps:
        if any(key in reached for key in step.input_keys):
            reached.update(step.output_keys)
            way.append(step)
    return way


def _taken(key: Hashable, pending: Pending, wanted: set[Hashable], found: dict[Hashable, Any]) -> Any:
    """The gradient of an output, to which nothing will be added any more."""
    parts = pending.pop(key, None)
    if parts is None:
        return None
    total = _sum(parts)
    if key in wanted:
        found[key] = total
    return total


def _sum(parts: list[Any]) -> Any:
    """Add gradients up."""
    return parts[0] if len(parts) == 1 else aggregate(parts)


def _go_back(step: Step, gradients: list[Any], useful: set[Hashable], pending: Pending) -> None:
    gradient = step.row.gradient
    if gradient is None:
        raise LookupError(_unknown(step))
    wanted = [key in useful for key in step.input_keys]
    call = Call(step.row, step.inputs, step.outputs, step.args, step.kwargs, wanted)
    with step.scope():
        given = [
            _nothing(output) if each is None else each if gradient.slices else dense(each)
            for each, output in zip(gradients, step.outputs, strict=True)
        ]
        made = call.back(given)
    for key, tensor, each, asked in zip(step.input_keys, step.inputs, made, wanted, strict=True):
        if asked and each is not None:
            if not isinstance(each, EagerTensor | IndexedSlices):
                # A graph does not see everywhere that a gradient has the shape of what it is of.
                each.set_shape(tensor.shape)
            pending.setdefault(key, []).append(each)


def _unknown(step: Step) -> str:
    instead = "Where its result may count as a constant, put `tf.stop_gradient` around it."
    if step.name is None:
        return f"gradient registry has no entry for: {step.row.name}. {instead}"
    return f"No gradient defined for operation'{step.name}' (op type: {step.row.name}). {instead}"


def _nothing(output: Any) -> Any:
    """The gradient of an output that no target depends on; of whole numbers there is none."""
    if not is_differentiable(output._dtype):
        return None
    return zeros(output.lengths, output._dtype) if isinstance(output, Outline) else zeros_like(output)


__all__ = ["Step", "backward"]

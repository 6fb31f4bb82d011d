"""``tf.gradients``: adds the nodes that compute gradients to a graph."""

from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from functools import partial
from typing import Any

from allotment.tf.differentiation.unconnected_gradients import UnconnectedGradients, unconnected_argument
from allotment.tf.graph.nodes.node import NodeGraph, Operation, SymbolicTensor, current_graph
from allotment.tf.ops.array.array import identity
from allotment.tf.ops.array.creation import ones_like, zeros_like
from allotment.tf.ops.autodiff import all_gradients as _gradients  # noqa: F401 - enters the gradients of all other operations
from allotment.tf.ops.autodiff.backward import Step, backward
from allotment.tf.ops.autodiff.differentiation import Call, gradient, is_differentiable, not_differentiable
from allotment.tf.ops.convert import tensor_or_slices, to_tensor
from allotment.tf.tensors.indexed_slices import IndexedSlices


@gradient("ReadVariableOp", "PlaceholderWithDefault", inputs=False, slices=True)
def _same(call: Call, upstream: Any) -> Any:  # noqa: ARG001 - gradients have one signature
    return upstream


not_differentiable("Const", "Placeholder", "NoOp", "VariableV2", "VarHandleOp", "VarIsInitializedOp")
not_differentiable("Assign", "AssignAdd", "AssignSub")


def gradients_v1(
    ys: Any,
    xs: Any,
    grad_ys: Any = None,
    name: str = "gradients",
    colocate_gradients_with_ops: bool = False,
    gate_gradients: bool = False,  # noqa: ARG001 - TensorFlow's signature
    aggregation_method: Any = None,  # noqa: ARG001 - TensorFlow's signature
    stop_gradients: Any = None,
    unconnected_gradients: Any = UnconnectedGradients.NONE,
) -> list[Any]:
    """Record the gradients of the sum of ``ys`` with respect to each of ``xs``.

    As ``tf.compat.v1.gradients``.

    Args:
        ys: A tensor or variable of the default graph, or a list of them.
        xs: The same.
        grad_ys: The factor of the gradient of each of ``ys``; ones without it, or for ``None`` in it.
        name: In front of the names of the nodes.
        colocate_gradients_with_ops: Put the nodes of each gradient on the device of its operation.
        gate_gradients: Has no effect.
        aggregation_method: Has no effect.
        stop_gradients: Tensors that count as constants.
        unconnected_gradients: The gradient of an ``xs`` that no ``ys`` depends on: ``None``, or ``"zero"`` for zeros.

    Raises:
        RuntimeError: Operations are not recorded but run.
        LookupError: An operation between ``xs`` and ``ys`` has no registered gradient.
        TypeError: Complex ``ys`` without ``grad_ys``.
        ValueError: There are not as many ``grad_ys`` as ``ys``, or one of another shape.
    """
    graph = current_graph()
    if graph is None:
        raise RuntimeError(
            "tf.gradients is not supported when eager execution is enabled. Use tf.GradientTape instead."
        )
    unconnected = unconnected_argument(unconnected_gradients)
    targets, sources = _ends(graph, ys), _ends(graph, xs)
    stops = set() if stop_gradients is None else set(_ends(graph, stop_gradients))
    given = [None] * len(targets) if grad_ys is None else _listed(grad_ys)
    if len(given) != len(targets):
        raise ValueError(f"length mismatch: {len(given)} grad_ys for {len(targets)} ys")
    with graph.name_scope(name):
        seeds = [
            (target, _seed(target, weight, index))
            for index, (target, weight) in enumerate(zip(targets, given, strict=True))
            if is_differentiable(target._dtype)
        ]
        steps = _steps(targets, stops, colocate=colocate_gradients_with_ops)
        found = backward(steps, seeds, sources, keep=False)
        return [
            found.get(source)
            if source in found or unconnected is UnconnectedGradients.NONE
            else zeros_like(tensor)
            for source, tensor in zip(sources, _listed(xs), strict=True)
        ]


def gradients(
    ys: Any,
    xs: Any,
    grad_ys: Any = None,
    name: str = "gradients",
    gate_gradients: bool = False,
    aggregation_method: Any = None,
    stop_gradients: Any = None,
    unconnected_gradients: Any = UnconnectedGradients.NONE,
) -> list[Any]:
    """Record the gradients of the sum of ``ys`` with respect to each of ``xs``. As ``tf.gradients``.

    The nodes of a gradient are on the device of the node it is of. For the rest see ``tf.compat.v1.gradients``.
    """
    return gradients_v1(
        ys,
        xs,
        grad_ys,
        name,
        True,
        gate_gradients,
        aggregation_method,
        stop_gradients,
        unconnected_gradients,
    )


def _listed(given: Any) -> list[Any]:
    return list(given) if isinstance(given, list | tuple) else [given]


def _ends(graph: NodeGraph, given: Any) -> list[SymbolicTensor]:
    """Return the tensors of tensors and variables: of a variable its handle or value."""
    found = []
    for each in _listed(given):
        tensor = getattr(each, "_source", None)
        if tensor is None:
            tensor = to_tensor(each)
        if not isinstance(tensor, SymbolicTensor) or tensor.graph is not graph:
            raise ValueError(f"{each!r} is no tensor or variable of the default graph.")
        found.append(tensor)
    return found


def _seed(target: SymbolicTensor, weight: Any, index: int) -> Any:
    if weight is None:
        if target._dtype.is_complex:
            raise TypeError(
                f"Gradients of complex tensors ({target}) must set grad_ys (y.dtype = {target._dtype})"
            )
        return ones_like(target, name=f"grad_ys_{index}")
    weight = tensor_or_slices(weight, like=target._dtype)
    if isinstance(weight, IndexedSlices) and weight.dtype is target._dtype:
        return identity(weight, name=f"grad_ys_{index}")
    if weight.dtype is not target._dtype or not weight.shape.is_compatible_with(target.shape):
        raise ValueError(
            f"grad_ys[{index}] must have the type and shape of its y, {target._dtype.name} and {target.shape}, not "
            f"{weight.dtype.name} and {weight.shape}"
        )
    return weight


def _steps(targets: Sequence[SymbolicTensor], stops: set[SymbolicTensor], *, colocate: bool) -> list[Step]:
    """Return the nodes that targets depend on, in the order in which they were made."""
    found: set[Operation] = set()
    waiting = [target._op for target in targets]
    while waiting:
        node = waiting.pop()
        if node not in found:
            found.add(node)
            waiting.extend(tensor._op for tensor in node._inputs)
    return [
        Step(
            node._row,
            node._inputs[: node._count],
            node._outputs,
            node._args,
            node._kwargs,
            [
                tensor if is_differentiable(tensor._dtype) else object()
                for tensor in node._inputs[: node._count]
            ],
            node._outputs,
            partial(_scope, node, colocate=colocate),
            node.name,
        )
        for node in sorted(found, key=lambda node: node._number)
        # A tensor that counts as a constant ends the way back.
        if not stops.intersection(node._outputs)
    ]


def _scope(node: Operation, *, colocate: bool) -> AbstractContextManager[Any]:
    """Return the scope of a gradient: a name made of the node's, and with ``colocate`` its device."""
    stack = ExitStack()
    stack.enter_context(node.graph.name_scope(f"{node.name}_grad"))
    stack.enter_context(node.graph.colocate_with(node, ignore_existing=True) if colocate else nullcontext())
    return stack


__all__ = ["gradients", "gradients_v1"]

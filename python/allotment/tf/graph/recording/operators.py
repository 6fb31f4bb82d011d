"""Attaches Python's operators to symbolic tensors: they record in the tensor's graph, under TensorFlow's names."""

from collections.abc import Callable
from typing import Any, Final

from allotment.tf.dispatch import thread
from allotment.tf.graph.nodes.node import NodeGraph, SymbolicTensor
from allotment.tf.ops.convert import to_tensor
from allotment.tf.ops.operators import OPERATORS, attach

#: TensorFlow's names of the nodes of operators.
_NAMES: Final = {
    "__add__": "add",
    "__and__": "and",
    "__floordiv__": "floordiv",
    "__ge__": "GreaterEqual",
    "__gt__": "Greater",
    "__le__": "LessEqual",
    "__lt__": "Less",
    "__matmul__": "matmul",
    "__mod__": "mod",
    "__mul__": "mul",
    "__or__": "or",
    "__pow__": "pow",
    "__sub__": "sub",
    "__truediv__": "truediv",
    "__xor__": "xor",
}


def _recorded(tensor: SymbolicTensor, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call a function with the tensor's graph as the default."""
    graph = tensor.graph
    if thread.state.graph is graph:
        return function(*args, **kwargs)
    with graph.as_default():
        return function(*args, **kwargs)


def _binary(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    def call(x: SymbolicTensor, y: Any) -> Any:
        return _recorded(x, _named, x.graph, function, x, y, name)

    return call


def _reflected(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    def call(y: SymbolicTensor, x: Any) -> Any:
        return _recorded(y, _named, y.graph, converted, x, y, name)

    def converted(x: Any, y: Any, name: str) -> Any:
        # The left operand takes the type of the tensor or variable.
        return function(to_tensor(x, like=y.dtype), y, name=name)

    return call


def _named(graph: NodeGraph, function: Callable[..., Any], x: Any, y: Any, name: str) -> Any:
    with graph.name_scope(name) as scope, graph.naming({id(x): "x", id(y): "y"}):
        return function(x, y, name=scope)


def _plain(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(x: SymbolicTensor, *args: Any) -> Any:
        return _recorded(x, function, x, *args)

    return call


def _is(x: SymbolicTensor, y: object) -> bool:
    # By identity, as TensorFlow's in a graph: tensors are keys of dictionaries.
    return x is y


def _is_not(x: SymbolicTensor, y: object) -> bool:
    return x is not y


def methods_of() -> dict[str, Callable[..., Any]]:
    """Return the operator methods of symbolic tensors and variables by name."""
    methods: dict[str, Callable[..., Any]] = {}
    for method, function in OPERATORS.items():
        if method in _NAMES:
            methods[method] = _binary(function, _NAMES[method])
        elif method.startswith("__r"):
            method_of_left = f"__{method[3:]}"
            methods[method] = _reflected(OPERATORS[method_of_left], _NAMES[method_of_left])
        else:
            methods[method] = _plain(function)
    return methods | {"__eq__": _is, "__ne__": _is_not}


attach(SymbolicTensor, methods_of())

__all__ = ["methods_of"]

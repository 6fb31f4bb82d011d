"""Wraps the names of ``compat.v1`` for ``allotment.tf.v1``, so that operations are recorded in the default graph."""

from collections.abc import Callable
from functools import wraps
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any, Final

from allotment.devices.device_scope import device
from allotment.tf.compat import v1 as compat
from allotment.tf.compat.v1 import Variable as AnyVariable
from allotment.tf.compat.variables.scopes import get_variable_scope
from allotment.tf.data.dataset import Dataset as AnyDataset
from allotment.tf.graph.default import get_default_graph, in_graph
from allotment.tf.graph.variables.graph_variable import GraphVariable
from allotment.tf.names.missing_names import missing_name_error
from allotment.tf.ops.name_scopes import name_scope

#: Modules and functions that are not wrapped: they have no operations, or select the execution mode.
_UNWRAPPED_MODULES: Final = frozenset(
    {
        "allotment.tf.config",
        "allotment.tf.errors",
        "allotment.tf.test",
        "allotment.tf.dtypes",
        "allotment.tf.version",
        "allotment.tf.nest",
        "allotment.tf.compat",
        "allotment.tf.compat.v1.logging",
        "allotment.tf.sysconfig",
    }
)
_UNWRAPPED_FUNCTIONS: Final = frozenset(
    {
        "disable_eager_execution",
        "disable_v2_behavior",
        "enable_eager_execution",
        "get_default_graph",
        "get_default_session",
        "get_logger",
        "reset_default_graph",
    }
)


class Variable(GraphVariable):
    """A variable of the default graph; a reference variable unless ``use_resource`` is true."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs["use_resource"] = bool(kwargs.get("use_resource"))
        with get_default_graph().as_default():
            super().__init__(*args, **kwargs)


class _DatasetType(type):
    """Metaclass that makes every data set an instance of ``Dataset`` for ``isinstance``."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, AnyDataset)


def _recording_constructor(name: str) -> Any:
    """Wrap a constructor of ``Dataset`` so that the data set's iterators are nodes of the default graph."""
    make = getattr(AnyDataset, name)

    @wraps(make)
    def call(*args: Any, **kwargs: Any) -> Any:
        made = make(*args, **kwargs)
        made._records = True
        return made

    return staticmethod(call)


class Dataset(AnyDataset, metaclass=_DatasetType):
    """``tf.data.Dataset`` of TensorFlow 1: its iterators are nodes of the default graph."""

    from_generator = _recording_constructor("from_generator")
    from_tensor_slices = _recording_constructor("from_tensor_slices")
    from_tensors = _recording_constructor("from_tensors")
    range = _recording_constructor("range")
    zip = _recording_constructor("zip")


def _executing_eagerly() -> bool:
    """Return false: the operations of this namespace are recorded in a graph."""
    return False


def _with_reference_variable(make: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap ``get_variable``, to create reference variables unless the scope or ``use_resource`` overrides it."""

    @wraps(make)
    def call(*args: Any, **kwargs: Any) -> Any:
        with get_default_graph().as_default():
            if kwargs.get("use_resource") is None:
                kwargs["use_resource"] = bool(get_variable_scope().use_resource)
            return make(*args, **kwargs)

    return call


def _with_reference_variables(make: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a function of ``tf.layers``, to create reference variables unless the scope overrides it."""

    @wraps(make)
    def call(*args: Any, **kwargs: Any) -> Any:
        with get_default_graph().as_default():
            scope = get_variable_scope()
            before = scope.use_resource
            scope.use_resource = bool(before)
            try:
                return make(*args, **kwargs)
            finally:
                scope.use_resource = before

    return call


class _GraphNamespace(ModuleType):
    """A module with the names of another one, wrapped by ``recording``."""

    def __init__(self, module: ModuleType, name: str) -> None:
        super().__init__(name, module.__doc__)
        self.__wrapped__ = module

    def __getattr__(self, name: str) -> Any:
        if not hasattr(self.__wrapped__, name):
            raise missing_name_error(self.__name__, name, dir(self))
        made = recording(getattr(self.__wrapped__, name), f"{self.__name__}.{name}")
        setattr(self, name, made)
        return made

    def __dir__(self) -> list[str]:
        return sorted(getattr(self.__wrapped__, "__all__", None) or dir(self.__wrapped__))


def recording(given: Any, name: str) -> Any:
    """Wrap a function or module of ``compat.v1`` to record in the default graph; return other values unchanged.

    Args:
        given: The value in ``compat.v1``.
        name: Its full name in this namespace.
    """
    last = name.rpartition(".")[2]
    if given is AnyVariable:
        return Variable
    if given is AnyDataset:
        return Dataset
    if given in (compat.get_variable, compat.get_local_variable):
        return _with_reference_variable(given)
    if isinstance(given, FunctionType) and given.__module__.startswith("allotment.tf.compat.layers."):
        return _with_reference_variables(given)
    if last in ("executing_eagerly", "executing_eagerly_outside_functions"):
        return _executing_eagerly
    if isinstance(given, ModuleType):
        return given if given.__name__ in _UNWRAPPED_MODULES else _GraphNamespace(given, name)
    if given in (device, name_scope, compat.variable_scope) or (
        isinstance(given, FunctionType | BuiltinFunctionType) and last not in _UNWRAPPED_FUNCTIONS
    ):
        return in_graph(given)
    return given


__all__ = ["recording"]

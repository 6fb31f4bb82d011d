"""What names of ``compat.v1`` are in ``allotment.tf.v1``: the same, recording in the default graph."""

from collections.abc import Callable
from functools import wraps
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any, Final

from allotment.devices.placement import device
from allotment.tf.compat import v1 as compat
from allotment.tf.compat.v1 import Variable as AnyVariable
from allotment.tf.compat.variable_scopes import get_variable_scope
from allotment.tf.data.dataset import Dataset as AnyDataset
from allotment.tf.graph.default import get_default_graph, in_graph
from allotment.tf.graph.variables.graph_variable import GraphVariable
from allotment.tf.names.missing_names import missing
from allotment.tf.ops.name_scopes import name_scope

#: They say what is recorded and what is not, or configure the process: they are not recorded themselves.
_AS_THEY_ARE: Final = frozenset(
    {
        "allotment.tf.config",
        "allotment.tf.errors",
        "allotment.tf.test",
        "allotment.tf.dtypes",
        "allotment.tf.version",
        "allotment.tf.nest",
        "allotment.tf.compat",
        "allotment.tf.compat.logging",
        "allotment.tf.sysconfig",
    }
)
_FUNCTIONS_AS_THEY_ARE: Final = frozenset(
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
    """A variable of the default graph: of the first releases' kind unless ``use_resource`` says otherwise."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        with get_default_graph().as_default():
            super().__init__(*args, **_referred(kwargs))


class _DatasetType(type):
    """Lets data sets be what ``isinstance`` takes them for."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, AnyDataset)


def _recording_maker(name: str) -> Any:
    """A function that makes a data set whose iterators are nodes of the default graph."""
    make = getattr(AnyDataset, name)

    @wraps(make)
    def call(*args: Any, **kwargs: Any) -> Any:
        made = make(*args, **kwargs)
        made._records = True
        return made

    return staticmethod(call)


class Dataset(AnyDataset, metaclass=_DatasetType):
    """``tf.data.Dataset`` of TensorFlow 1: its iterators are nodes of the default graph."""

    from_generator = _recording_maker("from_generator")
    from_tensor_slices = _recording_maker("from_tensor_slices")
    from_tensors = _recording_maker("from_tensors")
    range = _recording_maker("range")
    zip = _recording_maker("zip")


def _executing_eagerly() -> bool:
    """Whether operations run when they are called: not those of this namespace."""
    return False


def _referred(options: dict[str, Any]) -> dict[str, Any]:
    """Options of a variable, which is no resource unless they say so."""
    return {**options, "use_resource": bool(options.get("use_resource"))}


def _by_name(make: Callable[..., Any]) -> Callable[..., Any]:
    """``get_variable`` and its like: they make reference variables unless the scope or ``use_resource`` says not."""

    @wraps(make)
    def call(*args: Any, **kwargs: Any) -> Any:
        with get_default_graph().as_default():
            if kwargs.get("use_resource") is None:
                kwargs["use_resource"] = bool(get_variable_scope().use_resource)
            return make(*args, **kwargs)

    return call


def _with_references(make: Callable[..., Any]) -> Callable[..., Any]:
    """A function of ``tf.layers``, the variables of which are reference variables unless the scope says not."""

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
    """A namespace of functions, recording."""

    def __init__(self, module: ModuleType, name: str) -> None:
        super().__init__(name, module.__doc__)
        self.__wrapped__ = module

    def __getattr__(self, name: str) -> Any:
        if not hasattr(self.__wrapped__, name):
            raise missing(self.__name__, name, dir(self))
        made = in_graphs(getattr(self.__wrapped__, name), f"{self.__name__}.{name}")
        setattr(self, name, made)
        return made

    def __dir__(self) -> list[str]:
        return sorted(getattr(self.__wrapped__, "__all__", None) or dir(self.__wrapped__))


def in_graphs(given: Any, name: str) -> Any:
    """What stands for a name of ``compat.v1``: functions record, classes and values are the same."""
    last = name.rpartition(".")[2]
    if given is AnyVariable:
        return Variable
    if given is AnyDataset:
        return Dataset
    if given in (compat.get_variable, compat.get_local_variable):
        return _by_name(given)
    if isinstance(given, FunctionType) and given.__module__ == "allotment.tf.compat.layers":
        return _with_references(given)
    if last in ("executing_eagerly", "executing_eagerly_outside_functions"):
        return _executing_eagerly
    if isinstance(given, ModuleType):
        return given if given.__name__ in _AS_THEY_ARE else _GraphNamespace(given, name)
    if given in (device, name_scope, compat.variable_scope) or (
        isinstance(given, FunctionType | BuiltinFunctionType) and last not in _FUNCTIONS_AS_THEY_ARE
    ):
        return in_graph(given)
    return given


__all__ = ["in_graphs"]

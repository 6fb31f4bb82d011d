"""``tf.compat.v1``: the names of TensorFlow 1 that TensorFlow 2.21 has.

It has every public name of the package, too; those below are only in TensorFlow 1.
"""

import functools
import sys
from importlib import import_module
from typing import Any

from allotment.devices.device_spec import MutableDeviceSpec as DeviceSpec
from allotment.tf import config, errors, test
from allotment.tf.compat.functions.aliases import MOVED
from allotment.tf.compat.functions.assertions import ASSERTIONS, verify_tensor_all_finite
from allotment.tf.compat.functions.constant import constant
from allotment.tf.compat.functions.control import cond, while_loop
from allotment.tf.compat.functions.devices import device
from allotment.tf.compat.functions.printing import Print
from allotment.tf.compat.functions.renamed import (
    convert_to_tensor_or_indexed_slices,
    div,
    ones_like,
    to_double,
    to_float,
    to_int32,
    to_int64,
)
from allotment.tf.compat.functions.selection import where
from allotment.tf.compat.functions.signatures import as_in_1
from allotment.tf.compat.v1 import debugging, losses, nn, random
from allotment.tf.compat.v1._namespaces import NAMESPACES
from allotment.tf.compat.v1.logging import get_logger
from allotment.tf.compat.v1.random import multinomial
from allotment.tf.compat.variables.collected import (
    all_variables,
    assign,
    assign_add,
    assign_sub,
    global_variables,
    global_variables_initializer,
    initialize_all_variables,
    initialize_local_variables,
    is_variable_initialized,
    local_variables,
    local_variables_initializer,
    report_uninitialized_variables,
    trainable_variables,
    variables_initializer,
)
from allotment.tf.compat.variables.get_variable import get_local_variable, get_variable
from allotment.tf.compat.variables.initializers import (
    constant_initializer,
    glorot_normal_initializer,
    glorot_uniform_initializer,
    ones_initializer,
    random_normal_initializer,
    random_uniform_initializer,
    truncated_normal_initializer,
    variance_scaling_initializer,
    zeros_initializer,
)
from allotment.tf.compat.variables.scatters import SCATTERS
from allotment.tf.compat.variables.scopes import (
    AUTO_REUSE,
    VariableScope,
    get_variable_scope,
    variable_scope,
)
from allotment.tf.graph.collections import GraphKeys
from allotment.tf.graph.default import (
    disable_eager_execution,
    enable_eager_execution,
    get_default_graph,
    reset_default_graph,
)
from allotment.tf.graph.gradients import gradients_v1
from allotment.tf.graph.graph import Graph
from allotment.tf.graph.nodes.node import Operation
from allotment.tf.graph.nodes.node_def import AttrValue, NodeDef
from allotment.tf.graph.options.config_proto import (
    ConfigProto,
    GPUOptions,
    GraphOptions,
    OptimizerOptions,
    RunMetadata,
    RunOptions,
)
from allotment.tf.graph.placeholders import colocate_with, name_scope, placeholder, placeholder_with_default
from allotment.tf.graph.session import InteractiveSession, Session, get_default_session
from allotment.tf.graph.variables.graph_variable import GraphVariable
from allotment.tf.graph.variables.kinds import (
    disable_resource_variables,
    enable_resource_variables,
    resources_by_default,
)
from allotment.tf.names.missing_names import missing_name_error, refuse_other_names
from allotment.tf.variables.variable import Variable as _Variable
from allotment.tf.version import (
    COMPILER_VERSION,
    GIT_VERSION,
    GRAPH_DEF_VERSION,
    GRAPH_DEF_VERSION_MIN_CONSUMER,
    GRAPH_DEF_VERSION_MIN_PRODUCER,
    VERSION,
)


def disable_v2_behavior() -> None:
    """Record operations in graphs, and make reference variables. As ``tf.compat.v1.disable_v2_behavior``."""
    disable_eager_execution()
    disable_resource_variables()


def enable_v2_behavior() -> None:
    """Check that operations run eagerly. As ``tf.compat.v1.enable_v2_behavior``.

    Raises:
        ValueError: A graph is the default.
    """
    enable_eager_execution()
    enable_resource_variables()


def add_to_collection(name: Any, value: Any) -> None:
    """Add a value to a collection of the default graph."""
    get_default_graph().add_to_collection(name, value)


def add_to_collections(names: Any, value: Any) -> None:
    """Add a value to several collections of the default graph."""
    get_default_graph().add_to_collections(names, value)


def get_collection_ref(key: Any) -> list[Any]:
    """Return a collection of the default graph as the list itself."""
    return get_default_graph().get_collection_ref(key)


def get_collection(key: Any, scope: str | None = None) -> list[Any]:
    """Return a collection of the default graph as a new list."""
    return get_default_graph().get_collection(key, scope)


def executing_eagerly_outside_functions() -> bool:
    """Whether operations run eagerly."""
    from allotment.tf.ops.array.array import executing_eagerly

    return executing_eagerly()


#: TensorFlow's, for programs that look at it; that of this package is ``allotment.__version__``.
__version__ = VERSION
#: An eager or a graph variable, as ``tf.Variable``.
Variable = _Variable
resource_variables_enabled = resources_by_default
initialize_variables = variables_initializer
gradients = gradients_v1

__all__ = [
    "AUTO_REUSE",
    "COMPILER_VERSION",
    "GIT_VERSION",
    "GRAPH_DEF_VERSION",
    "GRAPH_DEF_VERSION_MIN_CONSUMER",
    "GRAPH_DEF_VERSION_MIN_PRODUCER",
    "VERSION",
    "AttrValue",
    "ConfigProto",
    "DeviceSpec",
    "GPUOptions",
    "Graph",
    "GraphKeys",
    "GraphOptions",
    "GraphVariable",
    "InteractiveSession",
    "NodeDef",
    "Operation",
    "OptimizerOptions",
    "Print",
    "RunMetadata",
    "RunOptions",
    "Session",
    "Variable",
    "VariableScope",
    "add_to_collection",
    "add_to_collections",
    "all_variables",
    "assign",
    "assign_add",
    "assign_sub",
    "colocate_with",
    "cond",
    "config",
    "constant",
    "constant_initializer",
    "convert_to_tensor_or_indexed_slices",
    "debugging",
    "device",
    "disable_eager_execution",
    "disable_resource_variables",
    "disable_v2_behavior",
    "div",
    "enable_eager_execution",
    "enable_resource_variables",
    "enable_v2_behavior",
    "errors",
    "executing_eagerly_outside_functions",
    "get_collection",
    "get_collection_ref",
    "get_default_graph",
    "get_default_session",
    "get_local_variable",
    "get_logger",
    "get_variable",
    "get_variable_scope",
    "global_variables",
    "global_variables_initializer",
    "glorot_normal_initializer",
    "glorot_uniform_initializer",
    "gradients",
    "initialize_all_variables",
    "initialize_local_variables",
    "initialize_variables",
    "is_variable_initialized",
    "local_variables",
    "local_variables_initializer",
    "losses",
    "multinomial",
    "name_scope",
    "nn",
    "ones_initializer",
    "ones_like",
    "placeholder",
    "placeholder_with_default",
    "random",
    "random_normal_initializer",
    "random_uniform_initializer",
    "report_uninitialized_variables",
    "reset_default_graph",
    "resource_variables_enabled",
    "test",
    "to_double",
    "to_float",
    "to_int32",
    "to_int64",
    "trainable_variables",
    "truncated_normal_initializer",
    "variable_scope",
    "variables_initializer",
    "variance_scaling_initializer",
    "verify_tensor_all_finite",
    "where",
    "while_loop",
    "zeros_initializer",
]


def __getattr__(name: str) -> Any:
    package: Any = sys.modules["allotment.tf"]
    made = ASSERTIONS.get(name) or SCATTERS.get(name) or NAMESPACES.get(name)
    if made is not None:
        return made
    if name in _MODULES:
        return import_module(f"allotment.tf.compat.v1.{name}")
    if name in MOVED or name in package.__all__:
        path = MOVED.get(name, name).split(".")
        return as_in_1(path[-1], functools.reduce(getattr, path, package))
    raise missing_name_error(__name__, name, __dir__())


#: Namespaces that are imported when they are first used.
_MODULES = frozenset({"data", "layers", "logging", "train"})


def __dir__() -> list[str]:
    return sorted({*__all__, *ASSERTIONS, *SCATTERS, *MOVED, *_MODULES, *sys.modules["allotment.tf"].__all__})


refuse_other_names(__name__)

"""TensorFlow's API over the devices and pools of ``allotment``: operations, gradients, graphs, strategies.

``import allotment.tf as tf`` above a program that uses TensorFlow; ``allotment.tf.v1`` for programs of TensorFlow 1.

Imports and names, nothing else; long because each public name stands here twice.
"""

from typing import TYPE_CHECKING

from allotment.devices.device_spec import DeviceSpec
from allotment.devices.placement import device
from allotment.tf import (
    bitwise,
    compat,
    config,
    data,
    debugging,
    distribute,
    dtypes,
    errors,
    initializers,
    linalg,
    math,
    nest,
    nn,
    random,
    strings,
    sysconfig,
    test,
    train,
    version,
)
from allotment.tf.aggregation import AggregationMethod, VariableAggregation, VariableSynchronization
from allotment.tf.compat.logging import get_logger
from allotment.tf.config import gpu
from allotment.tf.custom_gradient import custom_gradient, grad_pass_through, recompute_grad
from allotment.tf.dtypes import (
    DType,
    as_dtype,
    bool,
    complex64,
    complex128,
    double,
    float16,
    float32,
    float64,
    half,
    int8,
    int16,
    int32,
    int64,
    string,
    uint8,
    uint16,
    uint32,
    uint64,
)
from allotment.tf.function import function
from allotment.tf.gradient_tape import GradientTape
from allotment.tf.graph.gradients import gradients
from allotment.tf.graph.graph import Graph
from allotment.tf.graph.node import Operation
from allotment.tf.missing_names import missing, refuse_other_names
from allotment.tf.module import Module
from allotment.tf.ops import operators as _operators  # noqa: F401 - gives tensors their operators
from allotment.tf.ops.array import (
    bitcast,
    cast,
    ensure_shape,
    executing_eagerly,
    get_static_value,
    identity,
    is_tensor,
    ones_like,
    rank,
    saturate_cast,
    shape,
    shape_n,
    size,
    stop_gradient,
    zeros_like,
)
from allotment.tf.ops.assertions import Assert, assert_equal, assert_greater, assert_less
from allotment.tf.ops.comparison import equal, greater, greater_equal, less, less_equal, not_equal
from allotment.tf.ops.complex_numbers import complex
from allotment.tf.ops.control import (
    case,
    cond,
    control_dependencies,
    group,
    no_op,
    switch_case,
    timestamp,
    while_loop,
)
from allotment.tf.ops.control import tuple_of as tuple
from allotment.tf.ops.creation import constant, convert_to_tensor, fill, ones, reshape, zeros
from allotment.tf.ops.division import divide, truediv, truncatediv, truncatemod
from allotment.tf.ops.division import real_divide as realdiv
from allotment.tf.ops.einsum import einsum
from allotment.tf.ops.extremes import argmax, argmin
from allotment.tf.ops.gathering import boolean_mask, gather, gather_nd, where
from allotment.tf.ops.guarded import scalar_mul
from allotment.tf.ops.initializers import (
    constant_initializer,
    ones_initializer,
    random_normal_initializer,
    random_uniform_initializer,
    zeros_initializer,
)
from allotment.tf.ops.joining import concat, split, stack, unstack
from allotment.tf.ops.layout import expand_dims, reverse, reverse_sequence, roll, squeeze, transpose
from allotment.tf.ops.logical import logical_and, logical_not, logical_or
from allotment.tf.ops.mapping import foldl, foldr, map_fn, scan
from allotment.tf.ops.math import (
    abs,
    add,
    clip_by_value,
    maximum,
    minimum,
    multiply,
    negative,
    pow,
    sign,
    square,
    subtract,
)
from allotment.tf.ops.name_scopes import get_current_name_scope, name_scope
from allotment.tf.ops.norms import clip_by_global_norm, clip_by_norm
from allotment.tf.ops.partition import (
    dynamic_partition,
    dynamic_stitch,
    histogram_fixed_width,
    histogram_fixed_width_bins,
    identity_n,
    unravel_index,
)
from allotment.tf.ops.printing import print_ as print
from allotment.tf.ops.products import matmul, tensordot
from allotment.tf.ops.real import (
    acos,
    acosh,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    cos,
    cosh,
    exp,
    floor,
    round,
    sigmoid,
    sin,
    sinh,
    sqrt,
    tan,
    tanh,
)
from allotment.tf.ops.reduce import (
    reduce_all,
    reduce_any,
    reduce_max,
    reduce_mean,
    reduce_min,
    reduce_prod,
    reduce_sum,
)
from allotment.tf.ops.repetition import (
    broadcast_dynamic_shape,
    broadcast_static_shape,
    broadcast_to,
    meshgrid,
    pad,
    repeat,
    tile,
)
from allotment.tf.ops.scan import cumsum
from allotment.tf.ops.scattering import (
    scatter_nd,
    tensor_scatter_nd_add,
    tensor_scatter_nd_max,
    tensor_scatter_nd_min,
    tensor_scatter_nd_sub,
    tensor_scatter_nd_update,
)
from allotment.tf.ops.sequences import eye, linspace, one_hot, range, sequence_mask
from allotment.tf.ops.shape_assertions import assert_rank
from allotment.tf.ops.slicing import slice_ as slice
from allotment.tf.ops.slicing import strided_slice
from allotment.tf.ops.sorting import argsort, searchsorted, sort, unique, unique_with_counts
from allotment.tf.ops.statistics import norm, reduce_logsumexp
from allotment.tf.ops.sums import add_n
from allotment.tf.ops.texts import as_string
from allotment.tf.tensor import Tensor
from allotment.tf.tensor_shape import TensorShape
from allotment.tf.tensor_spec import TensorSpec
from allotment.tf.unconnected_gradients import UnconnectedGradients
from allotment.tf.variable import Variable

#: TensorFlow's, for programs that look at it; that of this package is ``allotment.__version__``.
__version__ = version.VERSION

#: A new axis of length 1, in an index.
newaxis = None

if TYPE_CHECKING:
    from allotment.tf import keras
    from allotment.tf.keras import losses, optimizers
else:

    def __getattr__(name):
        """Import Keras when it is asked for: programs without models need not wait for it."""
        from importlib import import_module

        if name == "keras":
            return import_module("allotment.tf.keras")
        if name in ("losses", "optimizers"):
            return import_module(f"allotment.tf.keras.{name}")
        raise missing(__name__, name, __all__)

    refuse_other_names(
        *(
            bitwise,
            compat,
            config,
            config.experimental,
            config.optimizer,
            config.threading,
            data,
            data.experimental,
        ),
        *(
            debugging,
            distribute,
            distribute.experimental,
            errors,
            initializers,
            linalg,
            math,
            nest,
            nn,
            random,
        ),
        *(strings, sysconfig, test, test.experimental, train, version),
    )


__all__ = [
    "AggregationMethod",
    "Assert",
    "DType",
    "DeviceSpec",
    "GradientTape",
    "Graph",
    "Module",
    "Operation",
    "Tensor",
    "TensorShape",
    "TensorSpec",
    "UnconnectedGradients",
    "Variable",
    "VariableAggregation",
    "VariableSynchronization",
    "__version__",
    "abs",
    "acos",
    "acosh",
    "add",
    "add_n",
    "argmax",
    "argmin",
    "argsort",
    "as_dtype",
    "as_string",
    "asin",
    "asinh",
    "assert_equal",
    "assert_greater",
    "assert_less",
    "assert_rank",
    "atan",
    "atan2",
    "atanh",
    "bitcast",
    "bitwise",
    "bool",
    "boolean_mask",
    "broadcast_dynamic_shape",
    "broadcast_static_shape",
    "broadcast_to",
    "case",
    "cast",
    "clip_by_global_norm",
    "clip_by_norm",
    "clip_by_value",
    "compat",
    "complex",
    "complex64",
    "complex128",
    "concat",
    "cond",
    "config",
    "constant",
    "constant_initializer",
    "control_dependencies",
    "convert_to_tensor",
    "cos",
    "cosh",
    "cumsum",
    "custom_gradient",
    "data",
    "debugging",
    "device",
    "distribute",
    "divide",
    "double",
    "dtypes",
    "dynamic_partition",
    "dynamic_stitch",
    "einsum",
    "ensure_shape",
    "equal",
    "errors",
    "executing_eagerly",
    "exp",
    "expand_dims",
    "eye",
    "fill",
    "float16",
    "float32",
    "float64",
    "floor",
    "foldl",
    "foldr",
    "function",
    "gather",
    "gather_nd",
    "get_current_name_scope",
    "get_logger",
    "get_static_value",
    "gpu",
    "grad_pass_through",
    "gradients",
    "greater",
    "greater_equal",
    "group",
    "half",
    "histogram_fixed_width",
    "histogram_fixed_width_bins",
    "identity",
    "identity_n",
    "initializers",
    "int8",
    "int16",
    "int32",
    "int64",
    "is_tensor",
    "keras",
    "less",
    "less_equal",
    "linalg",
    "linspace",
    "logical_and",
    "logical_not",
    "logical_or",
    "losses",
    "map_fn",
    "math",
    "matmul",
    "maximum",
    "meshgrid",
    "minimum",
    "multiply",
    "name_scope",
    "negative",
    "nest",
    "newaxis",
    "nn",
    "no_op",
    "norm",
    "not_equal",
    "one_hot",
    "ones",
    "ones_initializer",
    "ones_like",
    "optimizers",
    "pad",
    "pow",
    "print",
    "random",
    "random_normal_initializer",
    "random_uniform_initializer",
    "range",
    "rank",
    "realdiv",
    "recompute_grad",
    "reduce_all",
    "reduce_any",
    "reduce_logsumexp",
    "reduce_max",
    "reduce_mean",
    "reduce_min",
    "reduce_prod",
    "reduce_sum",
    "repeat",
    "reshape",
    "reverse",
    "reverse_sequence",
    "roll",
    "round",
    "saturate_cast",
    "scalar_mul",
    "scan",
    "scatter_nd",
    "searchsorted",
    "sequence_mask",
    "shape",
    "shape_n",
    "sigmoid",
    "sign",
    "sin",
    "sinh",
    "size",
    "slice",
    "sort",
    "split",
    "sqrt",
    "square",
    "squeeze",
    "stack",
    "stop_gradient",
    "strided_slice",
    "string",
    "strings",
    "subtract",
    "switch_case",
    "sysconfig",
    "tan",
    "tanh",
    "tensor_scatter_nd_add",
    "tensor_scatter_nd_max",
    "tensor_scatter_nd_min",
    "tensor_scatter_nd_sub",
    "tensor_scatter_nd_update",
    "tensordot",
    "test",
    "tile",
    "timestamp",
    "train",
    "transpose",
    "truediv",
    "truncatediv",
    "truncatemod",
    "tuple",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "unique",
    "unique_with_counts",
    "unravel_index",
    "unstack",
    "version",
    "where",
    "while_loop",
    "zeros",
    "zeros_initializer",
    "zeros_like",
]

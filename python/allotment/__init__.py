"""A device-memory manager, and TensorFlow's device configuration and eager operations on top of it.

``import allotment as tf`` above a program that uses TensorFlow's eager operations and device controls.

Imports and names, nothing else; long because each public name stands here twice.
"""

from typing import TYPE_CHECKING

from allotment import (
    bitwise,
    compat,
    config,
    data,
    debugging,
    distribute,
    dtypes,
    errors,
    experimental,
    initializers,
    linalg,
    math,
    nest,
    nn,
    random,
    strings,
    sysconfig,
    test,
    testing,
    train,
    version,
)
from allotment._core import (
    Advice,
    Allocation,
    Chunk,
    Explanation,
    HostMemory,
    InvalidFreeError,
    KeptRegion,
    MemoryDamageError,
    OutOfMemoryError,
    OwnerGroup,
    Pool,
    PoolStats,
    Region,
    Scope,
    SizeGroup,
    Snapshot,
    Splitter,
    __version__,
)
from allotment.aggregation import AggregationMethod, VariableAggregation, VariableSynchronization
from allotment.compat.logging import get_logger
from allotment.config import gpu
from allotment.custom_gradient import custom_gradient, grad_pass_through, recompute_grad
from allotment.device_spec import DeviceSpec
from allotment.devices.placement import device
from allotment.dtypes import (
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
from allotment.function import function
from allotment.gradient_tape import GradientTape
from allotment.graph.gradients import gradients
from allotment.graph.graph import Graph
from allotment.graph.node import Operation
from allotment.missing_names import missing, refuse_other_names
from allotment.module import Module
from allotment.ops import operators as _operators  # noqa: F401 - gives tensors their operators
from allotment.ops.array import (
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
from allotment.ops.assertions import Assert, assert_equal, assert_greater, assert_less
from allotment.ops.comparison import equal, greater, greater_equal, less, less_equal, not_equal
from allotment.ops.complex_numbers import complex
from allotment.ops.control import (
    case,
    cond,
    control_dependencies,
    group,
    no_op,
    switch_case,
    timestamp,
    while_loop,
)
from allotment.ops.control import tuple_of as tuple
from allotment.ops.creation import constant, convert_to_tensor, fill, ones, reshape, zeros
from allotment.ops.division import divide, truediv, truncatediv, truncatemod
from allotment.ops.division import real_divide as realdiv
from allotment.ops.einsum import einsum
from allotment.ops.extremes import argmax, argmin
from allotment.ops.gathering import boolean_mask, gather, gather_nd, where
from allotment.ops.guarded import scalar_mul
from allotment.ops.initializers import (
    constant_initializer,
    ones_initializer,
    random_normal_initializer,
    random_uniform_initializer,
    zeros_initializer,
)
from allotment.ops.joining import concat, split, stack, unstack
from allotment.ops.layout import expand_dims, reverse, reverse_sequence, roll, squeeze, transpose
from allotment.ops.logical import logical_and, logical_not, logical_or
from allotment.ops.mapping import foldl, foldr, map_fn, scan
from allotment.ops.math import (
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
from allotment.ops.name_scopes import get_current_name_scope, name_scope
from allotment.ops.norms import clip_by_global_norm, clip_by_norm
from allotment.ops.partition import (
    dynamic_partition,
    dynamic_stitch,
    histogram_fixed_width,
    histogram_fixed_width_bins,
    identity_n,
    unravel_index,
)
from allotment.ops.printing import print_ as print
from allotment.ops.products import matmul, tensordot
from allotment.ops.real import (
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
from allotment.ops.reduce import (
    reduce_all,
    reduce_any,
    reduce_max,
    reduce_mean,
    reduce_min,
    reduce_prod,
    reduce_sum,
)
from allotment.ops.repetition import (
    broadcast_dynamic_shape,
    broadcast_static_shape,
    broadcast_to,
    meshgrid,
    pad,
    repeat,
    tile,
)
from allotment.ops.scan import cumsum
from allotment.ops.scattering import (
    scatter_nd,
    tensor_scatter_nd_add,
    tensor_scatter_nd_max,
    tensor_scatter_nd_min,
    tensor_scatter_nd_sub,
    tensor_scatter_nd_update,
)
from allotment.ops.sequences import eye, linspace, one_hot, range, sequence_mask
from allotment.ops.shape_assertions import assert_rank
from allotment.ops.slicing import slice_ as slice
from allotment.ops.slicing import strided_slice
from allotment.ops.sorting import argsort, searchsorted, sort, unique, unique_with_counts
from allotment.ops.statistics import norm, reduce_logsumexp
from allotment.ops.sums import add_n
from allotment.ops.texts import as_string
from allotment.source import Source
from allotment.tensor import Tensor
from allotment.tensor_shape import TensorShape
from allotment.tensor_spec import TensorSpec
from allotment.unconnected_gradients import UnconnectedGradients
from allotment.variable import Variable

#: A new axis of length 1, in an index.
newaxis = None

if TYPE_CHECKING:
    from allotment import keras
    from allotment.keras import losses, optimizers
else:

    def __getattr__(name):
        """Import Keras when it is asked for: programs without models need not wait for it."""
        from importlib import import_module

        if name == "keras":
            return import_module("allotment.keras")
        if name in ("losses", "optimizers"):
            return import_module(f"allotment.keras.{name}")
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
    "Advice",
    "AggregationMethod",
    "Allocation",
    "Assert",
    "Chunk",
    "DType",
    "DeviceSpec",
    "Explanation",
    "GradientTape",
    "Graph",
    "HostMemory",
    "InvalidFreeError",
    "KeptRegion",
    "MemoryDamageError",
    "Module",
    "Operation",
    "OutOfMemoryError",
    "OwnerGroup",
    "Pool",
    "PoolStats",
    "Region",
    "Scope",
    "SizeGroup",
    "Snapshot",
    "Source",
    "Splitter",
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
    "experimental",
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
    "testing",
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

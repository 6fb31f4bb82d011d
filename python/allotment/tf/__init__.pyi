# The names of the package; `__init__.py` loads each from here when it is first used.
#
# Longer than 300 lines: a line for each name of one namespace.
from . import (
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
    keras,
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
from .compat.v1.logging import (
    get_logger,
)
from .config import (
    gpu,
)
from .devices import (
    DeviceSpec,
    device,
)
from .differentiation.custom_gradients import (
    custom_gradient,
    grad_pass_through,
    recompute_grad,
)
from .differentiation.gradient_tape import (
    GradientTape,
)
from .differentiation.unconnected_gradients import (
    UnconnectedGradients,
)
from .graph.gradients import (
    gradients,
)
from .graph.graph import (
    Graph,
)
from .graph.nodes.node import (
    Operation,
)
from .keras import (
    losses,
    optimizers,
)
from .module import (
    Module,
)
from .names.builtin_names import (
    print,
    slice,
    tuple,
)
from .ops.array.array import (
    bitcast,
    cast,
    ensure_shape,
    executing_eagerly,
    get_static_value,
    identity,
    identity_n,
    is_tensor,
    saturate_cast,
    stop_gradient,
)
from .ops.array.constants import (
    constant,
    convert_to_tensor,
)
from .ops.array.creation import (
    fill,
    ones,
    ones_like,
    zeros,
    zeros_like,
)
from .ops.array.joining import (
    concat,
    stack,
)
from .ops.array.layout import (
    expand_dims,
    reshape,
    squeeze,
    transpose,
)
from .ops.array.padding import (
    pad,
)
from .ops.array.reordering import (
    reverse,
    reverse_sequence,
    roll,
)
from .ops.array.repetition import (
    broadcast_dynamic_shape,
    broadcast_static_shape,
    broadcast_to,
    meshgrid,
    repeat,
    tile,
)
from .ops.array.shapes import (
    rank,
    shape,
    shape_n,
    size,
)
from .ops.array.splitting import (
    split,
    unstack,
)
from .ops.control.assertions import (
    Assert,
    assert_equal,
    assert_greater,
    assert_less,
)
from .ops.control.control import (
    case,
    cond,
    control_dependencies,
    group,
    no_op,
    switch_case,
    timestamp,
    while_loop,
)
from .ops.control.mapping import (
    foldl,
    foldr,
    map_fn,
    scan,
)
from .ops.control.shape_assertions import (
    assert_rank,
)
from .ops.indexing.extremes import (
    argmax,
    argmin,
)
from .ops.indexing.gathering import (
    gather,
    gather_nd,
)
from .ops.indexing.indexed_slices import (
    IndexedSlices,
)
from .ops.indexing.indicators import (
    one_hot,
    sequence_mask,
)
from .ops.indexing.masking import (
    boolean_mask,
    where,
)
from .ops.indexing.partition import (
    dynamic_partition,
    dynamic_stitch,
    unravel_index,
)
from .ops.indexing.scattering import (
    scatter_nd,
    tensor_scatter_nd_add,
    tensor_scatter_nd_max,
    tensor_scatter_nd_min,
    tensor_scatter_nd_sub,
    tensor_scatter_nd_update,
)
from .ops.indexing.searching import (
    searchsorted,
    unique,
    unique_with_counts,
)
from .ops.indexing.slicing import (
    strided_slice,
)
from .ops.indexing.sorting import (
    argsort,
    sort,
)
from .ops.linalg.einsum import (
    einsum,
)
from .ops.linalg.matrices import (
    eye,
)
from .ops.linalg.products import (
    matmul,
)
from .ops.linalg.tensor_products import (
    tensordot,
)
from .ops.math.arithmetic import (
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
from .ops.math.comparison import (
    equal,
    greater,
    greater_equal,
    less,
    less_equal,
    not_equal,
)
from .ops.math.complex_numbers import (
    complex,
)
from .ops.math.division import (
    divide,
    realdiv,
    truediv,
    truncatediv,
    truncatemod,
)
from .ops.math.guarded import (
    scalar_mul,
)
from .ops.math.logical import (
    logical_and,
    logical_not,
    logical_or,
)
from .ops.math.real import (
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
from .ops.math.sequences import (
    linspace,
    range,
)
from .ops.name_scopes import (
    get_current_name_scope,
    name_scope,
)
from .ops.random.initializers import (
    constant_initializer,
    ones_initializer,
    random_normal_initializer,
    random_uniform_initializer,
    zeros_initializer,
)
from .ops.reduction.histograms import (
    histogram_fixed_width,
    histogram_fixed_width_bins,
)
from .ops.reduction.norms import (
    clip_by_global_norm,
    clip_by_norm,
)
from .ops.reduction.reduce import (
    reduce_all,
    reduce_any,
    reduce_max,
    reduce_mean,
    reduce_min,
    reduce_prod,
    reduce_sum,
)
from .ops.reduction.scan import (
    cumsum,
)
from .ops.reduction.statistics import (
    norm,
    reduce_logsumexp,
)
from .ops.reduction.sums import (
    add_n,
)
from .ops.text.number_texts import (
    as_string,
)
from .tensors.dtype import (
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
from .tensors.tensor import (
    Tensor,
)
from .tensors.tensor_shape import (
    TensorShape,
)
from .tensors.tensor_spec import (
    TensorSpec,
)
from .tf_function import (
    function,
)
from .variables.aggregation import (
    AggregationMethod,
    VariableAggregation,
    VariableSynchronization,
)
from .variables.variable import (
    Variable,
)

__version__: str
newaxis: None

__all__ = [
    "AggregationMethod",
    "Assert",
    "DType",
    "DeviceSpec",
    "GradientTape",
    "Graph",
    "IndexedSlices",
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

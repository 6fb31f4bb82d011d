"""Shapes of operations that keep the shape of an input, or broadcast several: most work on each element by itself."""

from typing import Any

from allotment.tf.ops.inference.shape_functions import Inference, Output, shape_function
from allotment.tf.tensors.dtype import bool as bool_
from allotment.tf.tensors.dtype import complex64, complex128, float64, string


@shape_function(
    "_EagerConst",
    "Abs",
    "Acos",
    "Acosh",
    "Asin",
    "Asinh",
    "Assign",
    "AssignVariableOp",
    "Atan",
    "Atanh",
    "Ceil",
    "CheckNumerics",
    "Conj",
    "Cos",
    "Cosh",
    "Cumprod",
    "Cumsum",
    "CumulativeLogsumexp",
    "Digamma",
    "Elu",
    "Erf",
    "Erfc",
    "Erfinv",
    "Exp",
    "Expm1",
    "Floor",
    "Identity",
    "InitializedValue",
    "Invert",
    "IsFinite",
    "IsInf",
    "IsNan",
    "LeakyRelu",
    "Lgamma",
    "MatrixBandPart",
    "Log",
    "Log1p",
    "LogicalNot",
    "Ndtri",
    "Neg",
    "OneHotLike",
    "OnesLike",
    "PlaceholderWithDefault",
    "RandomShuffle",
    "ReadVariableOp",
    "Reciprocal",
    "Relu",
    "Relu6",
    "Rint",
    "Round",
    "Rsqrt",
    "Selu",
    "Sigmoid",
    "Sign",
    "Sin",
    "Sinh",
    "Softplus",
    "Softsign",
    "Sqrt",
    "Square",
    "StopGradient",
    "StringLower",
    "StringStrip",
    "StringUpper",
    "Tan",
    "Tanh",
    "ZerosLike",
)
def unchanged(c: Inference, *args: Any, **kwargs: Any) -> list[Output]:
    """One output of the shape of the input."""
    first = c.inputs[0]
    return [(c.row.result or first._dtype, first._shape)]


@shape_function("ComplexAbs", "Real", "Imag", "Angle")
def _real(c: Inference) -> list[Output]:
    return c.one(c.inputs[0]._shape, c.dtype().real_dtype)


@shape_function("Cast", "SaturateCast", "StringToNumber")
def _cast(c: Inference, dtype: Any) -> list[Output]:
    return c.one(c.inputs[0]._shape, dtype)


@shape_function(
    "Add",
    "AddV2",
    "Atan2",
    "BitwiseAnd",
    "BitwiseOr",
    "BitwiseXor",
    "DivNoNan",
    "Equal",
    "FloorDiv",
    "FloorMod",
    "Greater",
    "GreaterEqual",
    "LeftShift",
    "Less",
    "LessEqual",
    "LogicalAnd",
    "LogicalOr",
    "Maximum",
    "Minimum",
    "Mul",
    "MulNoNan",
    "NextAfter",
    "NotEqual",
    "Polygamma",
    "Pow",
    "RandomGammaGrad",
    "RealDiv",
    "RightShift",
    "SquaredDifference",
    "Sub",
    "TruncateDiv",
    "TruncateMod",
    "Xdivy",
    "Xlog1py",
    "Xlogy",
    "Zeta",
)
def broadcasting(c: Inference) -> list[Output]:
    """One output of the shape of two inputs that are broadcast to each other."""
    first = c.inputs[0]
    dims = c.broadcast(first._shape._dims, c.inputs[1]._shape._dims)
    return [(c.row.result or first._dtype, first._shape if dims is first._shape._dims else dims)]


@shape_function("Complex")
def _complex(c: Inference) -> list[Output]:
    dtype = complex128 if c.dtype() is float64 else complex64
    return c.one(c.broadcast(c.shape(0), c.shape(1)), dtype)


@shape_function("SelectV2")
def _select(c: Inference) -> list[Output]:
    dims = c.broadcast(c.shape(1), c.shape(2))
    return c.one(c.broadcast(c.shape(0), dims), c.dtype(1))


@shape_function(
    "AddN",
    "EluGrad",
    "LeakyReluGrad",
    "ReciprocalGrad",
    "Relu6Grad",
    "ReluGrad",
    "RsqrtGrad",
    "SeluGrad",
    "SqrtGrad",
)
def _equal_shapes(c: Inference, *args: Any) -> list[Output]:
    return c.one(c.all_merged(c.shapes()))


@shape_function("Select")
def _select_rows(c: Inference) -> list[Output]:
    dims, condition = c.merged(c.shape(1), c.shape(2)), c.shape(0)
    if dims and condition and len(condition) == 1 < len(dims):
        c.same(condition[0], dims[0])
    elif condition and (dims is not None or len(condition) > 1):
        dims = c.merged(dims, condition)
    return c.one(dims, c.dtype(1))


@shape_function("StringLength")
def _text_length(c: Inference, unit: str) -> list[Output]:
    from allotment.tf.tensors.dtype import int32

    return c.one(c.inputs[0]._shape, int32)


@shape_function("AsString")
def _as_string(c: Inference, *args: Any) -> list[Output]:
    return c.one(c.inputs[0]._shape, string)


@shape_function("VarIsInitializedOp")
def _is_initialized(c: Inference) -> list[Output]:
    return c.one((), bool_)


__all__ = ["broadcasting", "unchanged"]

"""The operations whose results do not change with their inputs, or change in steps: constants for gradients."""

from allotment.ops import random, stateless, text_parts, texts  # noqa: F401 - they enter the operations
from allotment.ops.differentiation import not_differentiable

# Truths and bits.
not_differentiable(
    "Equal", "NotEqual", "Less", "LessEqual", "Greater", "GreaterEqual", "IsNan", "IsInf", "IsFinite"
)
not_differentiable("LogicalAnd", "LogicalOr", "LogicalNot")
not_differentiable("BitwiseAnd", "BitwiseOr", "BitwiseXor", "Invert", "LeftShift", "RightShift")

# Whole numbers: places, counts, permutations.
not_differentiable("LowerBound", "UpperBound", "UnravelIndex", "InvertPermutation")
not_differentiable("HistogramFixedWidth", "HistogramFixedWidthBins")

# Chance.
not_differentiable("RandomUniform", "RandomUniformInt", "RandomStandardNormal", "TruncatedNormal")
not_differentiable("RandomShuffle", "Multinomial")
not_differentiable(
    "StatelessRandomGetKeyCounter",
    "StatelessRandomUniformV2",
    "StatelessRandomUniformIntV2",
    "StatelessRandomUniformFullIntV2",
    "StatelessRandomNormalV2",
    "StatelessTruncatedNormalV2",
    "StatelessMultinomial",
    "StatelessSplit",
    "StatelessFoldIn",
)

# Texts.
not_differentiable(
    "AsString",
    "PrintV2",
    "ReduceJoin",
    "StaticRegexFullMatch",
    "StaticRegexReplace",
    "StringFormat",
    "StringJoin",
    "StringLength",
    "StringLower",
    "StringStrip",
    "StringToNumber",
    "StringUpper",
    "Substr",
)

# Changes of variables, and the time.
not_differentiable(
    "AssignVariableOp",
    "AssignAddVariableOp",
    "AssignSubVariableOp",
    "ResourceScatterNdUpdate",
    "ResourceScatterNdAdd",
    "ResourceScatterNdSub",
    "ResourceStridedSliceAssign",
    "Timestamp",
)

__all__: list[str] = []

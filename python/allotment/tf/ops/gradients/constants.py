"""The operations whose results do not change with their inputs, or change in steps: constants for gradients."""

from allotment.tf.ops import (  # noqa: F401 - they enter the operations
    assert_op,
    patterns,
    random,
    row_scatters,
    stateless,
    text_parts,
    texts,
    updates,
)
from allotment.tf.ops.differentiation import not_differentiable

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

# Changes of variables, checks, data, and the time.
not_differentiable(
    "Assert",
    "AssignVariableOp",
    "AssignAddVariableOp",
    "AssignSubVariableOp",
    "IteratorGetNext",
    "IteratorV2",
    "MakeIterator",
    *(f"ResourceScatter{kind}" for kind in ("Add", "Div", "Max", "Min", "Mul", "Sub", "Update")),
    "ResourceScatterNdUpdate",
    "ResourceScatterNdAdd",
    "ResourceScatterNdSub",
    "ResourceStridedSliceAssign",
    "ResourceApplyAdagradV2",
    "ResourceApplyAdam",
    "ResourceApplyAdamWithAmsgrad",
    "ResourceApplyGradientDescent",
    "ResourceApplyKerasMomentum",
    "ResourceApplyKerasMovingAverage",
    "ResourceApplyKerasOverwrite",
    "ResourceApplyKerasWeightDecay",
    "ResourceApplyRMSProp",
    "Timestamp",
)

__all__: list[str] = []

"""The operations that are constants for gradients: their results do not depend on the inputs, or change in steps."""

from allotment.tf.ops.autodiff.differentiation import not_differentiable
from allotment.tf.ops.control import assert_op  # noqa: F401 - enters its operation, as those below do
from allotment.tf.ops.random import random, stateless  # noqa: F401
from allotment.tf.ops.text import text_parts, texts  # noqa: F401
from allotment.tf.ops.variables import row_scatters, slice_updates, updates  # noqa: F401

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
    "ResourceApplyKerasOverwrite",
    "ResourceApplyKerasWeightDecay",
    "ResourceApplyRMSProp",
    *(
        f"ResourceSparseApplyKeras{kind}"
        for kind in ("Adagrad", "Adam", "AdamWithAmsgrad", "GradientDescent", "Momentum", "RMSProp")
    ),
    "Timestamp",
)

__all__: list[str] = []

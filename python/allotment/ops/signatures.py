"""What TensorFlow's operations have as inputs, where the rows of our table differ (placement, sections 4.2, 5.4).

A row has the tensors that its function computes with; sizes, axes and shapes are its own arguments. TensorFlow
makes constants of those first, and a variable's handle and the constants count where inputs are numbered.
"""

from typing import Final

#: Operations with arguments that TensorFlow makes constants of, or that are constants there.
CONSTANT_ARGUMENTS: Final = frozenset(
    [
        "All",
        "Any",
        "ArgMax",
        "ArgMin",
        "BroadcastTo",
        "ConcatV2",
        "ConjugateTranspose",
        "Cumprod",
        "Cumsum",
        "DenseBincount",
        "EuclideanNorm",
        "ExpandDims",
        "GatherV2",
        "InTopKV2",
        "MatrixBandPart",
        "MatrixDiagPartV3",
        "MatrixDiagV3",
        "MatrixSetDiagV3",
        "Max",
        "Mean",
        "Min",
        "MirrorPad",
        "Multinomial",
        "OneHot",
        "Pad",
        "PadV2",
        "Prod",
        "RandomGamma",
        "RandomPoissonV2",
        "RandomStandardNormal",
        "RandomUniform",
        "RandomUniformInt",
        "Range",
        "Rank",
        "Repeat",
        "Reshape",
        "ReverseV2",
        "Roll",
        "SaturateCast",
        "ScatterNd",
        "SequenceMask",
        "Size",
        "Slice",
        "SoftmaxCrossEntropyWithLogits",
        "Split",
        "SplitV",
        "StridedSlice",
        "Sum",
        "Tile",
        "TopKV2",
        "Transpose",
        "TruncatedNormal",
        "UnsortedSegmentMax",
        "UnsortedSegmentMean",
        "UnsortedSegmentMin",
        "UnsortedSegmentProd",
        "UnsortedSegmentSqrtN",
        "UnsortedSegmentSum",
    ]
)

#: TensorFlow's numbers of the tensors of a row, the first tensor's first. None: it does not look at them.
INPUT_NUMBERS: Final[dict[str, tuple[int, ...]]] = {
    "AssignAddVariableOp": (1,),
    "AssignSubVariableOp": (1,),
    "AssignVariableOp": (1,),
    "OneHot": (2, 3, 0),
    "Rank": (),
    "ResourceScatterNdAdd": (2, 1),
    "ResourceScatterNdSub": (2, 1),
    "ResourceScatterNdUpdate": (2, 1),
    "ResourceStridedSliceAssign": (4,),
    "ScatterNd": (1, 0),
    "Size": (),
    "Split": (1,),
    **{f"TensorScatter{kind}": (0, 2, 1) for kind in ("Add", "Max", "Min", "Sub", "Update")},
}

"""The rows of the operation table that compute in host memory when a device's arrays are not NumPy's.

The rule: the executor copies the inputs of such a row to the host, computes there and copies the results to the device.
The placement log shows each copy, with the reason at the results'. No other row's kernel may leave the device.
"""

from typing import Final

_DRAWS: Final = "numbers are drawn by NumPy's generators, so that a seed means the same on every device"
_ZETA: Final = "SciPy calls its ufunc _zeta, under which CuPy has none"
_PRODUCT: Final = "CuPy has no multiply.at and no multiply.reduceat"

#: Why, by the name of the row.
HOST_ONLY: Final[dict[str, str]] = {
    **dict.fromkeys(
        (
            *("Multinomial", "RandomGamma", "RandomPoissonV2", "RandomShuffle", "RandomStandardNormal"),
            *("RandomUniform", "RandomUniformInt", "StatelessMultinomial", "StatelessRandomNormalV2"),
            *("StatelessRandomUniformFullIntV2", "StatelessRandomUniformIntV2", "StatelessRandomUniformV2"),
            *("StatelessTruncatedNormalV2", "TruncatedNormal"),
            *("StatelessFoldIn", "StatelessSplit"),
        ),
        _DRAWS,
    ),
    **dict.fromkeys(("Polygamma", "Zeta"), _ZETA),
    **dict.fromkeys(("SegmentProd", "UnsortedSegmentProd"), _PRODUCT),
}

_SIZE: Final = "the size of the result is one of the elements"
_CHECK: Final = "elements are checked, as a result for them would be wrong without a word"

#: The rows whose kernel reads elements on the way, so that the host waits for the device, and why.
READERS: Final[dict[str, str]] = {
    **dict.fromkeys(
        (
            *("ArgMax", "ArgMin"),
            *("FloorDiv", "FloorMod", "TruncateDiv", "TruncateMod"),
            *("MatrixTriangularSolve", "SelfAdjointEigV2", "Svd", "TopKV2", "UnsortedSegmentSum"),
            *("UnsortedSegmentMax", "UnsortedSegmentMin"),
        ),
        _CHECK,
    ),
    **dict.fromkeys(
        (
            *("DenseBincount", "DynamicStitch", "Range", "SequenceMask"),
            *("SegmentMax", "SegmentMean", "SegmentMin", "SegmentSum"),
        ),
        _SIZE,
    ),
    **dict.fromkeys(("MatrixExponential", "RandomGammaGrad"), "the elements say how many terms a series has"),
}

__all__ = ["HOST_ONLY", "READERS"]

"""The operation table: each row has a gradient, is a constant, or is one of a few that nobody can differentiate."""

from collections.abc import Sequence
from typing import Any

import pytest

import allotment.tf as tf
from allotment.tf.ops.autodiff.differentiation import CONSTANT, Call, gradient, not_differentiable
from allotment.tf.ops.table import GRADIENTS, OPERATIONS
from every_module import import_every_module
from support.tf.derivatives import flat, slope, taped
from support.tf.gradient_samples import samples

import_every_module()

#: Rows without a gradient. TensorFlow has none for these either.
UNKNOWN = {
    "Bitcast": "reads bytes as another type",
    "DenseBincount": "its weights have none in TensorFlow",
    "InitializedValue": "starts another variable, when nothing is trained yet",
    "RandomGammaGrad": "has none in TensorFlow",
    "RandomPoissonV2": "makes whole numbers by chance",
    "TruncateMod": "has none in TensorFlow, FloorMod has",
    "Unique": "picks elements and does not say which",
    "UniqueWithCounts": "picks elements and does not say which",
    "_EagerConst": "has no input",
}

#: Gradients that need a graph, or that are reached by derivatives of higher order alone.
ELSEWHERE = {"MaxPoolGradGrad", "PlaceholderWithDefault", "RandomGamma", "ReadVariableOp", "SaturateCast"}


def test_each_operation_has_a_gradient_or_a_reason_to_have_none() -> None:
    without = {name for name in OPERATIONS if name not in GRADIENTS}
    assert without == set(UNKNOWN)


def test_each_gradient_is_compared_with_differences(monkeypatch: pytest.MonkeyPatch) -> None:
    back, seen = Call.back, set()

    def watched(self: Call, gradients: Sequence[Any]) -> list[Any]:
        seen.add(self.row.name)
        return back(self, gradients)

    monkeypatch.setattr(Call, "back", watched)
    # What `test_gradients` compares.
    for function, arrays in samples().values():
        taped(slope(lambda *x, function=function: [each * each for each in flat(function(*x))]), arrays)
    with_one = {name for name, entry in GRADIENTS.items() if entry is not CONSTANT}
    assert with_one - seen == ELSEWHERE


def test_a_gradient_is_entered_once_and_for_an_operation_that_exists() -> None:
    with pytest.raises(ValueError, match="operation Mul has a gradient already"):
        gradient("Mul")(lambda call, upstream: upstream)
    with pytest.raises(ValueError, match="operation Mul has a gradient already"):
        not_differentiable("Mul")
    assert set(GRADIENTS) <= set(OPERATIONS)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: tf.unique(x)[0],
        lambda x: tf.truncatemod(x, 2.0),
        lambda x: tf.bitcast(x, tf.float32),
        lambda x: tf.math.bincount([0, 1], weights=x),
    ],
)
def test_an_operation_without_a_gradient_says_so_when_it_is_on_the_way(function: Any) -> None:
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = tf.reduce_sum(function(x * 2)) + tf.reduce_sum(x)
        z = tf.reduce_sum(tf.stop_gradient(function(x))) + tf.reduce_sum(x)
    with pytest.raises(LookupError, match=r"gradient registry has no entry for: .*`tf.stop_gradient`"):
        tape.gradient(y, x)
    assert tape.gradient(z, x).numpy().tolist() == [1, 1]

"""Metrics: what they make of several batches, and which one a name means."""

from typing import Any

import numpy as np
import pytest

from allotment.tf import keras
from allotment.tf.keras import losses, metrics
from allotment.tf.keras.losses import lookup as loss_lookup
from allotment.tf.keras.metrics import lookup as metric_lookup
from allotment.tf.ops.array.constants import constant
from support.tf.tensors import check

draw = np.random.default_rng(0)
CLASSES = draw.integers(0, 3, 20)
SHARES = draw.dirichlet(np.ones(3), 20)
TRUE, PREDICTED = draw.standard_normal((2, 20, 2))
TWO = draw.integers(0, 2, (20, 1)), draw.uniform(0, 1, (20, 1))

CASES: dict[str, tuple[Any, Any, Any, Any]] = {
    "mse": (metrics.MeanSquaredError(), TRUE, PREDICTED, ((TRUE - PREDICTED) ** 2).mean(1)),
    "mae": (metrics.MeanAbsoluteError(), TRUE, PREDICTED, abs(TRUE - PREDICTED).mean(1)),
    "accuracy": (
        metrics.Accuracy(),
        CLASSES[:, None],
        SHARES.argmax(1)[:, None],
        SHARES.argmax(1) == CLASSES,
    ),
    "binary": (metrics.BinaryAccuracy(threshold=0.3), *TWO, (TWO[0] == (TWO[1] > 0.3))[:, 0]),
    "categorical": (
        metrics.CategoricalAccuracy(),
        np.eye(3)[CLASSES],
        SHARES,
        SHARES.argmax(1) == CLASSES,
    ),
    "sparse": (metrics.SparseCategoricalAccuracy(), CLASSES, SHARES, SHARES.argmax(1) == CLASSES),
    "crossentropy": (
        metrics.SparseCategoricalCrossentropy(),
        CLASSES,
        SHARES,
        -np.log(SHARES[np.arange(20), CLASSES]),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_metrics_are_means_over_all_batches(case: str) -> None:
    metric, true, predicted, values = CASES[case]
    metric.reset_state()
    assert metric.result() == 0
    for rows in (slice(0, 3), slice(3, 20)):
        metric.update_state(true[rows], constant(predicted[rows]))
    check(metric.result(), values.mean(), "float32", rtol=1e-5)
    metric.reset_state()
    weights = draw.uniform(0, 1, 20)
    found = metric(true, constant(predicted), sample_weight=weights)
    check(found, (values * weights).sum() / weights.sum(), "float32", rtol=1e-5)


def test_the_root_of_a_mean() -> None:
    metric = metrics.RootMeanSquaredError()
    metric.update_state(TRUE[:3], constant(PREDICTED[:3]))
    metric.update_state(TRUE[3:], constant(PREDICTED[3:]))
    check(metric.result(), ((TRUE - PREDICTED) ** 2).mean() ** 0.5, "float32", rtol=1e-5)


def test_means_and_sums_of_values() -> None:
    mean, total = metrics.Mean(), metrics.Sum()
    for metric in (mean, total):
        metric.update_state([1.0, 2.0, 6.0])
        metric.update_state(5, sample_weight=2)
    check(mean.result(), (9 + 10) / 5, "float32")
    check(total.result(), 19, "float32")
    wide = metrics.Mean(dtype="float64")
    check(wide(constant(1 / 3, "float64")), 1 / 3, "float64")


def test_sums_do_not_lose_small_values() -> None:
    metric = metrics.Sum(dtype="float64")
    metric.update_state(constant(1e8, "float64"))
    for _ in range(1000):
        metric.update_state(constant(0.5, "float64"))
    assert float(metric.result()) == 1e8 + 500


class Largest(metrics.Metric):
    """The sum of the largest predictions."""

    def __init__(self, name: str = "largest") -> None:
        super().__init__(name=name)
        self.total = self.add_weight(name="total")

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        self.total.assign_add(float(np.max(np.asarray(y_pred))))

    def result(self) -> Any:
        return self.total.value()


def test_a_metric_of_ones_own() -> None:
    metric = Largest()
    assert [each.name for each in metric.variables] == ["largest/total:0"]
    metric.update_state(None, [1.0, 3.0])
    check(metric(None, [2.0, 1.0]), 5, "float32")
    metric.reset_state()
    check(metric.result(), 0, "float32")


@pytest.mark.parametrize(
    ("y", "units", "wanted"),
    [
        (np.array([[0], [1]]), 1, metrics.BinaryAccuracy),
        (np.array([0, 1]), 3, metrics.SparseCategoricalAccuracy),
        (np.array([[0], [1]]), 3, metrics.SparseCategoricalAccuracy),
        (np.eye(3)[:2], 3, metrics.CategoricalAccuracy),
    ],
)
@pytest.mark.parametrize("name", ["accuracy", "acc"])
def test_which_accuracy_is_meant_depends_on_the_shapes(y: Any, units: int, wanted: type, name: str) -> None:
    predicted = np.ones((2, units))
    metric = metric_lookup.for_shapes(name, y, predicted)
    assert isinstance(metric, wanted)
    assert metric.name == name
    entropy = loss_lookup.for_shapes("crossentropy", y, predicted)
    kind = getattr(losses, wanted.__name__.replace("Accuracy", "Crossentropy"))
    values = constant(y), constant(predicted / max(units, 2), "float32")
    check(entropy(*values), float(kind()(*values)), "float32")


def test_metrics_by_name_keep_it() -> None:
    column = np.ones((2, 1))
    assert metric_lookup.for_shapes("mae", column, column).name == "mae"
    assert metric_lookup.for_shapes("MeanSquaredError", column, column).name == "MeanSquaredError"

    def spread(y_true: Any, y_pred: Any) -> Any:
        return abs(y_true - y_pred)

    own = metric_lookup.for_shapes(spread, column, column)
    assert own.name == "spread"
    check(own(constant([1.0, 2.0]), constant([2.0, 2.0])), 0.5, "float32")
    assert metrics.get("BCE").name == "binary_crossentropy"
    with pytest.raises(ValueError, match="Could not interpret metric identifier: foo"):
        metrics.get("foo")


def test_metrics_in_training() -> None:
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse", metrics=["mae", Largest(), keras.metrics.MeanSquaredError(name="again")])
    x = draw.standard_normal((7, 2)).astype(np.float32)
    found = model.evaluate(x, x[:, :1], batch_size=3, verbose=0, return_dict=True)
    predicted = model.predict(x, verbose=0)
    assert list(found) == ["again", "largest", "loss", "mae"]
    assert found["mae"] == pytest.approx(abs(predicted - x[:, :1]).mean(), rel=1e-5)
    assert found["again"] == pytest.approx(found["loss"], rel=1e-6)
    assert found["largest"] == pytest.approx(sum(predicted[i : i + 3].max() for i in (0, 3, 6)), rel=1e-5)


def test_the_state_of_a_metric_as_variables() -> None:
    metric = metrics.Mean()
    metric.update_state([2.0, 4.0])
    total, count = metric.variables
    assert [each.name.rpartition("/")[2] for each in (total, count)] == ["total:0", "count:0"]
    assert (float(total), float(count), total.dtype.name, total.trainable) == (6.0, 2.0, "float32", False)
    assert metric.variables[0] is total
    for each in metric.variables:
        each.assign(0.0)
    assert float(metric.result()) == 0
    total.assign(6.0)
    count.assign_add(2.0)
    assert float(metric.result()) == 3
    metric.update_state([9.0])
    assert (float(total), float(count)) == (15.0, 3.0)
    metric.reset_state()
    assert (float(total), float(count)) == (0.0, 0.0)


def test_every_metric_has_the_variables_of_keras() -> None:
    counts = {
        metrics.Sum: 1,
        metrics.Mean: 2,
        metrics.RootMeanSquaredError: 2,
        metrics.BinaryAccuracy: 2,
        metrics.MeanSquaredError: 2,
    }
    assert {made: len(made().variables) for made in counts} == counts


def test_a_metric_of_ones_own_has_the_variables_of_metrics_inside() -> None:
    class Own(metrics.Metric):
        def __init__(self) -> None:
            super().__init__()
            self.total, self.inner = self.add_weight(name="total"), metrics.Mean()

        def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
            self.total.assign_add(y_pred[0] + y_pred[1])
            self.inner.update_state(y_pred)

        def result(self) -> Any:
            return self.total + self.inner.result()

    own = Own()
    own.update_state(None, constant([2.0, 4.0]))
    assert len(own.variables) == 3
    assert float(own.result()) == 9
    own.reset_state()
    assert float(own.result()) == 0


def test_a_function_without_a_name_is_a_metric_called_lambda() -> None:
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse", metrics=[lambda true, predicted: predicted])
    found = model.fit(np.ones((2, 2)), np.ones((2, 1)), verbose=0)
    assert sorted(found.history) == ["lambda", "loss"]

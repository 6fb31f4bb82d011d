"""Recipes for Keras metrics."""

import random

from families.keras.losses import CLOSE, OF_HALVES, any_float, any_label, any_weights, as_given, beside
from programs import Call, Family

FAMILY = Family()

_SHAPES = ((4,), (4, 1), (4, 1), (4, 3), (4, 3), (2, 3, 4), (0, 3), (), (1, 3))
_MEANS = (
    "keras.metrics.Accuracy keras.metrics.BinaryAccuracy keras.metrics.CategoricalAccuracy "
    "keras.metrics.SparseCategoricalAccuracy keras.metrics.BinaryCrossentropy keras.metrics.CategoricalCrossentropy "
    "keras.metrics.SparseCategoricalCrossentropy keras.metrics.MeanSquaredError keras.metrics.MeanAbsoluteError "
    "keras.metrics.RootMeanSquaredError"
)


def _construction(function: str, rng: random.Random) -> str:
    given = []
    if rng.random() < 0.2 and "rossentropy" not in function:
        given.append(f"dtype={rng.choice(('float16', 'float32', 'float64'))!r}")
    if rng.random() < 0.1:
        given.append("name='own'")
    if "rossentropy" in function and rng.random() < 0.4:
        given.append(f"from_logits={rng.choice((True, False))}")
    if function.endswith((".BinaryCrossentropy", ".CategoricalCrossentropy")) and rng.random() < 0.3:
        given.append(f"label_smoothing={rng.choice((0.0, 0.1, 0.5))}")
    if function.endswith("BinaryAccuracy") and rng.random() < 0.3:
        given.append(f"threshold={rng.choice((0.0, 0.3, 0.9))}")
    return f"tf.{function}({', '.join(given)})"


_AFTER = (
    "metric.result()",
    "metric.result()",
    "[metric.result(), metric.name, metric.dtype]",
    "[metric.result(), metric.reset_state(), metric.result()]",
)


@FAMILY.of(_MEANS)
def means(function: str, rng: random.Random) -> Call:
    """Metrics of labels and predictions, updated with one or two batches."""
    shape = rng.choice(_SHAPES)
    if "Sparse" in function:
        shape = rng.choice(((4, 4), (4, 4), (2, 3, 4), (4,), (0, 4), (4, 1), (1, 5)))
        labels = shape[:-1] if rng.random() < 0.5 else (*shape[:-1], 1)
    else:
        labels = beside(shape, rng)
    kind = (
        "index"
        if "Sparse" in function or function.endswith(".Accuracy")
        else rng.choice(("unit", "positive", "index"))
    )
    predicted = "index" if function.endswith(".Accuracy") else rng.choice(("unit", "positive", "positive"))
    operands = [(any_label(rng), labels, kind), (any_float(rng), shape, predicted)]
    weights = f", {any_weights(shape, rng)}" if rng.random() < 0.6 else ""
    update = f"metric.update_state({as_given('x0', rng)}, {as_given('x1', rng)}{weights})"
    if rng.random() < 0.3:
        update = f"{update}, metric.update_state(x0, x1)"
    before = f"metric = {_construction(function, rng)}\n"
    # Losses of float16 are computed in float16, whatever the type of the mean.
    tolerance = OF_HALVES if operands[1][0] == "float16" else CLOSE
    return Call(f"[{update}, {rng.choice(_AFTER)}]", operands, tolerance, (), before)


@FAMILY.of("keras.metrics.Mean keras.metrics.Sum")
def sums(function: str, rng: random.Random) -> Call:
    """Metrics of values, updated with one or two batches."""
    shape = rng.choice(_SHAPES)
    weights = f", {any_weights(shape, rng)}" if rng.random() < 0.6 else ""
    update = f"metric.update_state({as_given('x0', rng)}{weights})"
    if rng.random() < 0.3:
        update = f"{update}, metric.update_state({rng.choice(('1', '2.5', '[1, 2]', 'x0'))})"
    kind = "ordinary" if rng.random() < 0.8 else "special"
    before = f"metric = {_construction(function, rng)}\n"
    return Call(f"[{update}, {rng.choice(_AFTER)}]", [(any_float(rng), shape, kind)], CLOSE, (), before)


@FAMILY.of("keras.metrics.MeanMetricWrapper")
def of_functions(function: str, rng: random.Random) -> Call:
    """Metrics that average a function: one of Keras, one of the program, or a loss object."""
    measured = rng.choice(
        (
            "tf.keras.losses.huber",
            "lambda y, p: tf.abs(y - p)",
            "lambda y, p: tf.reduce_mean(tf.abs(y - p))",
            "lambda y, p: 1.5",
            "tf.keras.losses.Huber()",
            "tf.keras.losses.Huber(reduction='none')",
        )
    )
    shape = rng.choice(((4,), (4, 1), (4, 3)))
    weights = f", {any_weights(shape, rng)}" if rng.random() < 0.6 else ""
    name = rng.choice(("", ", name='own'", ", 'own'"))
    operands = [("float32", shape, "ordinary"), ("float32", shape, "ordinary")]
    before = f"metric = tf.keras.metrics.MeanMetricWrapper({measured}{name})\n"
    return Call(f"[metric.update_state(x0, x1{weights}), {rng.choice(_AFTER)}]", operands, CLOSE, (), before)


@FAMILY.of("keras.metrics.Metric")
def of_the_program(function: str, rng: random.Random) -> Call:
    """A subclassed metric."""
    kind = rng.choice(
        (", initializer='ones'", ", initializer='zeros'", ", initializer='zeros', dtype='float64'")
    )
    before = (
        "class Own(tf.keras.metrics.Metric):\n"
        "    def __init__(self, **options):\n"
        "        super().__init__(**options)\n"
        f"        self.total = self.add_weight(name='total', shape={rng.choice(('()', '(3,)', '[3]'))}{kind})\n"
        "    def update_state(self, values, sample_weight=None):\n"
        "        self.total.assign_add(tf.cast(tf.reduce_sum(values, 0), self.total.dtype))\n"
        "    def result(self):\n"
        "        return self.total * 2\n"
        f"metric = Own({rng.choice(('', 'name=' + repr('own'), 'dtype=' + repr('float64')))})\n"
    )
    what = rng.choice(
        (
            "[metric(x0), metric.reset_state(), metric.result()]",
            "[metric(x0), metric(x0), len(metric.variables), metric.dtype]",
            "[metric.update_state(x0), metric.result(), metric.variables[0]]",
        )
    )
    return Call(
        what,
        [("float32", (4,) if "()" in before.split("shape=")[1][:3] else (4, 3), "ordinary")],
        CLOSE,
        (),
        before,
    )


@FAMILY.of("keras.metrics.get")
def by_name(function: str, rng: random.Random) -> Call:
    """Metrics given by name."""
    names = (
        "mse MSE mae MAE bce BCE rmse RMSE mean_squared_error MeanSquaredError accuracy Accuracy acc "
        "binary_accuracy mean Mean sum Sum ce crossentropy categorical_crossentropy SparseCategoricalAccuracy "
        "root_mean_squared_error nothing huber"
    )
    name = rng.choice(names.split())
    if rng.random() < 0.1:
        return Call(
            f"type(tf.keras.metrics.get({rng.choice(('None', '3', 'len', '[]', 'tf.keras.metrics.Mean'))})).__name__",
            [],
            CLOSE,
            (),
        )
    return Call(
        "[metric.name, metric.dtype, type(metric).__name__]",
        [],
        CLOSE,
        (),
        f"metric = tf.keras.metrics.get({name!r})\n",
    )

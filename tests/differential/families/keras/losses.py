"""Recipes for Keras losses."""

import random
from collections.abc import Sequence

from operands import FLOATS
from programs import Call, Family, Tolerance

FAMILY = Family()

#: Tolerance for means of a few logarithms.
CLOSE = Tolerance(64, 16)

#: Tolerance for losses in float16, which has 13 bits less than float32, the type of some gradients.
OF_HALVES = Tolerance(8 * 2**13, 2 * 2**13)

REDUCTIONS = ("'sum_over_batch_size'", "'sum'", "'mean'", "'mean_with_sample_weight'", "'none'", "None")
_SHAPES = (
    (),
    (4,),
    (4,),
    (4, 1),
    (4, 1),
    (4, 3),
    (4, 3),
    (4, 3),
    (2, 3, 4),
    (2, 3, 1),
    (0, 3),
    (1, 3),
    (2, 2, 3, 2),
)


def any_float(rng: random.Random) -> str:
    """Return a random type of predictions, mostly Keras' default."""
    return "float32" if rng.random() < 0.6 else rng.choice((*FLOATS, "int32", "int64", "uint8", "bool"))


def any_label(rng: random.Random) -> str:
    """Return a random type of labels."""
    every = ("float16", "float64", "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32")
    return "float32" if rng.random() < 0.5 else rng.choice(every)


def beside(shape: tuple[int, ...], rng: random.Random) -> tuple[int, ...]:
    """Return a random shape of labels: mostly that of the predictions, or with one axis of length 1 more or less."""
    how = rng.random()
    if how < 0.7:
        return shape
    if how < 0.8:
        return (*shape, 1)
    if how < 0.9 and shape:
        return shape[:-1]
    return rng.choice(_SHAPES)


def any_weights(shape: Sequence[int], rng: random.Random) -> str:
    """Return a random expression of sample weights for predictions of a shape."""
    n = shape[0] if shape else 1
    shapes: list[tuple[int, ...]] = [
        (n,),
        (n,),
        (n, 1),
        (n, 1),
        tuple(shape[:-1]),
        tuple(shape),
        (),
        (1,),
        (3,),
    ]
    chosen = rng.choice(shapes)
    if not chosen or rng.random() < 0.05:
        return rng.choice(("None", "2.0", "1", "0.5"))
    dtype = "float32" if rng.random() < 0.6 else rng.choice((*FLOATS, "int32", "bool"))
    made = f"operand({dtype!r}, {chosen}, 'positive', {rng.randrange(99)})"
    return rng.choice((made, f"tf.constant({made})", f"{made}.tolist()"))


def as_given(name: str, rng: random.Random) -> str:
    """Return an expression that passes an operand as a tensor, an array or a list."""
    return (
        rng.choice((name, name, f"{name}.numpy()", f"{name}.numpy().tolist()"))
        if rng.random() < 0.3
        else name
    )


def any_shape_of_predictions(rng: random.Random) -> tuple[int, ...]:
    """Return a random shape of predictions."""
    return rng.choice(_SHAPES)


def _arguments(name: str, rng: random.Random) -> list[str]:
    """Return random arguments that both the class and the function of a loss accept."""
    given = []
    if name.lower().replace("_", "") == "huber" and rng.random() < 0.5:
        given.append(f"delta={rng.choice((0.1, 0.5, 2.0, 1))}")
    if "rossentropy" in name:
        if rng.random() < 0.5:
            given.append(f"from_logits={rng.choice((True, False))}")
        if "parse" not in name and rng.random() < 0.3:
            given.append(f"label_smoothing={rng.choice((0.0, 0.1, 0.5, 1.0))}")
        if rng.random() < 0.15:
            given.append(f"axis={rng.choice((-1, 0, 1, 2, -2))}")
    return given


def _values(name: str, rng: random.Random) -> list[tuple[str, tuple[int, ...], str]]:
    """Return random labels and predictions for a loss, as operands."""
    if "parse" in name:
        shape: tuple[int, ...] = rng.choice(((4, 4), (4, 4), (2, 3, 4), (4, 3), (4,), (0, 4), (4, 1), (1, 5)))
        labels: tuple[int, ...] = shape[:-1] if rng.random() < 0.6 else (*shape[:-1], 1)
        if rng.random() < 0.05:
            labels = rng.choice(_SHAPES)
        return [
            (any_label(rng), labels, "index"),
            (any_float(rng), shape, "unit" if rng.random() < 0.6 else "positive"),
        ]
    shape = any_shape_of_predictions(rng)
    kinds = {"C": ("positive", "positive", "unit"), "B": ("positive", "positive", "unit", "special")}.get(
        name[name.rfind(".") + 1].upper(), ("ordinary", "ordinary", "special")
    )
    return [
        (any_label(rng), beside(shape, rng), rng.choice(("unit", "positive", "index", "whole"))),
        (
            any_float(rng) if "inary" not in name or rng.random() < 0.5 else "float32",
            shape,
            rng.choice(kinds),
        ),
    ]


def _modes(
    operands: Sequence[tuple[str, tuple[int, ...], str]], labels: str, predictions: str
) -> tuple[str, ...]:
    """Return the modes of a call besides eager: gradients, if both operands are tensors of less than float64."""
    (true, _, _), (predicted, _, kind) = operands
    are_tensors = (labels, predictions) == ("x0", "x1")
    return ("gradients",) if are_tensors and kind != "special" and "float64" not in (true, predicted) else ()


@FAMILY.of(
    "keras.losses.MeanSquaredError keras.losses.MeanAbsoluteError keras.losses.Huber",
    "keras.losses.BinaryCrossentropy keras.losses.CategoricalCrossentropy",
    "keras.losses.SparseCategoricalCrossentropy",
)
def classes(function: str, rng: random.Random) -> Call:
    given = _arguments(function.rpartition(".")[2], rng)
    if rng.random() < 0.6:
        given.append(f"reduction={rng.choice(REDUCTIONS)}")
    if rng.random() < 0.15:
        given.append(f"dtype={rng.choice(('float16', 'float32', 'float64'))!r}")
    operands = _values(function, rng)
    weights = f", sample_weight={any_weights(operands[1][1], rng)}" if rng.random() < 0.6 else ""
    labels, predictions = as_given("x0", rng), as_given("x1", rng)
    modes = _modes(operands, labels, predictions)
    tolerance = OF_HALVES if "dtype='float16'" in given else CLOSE
    return Call(
        f"tf.{function}({', '.join(given)})({labels}, {predictions}{weights})", operands, tolerance, modes
    )


@FAMILY.of(
    "keras.losses.MSE keras.losses.mae keras.losses.huber keras.losses.binary_crossentropy",
    "keras.losses.categorical_crossentropy keras.losses.sparse_categorical_crossentropy",
)
def functions(function: str, rng: random.Random) -> Call:
    given = "".join(f", {each}" for each in _arguments(function.rpartition(".")[2], rng))
    operands = _values(function, rng)
    labels, predictions = as_given("x0", rng), as_given("x1", rng)
    modes = _modes(operands, labels, predictions)
    return Call(f"tf.{function}({labels}, {predictions}{given})", operands, CLOSE, modes)


@FAMILY.of("keras.losses.get")
def by_name(function: str, rng: random.Random) -> Call:
    names = (
        "mse MSE mae MAE bce BCE mean_squared_error MeanSquaredError mean_absolute_error huber Huber huber_loss "
        "binary_crossentropy BinaryCrossentropy categorical_crossentropy Mse crossentropy accuracy"
    )
    name = rng.choice(names.split())
    operands = [("float32", (4, 3), "unit"), ("float32", (4, 3), "positive")]
    what = rng.choice(
        (
            "loss(x0, x1)",
            "[getattr(loss, name, None) for name in ('__name__', 'name', 'reduction', 'dtype')]",
            "tf.keras.losses.get(loss) is loss",
        )
    )
    before = f"loss = tf.keras.losses.get({name!r})\n"
    if rng.random() < 0.2:
        before = (
            f"loss = tf.keras.losses.get({rng.choice(('None', '3', 'len', '[]', 'tf.keras.losses.Huber'))})\n"
        )
        what = "[type(loss).__name__, x0, x1]"
    return Call(what, operands, CLOSE, (), before)


@FAMILY.of("keras.losses.Loss")
def of_the_program(function: str, rng: random.Random) -> Call:
    body = rng.choice(
        (
            "tf.reduce_mean(y_pred - y_true)",
            "y_pred - y_true",
            "tf.reduce_sum(tf.abs(y_pred - y_true), -1)",
            "0.5",
            "y_true.dtype == y_pred.dtype",
        )
    )
    before = f"class Own(tf.keras.losses.Loss):\n    def call(self, y_true, y_pred):\n        return {body}\n"
    reduction = f"reduction={rng.choice(REDUCTIONS)}" if rng.random() < 0.7 else ""
    weights = f", {any_weights((4, 3), rng)}" if rng.random() < 0.6 else ""
    operands = [(any_label(rng), (4, 3), "index"), (any_float(rng), (4, 3), "positive")]
    return Call(
        f"Own({reduction})({as_given('x0', rng)}, {as_given('x1', rng)}{weights})",
        operands,
        # Cancellation: a difference has the absolute error of its terms.
        Tolerance(CLOSE.ulps, CLOSE.of_largest, terms=4),
        (),
        before,
    )

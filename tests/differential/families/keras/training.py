"""Recipes for Keras' ``fit``, ``evaluate``, ``predict`` and single batches, on models with fixed weights.

Longer than 300 lines: the recipes of one family, one after the other.
"""

import random

from programs import Call, Family, Tolerance

FAMILY = Family()

#: Tolerance for several steps with sums of a few hundred products.
TRAINED = Tolerance(2000, 400)

_HELPERS = "keras, tools = tf.keras, keras_tools()\n"


def _single(units: int, activation: str, rng: random.Random) -> str:
    """Return an expression that creates a random model with one output."""
    kind = rng.choice(("sequential", "sequential", "functional", "own"))
    regularized = rng.choice(("", "", "", ", activity_regularizer='l2'", ", kernel_regularizer='l1'"))
    added = rng.choice(("", "", "self.add_loss(tf.reduce_mean(tf.square(x)))"))
    if kind == "functional":
        return (
            "i = keras.Input((3,))\n"
            f"h = keras.layers.Dense(4, 'tanh'{regularized})(i)\n"
            f"model = tools.fixed(keras.Model(i, keras.layers.Dense({units}, {activation!r})(h)))\n"
        )
    if kind == "own":
        return (
            "class Own(keras.Model):\n"
            "    def __init__(self):\n"
            "        super().__init__()\n"
            f"        self.first = keras.layers.Dense(4, 'tanh'{regularized})\n"
            f"        self.last = keras.layers.Dense({units}, {activation!r})\n"
            "    def call(self, x):\n"
            f"        {added or 'pass'}\n"
            "        return self.last(self.first(x))\n"
            "model = Own()\n"
            "model(np.ones((1, 3), 'float32'))\n"
            "tools.fixed(model)\n"
        )
    return (
        f"model = tools.fixed(keras.Sequential([keras.Input((3,)), keras.layers.Dense(4, 'tanh'{regularized}), "
        f"keras.layers.Dense({units}, {activation!r})]))\n"
    )


def _task(rng: random.Random, rows: int) -> tuple[str, str, str, str]:
    """Return a random model with a matching loss, labels and metric."""
    kind = rng.choice(("values", "values", "column", "binary", "classes", "one hot"))
    if kind in ("values", "column"):
        labels = f"operand('float32', {(rows, 1) if kind == 'column' else (rows,)}, 'unit', 7)"
        loss = rng.choice(
            (
                "'mse'",
                "'mae'",
                "keras.losses.Huber(0.3)",
                "'MSE'",
                "lambda y, p: tf.abs(y - p)",
                "keras.losses.huber",
            )
        )
        metric = rng.choice(
            (
                "'mae'",
                "'mse'",
                "keras.metrics.RootMeanSquaredError()",
                "keras.losses.huber",
                "'mean_squared_error'",
            )
        )
        return _single(1, "linear", rng), loss, labels, metric
    if kind == "binary":
        labels = f"operand('int32', {rng.choice(((rows,), (rows, 1)))}, 'index', 7) % 2"
        loss = rng.choice(
            (
                "'binary_crossentropy'",
                "'bce'",
                "'crossentropy'",
                "keras.losses.BinaryCrossentropy(label_smoothing=0.1)",
            )
        )
        return (
            _single(1, "sigmoid", rng),
            loss,
            labels,
            rng.choice(("'accuracy'", "'acc'", "'binary_accuracy'", "'bce'")),
        )
    if kind == "classes":
        dtype = rng.choice(("int32", "int64", "uint8", "int8", "int16", "uint16", "float32"))
        labels = f"operand({dtype!r}, {rng.choice(((rows,), (rows, 1)))}, 'index', 7) % 3"
        loss = rng.choice(
            (
                "'sparse_categorical_crossentropy'",
                "keras.losses.SparseCategoricalCrossentropy()",
                "'crossentropy'",
            )
        )
        metric = rng.choice(
            ("'accuracy'", "'acc'", "'sparse_categorical_accuracy'", "'sparse_categorical_crossentropy'")
        )
        return _single(3, "softmax", rng), loss, labels, metric
    labels = f"np.eye(3, dtype='float32')[operand('int32', ({rows},), 'index', 7) % 3]"
    loss = rng.choice(
        (
            "'categorical_crossentropy'",
            "keras.losses.CategoricalCrossentropy(label_smoothing=0.1)",
            "'crossentropy'",
        )
    )
    return (
        _single(3, "softmax", rng),
        loss,
        labels,
        rng.choice(("'accuracy'", "'categorical_accuracy'", "'mse'")),
    )


def _compiled(loss: str, metric: str, rng: random.Random) -> str:
    optimizer = rng.choice(
        (
            "'sgd'",
            "'adam'",
            "'rmsprop'",
            "keras.optimizers.SGD(0.1, momentum=0.5)",
            "keras.optimizers.Adagrad(0.1)",
            "'adagrad'",
        )
    )
    given = [f"optimizer={optimizer}", f"loss={loss}"]
    how = rng.random()
    if how < 0.35:
        given.append(f"metrics=[{metric}]")
    elif how < 0.45:
        given.append(f"metrics=[{metric}, keras.metrics.MeanSquaredError(name='own')]")
    elif how < 0.55:
        given.append(f"weighted_metrics=[{metric}]")
    elif how < 0.65:
        given.append(f"metrics=[{metric}], weighted_metrics=[{metric}]")
    elif how < 0.7:
        given.append(f"metrics={rng.choice((metric, '[]', '[[' + metric + ']]', 'None'))}")
    if rng.random() < 0.15:
        given.append(f"loss_weights={rng.choice(('2.0', '[0.5]', 'None', '[1.0, 2.0]'))}")
    if rng.random() < 0.8:
        # TensorFlow takes seconds to compile.
        given.append("run_eagerly=True")
    return f"model.compile({', '.join(given)})\n"


def _weights(rows: int, rng: random.Random) -> str:
    shape: tuple[int, ...] = rng.choice(((rows,), (rows, 1)))
    return f"operand({rng.choice(('float32', 'float64', 'int32'))!r}, {shape}, 'positive', 9)"


@FAMILY.of("keras.Model.fit")
def fits(function: str, rng: random.Random) -> Call:
    """``fit``: history and weights after a few epochs."""
    rows = rng.choice((8, 10, 12))
    model, loss, labels, metric = _task(rng, rows)
    given = [f"epochs={rng.choice((1, 2, 3))}", "shuffle=False", "verbose=0"]
    batch = rng.choice((None, 4, 4, 5, 100))
    source = rng.choice(("arrays", "arrays", "arrays", "tensors", "dataset", "generator", "sequence"))
    weighted = rng.random() < 0.35
    weights = _weights(rows, rng) if weighted else None
    if source in ("arrays", "tensors"):
        made = "x, y" if source == "arrays" else "tf.constant(x), tf.constant(y)"
        if batch is not None:
            given.append(f"batch_size={batch}")
        if weights is not None:
            given.append(f"sample_weight={weights}")
        if rng.random() < 0.35:
            given.append(f"validation_split={rng.choice((0.25, 0.5, 0.3))}")
            if rng.random() < 0.5:
                given.append(f"validation_steps={rng.choice((1, 2))}")
        if rng.random() < 0.1:
            given.append(f"steps_per_epoch={rng.choice((1, 2))}")
        if rng.random() < 0.2:
            given.append(
                f"class_weight={rng.choice(('{0: 1.0, 1: 2.0, 2: 0.5}', '{0: 0.5, 1: 3}', '{1: 2.0}'))}"
            )
    elif source == "dataset":
        tensors = "(x, y)" if weights is None else f"(x, y, {weights})"
        repeat = rng.choice(("", "", ".repeat()", ".repeat(2)"))
        made = f"tf.data.Dataset.from_tensor_slices({tensors}).batch({batch or 4}){repeat}"
        if repeat == ".repeat()" or rng.random() < 0.2:
            given.append("steps_per_epoch=2")
    else:
        parts = "x[i:i + 4], y[i:i + 4]" if weights is None else f"x[i:i + 4], y[i:i + 4], {weights}[i:i + 4]"
        loop = f"({parts}) for _ in range(9) for i in range(0, 8, 4)"
        made = f"({loop})" if source == "generator" else f"iter([{loop}])"
        given.append("steps_per_epoch=2")
    if not any("validation" in each for each in given) and rng.random() < 0.4:
        data = rng.choice(("(x[:6], y[:6])", "(x, y)", "(x[:6], y[:6], np.arange(6.))", "[x[:6], y[:6]]"))
        given.append(f"validation_data={data}")
        if rng.random() < 0.3:
            given.append(f"validation_batch_size={rng.choice((2, 4))}")
        if rng.random() < 0.3:
            given.append(f"validation_freq={rng.choice(('2', '[1, 3]', '1'))}")
        if rng.random() < 0.2:
            given.append("validation_steps=1")
    if rng.random() < 0.1:
        given.append("initial_epoch=1")
    before = (
        f"{_HELPERS}x = operand('float32', ({rows}, 3), 'ordinary', 3)\n"
        f"y = {labels}\n{model}{_compiled(loss, metric, rng)}"
        f"def run():\n    found = model.fit({made}, {', '.join(given)})\n"
        "    return tools.figures(found), found.epoch, model.get_weights()\n"
    )
    return Call("run()", [], TRAINED, (), before)


@FAMILY.of("keras.Model.evaluate keras.Model.train_on_batch keras.Model.test_on_batch")
def evaluations(function: str, rng: random.Random) -> Call:
    """``evaluate`` and single batches: losses and metrics."""
    rows = rng.choice((8, 10))
    model, loss, labels, metric = _task(rng, rows)
    method = function.rpartition(".")[2]
    given = ["x", "y"]
    if rng.random() < 0.4:
        given.append(f"sample_weight={_weights(rows, rng)}")
    if rng.random() < 0.4:
        given.append("return_dict=True")
    if method == "evaluate":
        given.append("verbose=0")
        if rng.random() < 0.5:
            given.append(f"batch_size={rng.choice((3, 4))}")
        if rng.random() < 0.15:
            given.append("steps=2")
    elif method == "train_on_batch" and rng.random() < 0.3:
        given.append("class_weight={0: 1.0, 1: 2.0, 2: 0.5}")
    before = (
        f"{_HELPERS}x = operand('float32', ({rows}, 3), 'ordinary', 3)\n"
        f"y = {labels}\n{model}{_compiled(loss, metric, rng)}"
        "def run():\n"
        f"    found = [tools.figures(model.{method}({', '.join(given)})) for _ in range({rng.choice((1, 2))})]\n"
        "    return found, model.get_weights(), sorted(model.metrics_names)\n"
    )
    return Call("run()", [], TRAINED, (), before)


@FAMILY.of("keras.Model.predict keras.Model.predict_on_batch")
def predictions(function: str, rng: random.Random) -> Call:
    """``predict``: outputs for inputs of many forms."""
    method = function.rpartition(".")[2]
    shape, data = rng.choice(
        (
            ("(3,)", "operand('float32', (6, 3), 'ordinary', 3)"),
            ("(3,)", "operand('float64', (6, 3), 'ordinary', 3)"),
            ("(3,)", "operand('int32', (6, 3), 'ordinary', 3)"),
            ("(3,)", "operand('bool', (6, 3), 'ordinary', 3)"),
            ("(3,)", "tf.constant(operand('float32', (6, 3), 'ordinary', 3))"),
            (
                "(3,)",
                "tf.data.Dataset.from_tensor_slices(operand('float32', (6, 3), 'ordinary', 3)).batch(4)",
            ),
            ("(3,)", "[operand('float32', (6, 3), 'ordinary', 3)]"),
            ("(3,)", "operand('float32', (6, 2), 'ordinary', 3)"),
            ("(3,)", "operand('float32', (0, 3), 'ordinary', 3)"),
            ("(3,)", "[[1., 2., 3.]]"),
            ("(1,)", "operand('float32', (6,), 'ordinary', 3)"),
            ("(1,)", "operand('float32', (6, 1), 'ordinary', 3)"),
            ("(1,)", "np.arange(5)"),
            ("(1,)", "[1., 2.]"),
            ("()", "operand('float32', (6,), 'ordinary', 3)"),
            ("(2, 3)", "operand('float32', (4, 2, 3), 'ordinary', 3)"),
        )
    )
    last = "keras.layers.Dense(2)" if shape != "()" else "keras.layers.Lambda(lambda x: x * 2)"
    options = rng.choice(("", ", batch_size=2", ", steps=1")) + ", verbose=0" if method == "predict" else ""
    before = f"{_HELPERS}model = tools.fixed(keras.Sequential([keras.Input({shape}), {last}]))\n"
    if rng.random() < 0.2 and shape != "()":
        before = f"{_HELPERS}model = keras.Sequential([keras.layers.Dense(2, kernel_initializer='ones')])\n"
    return Call(f"model.{method}({data}{options})", [], TRAINED, (), before)


@FAMILY.of("keras.Model.compile")
def two_outputs(function: str, rng: random.Random) -> Call:
    """``compile`` of a model with two outputs: losses, weights and metrics in all accepted forms."""
    outputs = rng.choice(("[a, b]", "(a, b)", "{'a': a, 'b': b}"))
    loss = rng.choice(
        (
            "'mse'",
            "['mse', 'mae']",
            "('mse', 'mae')",
            "{'a': 'mse', 'b': 'mae'}",
            "['mse', None]",
            "{'a': 'mse', 'b': None}",
            "{'a': 'mse'}",
            "['mse']",
            "{'a': 'mse', 'c': 'mae'}",
            "keras.losses.Huber()",
            "[keras.losses.Huber(), 'mse']",
        )
    )
    given = [f"loss={loss}"]
    # One error per call: Keras checks losses and targets in another order.
    is_wrong = loss in ("['mse']", "{'a': 'mse'}", "{'a': 'mse', 'c': 'mae'}")
    is_alone = not is_wrong and rng.random() < 0.2
    is_wrong = is_wrong or is_alone
    if not is_wrong and rng.random() < 0.4:
        shares = rng.choice(
            ("[1.0, 0.5]", "(1.0, 0.5)", "{'a': 1.0, 'b': 0.5}", "2.0", "[1.0]", "{'a': 2.0}")
        )
        given.append(f"loss_weights={shares}")
    if not is_wrong and rng.random() < 0.7:
        name = rng.choice(("metrics", "metrics", "weighted_metrics"))
        form = rng.choice(
            (
                "['mae']",
                "['mae', 'mse']",
                "[['mae'], ['mse']]",
                "{'a': 'mae', 'b': 'mse'}",
                "{'a': ['mae', 'mse']}",
                "['mae', 'mse', 'mae']",
                "[['mae', 'mse'], None]",
                "[None, 'mae']",
                "'mae'",
                "[keras.metrics.MeanSquaredError(), keras.metrics.MeanAbsoluteError(name='own')]",
                "{'c': 'mae'}",
                "[]",
            )
        )
        given.append(f"{name}={form}")
    if rng.random() < 0.8:
        given.append("run_eagerly=True")
    y = "y" if is_alone else rng.choice(("[y, z]", "(y, z)", "{'a': y, 'b': z}", "[y, z]"))
    weights = rng.choice(
        (
            "",
            "",
            "",
            ", sample_weight=w",
            ", sample_weight=[w, w * 2]",
            ", sample_weight={'a': w, 'b': w * 2}",
        )
    )
    weights = "" if is_wrong else weights
    run = rng.choice(
        (
            f"tools.figures(model.fit(x, {y}{weights}, batch_size=4, epochs=2, shuffle=False, verbose=0))",
            f"tools.figures(model.train_on_batch(x, {y}{weights}, return_dict=True))",
            f"tools.figures(model.evaluate(x, {y}{weights}, batch_size=8, verbose=0, return_dict=True))",
            f"tools.figures(model.evaluate(x, {y}{weights}, batch_size=8, verbose=0))",
        )
    )
    before = (
        f"{_HELPERS}i = keras.Input((3,))\n"
        "a = keras.layers.Dense(1, name='a')(i)\n"
        "b = keras.layers.Dense(2, name='b')(i)\n"
        f"model = tools.fixed(keras.Model(i, {outputs}))\n"
        "x, y, z, w = (operand('float32', s, 'positive', 3) for s in ((8, 3), (8, 1), (8, 2), (8,)))\n"
        f"def run():\n    model.compile('sgd', {', '.join(given)})\n    return {run}, model.get_weights()\n"
    )
    return Call("run()", [], TRAINED, (), before)

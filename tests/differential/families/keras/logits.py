"""Recipes for cross entropies of probabilities that Keras computes from the logits behind them."""

import random

from programs import Call, Family, Tolerance

FAMILY = Family()

#: Tolerance for means of a few cross entropies, and for the weights after a few steps.
CLOSE = Tolerance(200, 100, terms=1)

#: Expressions that keep or lose the logits behind probabilities ``p``.
_WAYS = (
    *("p",) * 6,
    "p * 1.0",
    "p + 0.0",
    "tf.identity(p)",
    "tf.stop_gradient(p)",
    "tf.reshape(p, tf.shape(p))",
    "p[:]",
    "tf.convert_to_tensor(p)",
    "tf.cast(p, p.dtype)",
    "tf.cast(tf.cast(p, 'float64'), p.dtype)",
    "tf.nest.map_structure(lambda t: t, [p])[0]",
    "tf.ensure_shape(p, p.shape)",
    "tf.transpose(tf.transpose(p))",
    "tf.where(p > 0.5, p, p)",
    "tf.concat([p], 0)",
    "tf.squeeze(tf.expand_dims(p, 0), 0)",
    "dropout(p)",
    "keras.layers.Activation('linear')(p)",
    "keras.layers.Lambda(lambda t: t)(p)",
    "keras.layers.Rescaling(1.0)(p)",
    "keras.layers.Flatten()(p)",
    "keras.layers.Add()([p, p * 0.0])",
    "passing(p)",
    "tf.cond(tf.constant(True), lambda: p, lambda: p)",
    "tf.cond(tf.constant(True), lambda: SOFTMAX(x), lambda: p)",
    "tf.function(lambda: SOFTMAX(x))()",
    "tf.function(lambda t: t)(p)",
    "tf.function(lambda t: t * 1.0)(p)",
    "next(iter(tf.data.Dataset.from_tensors(tf.stop_gradient(p))))",
    "next(iter(tf.data.Dataset.from_tensors(x * 1.0).map(lambda t: activation(t)))) + 0.0 * tf.stop_gradient(p)",
    "p.numpy()",
)

#: Expressions of an activation of ``x``.
_SOFTMAX = (
    "keras.activations.softmax",
    "keras.activations.softmax",
    "keras.activations.get('softmax')",
    "tf.nn.softmax",
    "keras.layers.Activation('softmax')",
    "keras.layers.Softmax()",
    "keras.layers.Softmax(axis=0)",
    "keras.layers.Softmax(axis=(-1,))",
    "keras.layers.Activation(tf.nn.softmax)",
    "(lambda t: keras.activations.softmax(t, axis=0))",
    "(lambda t: keras.activations.softmax(t, axis=(0, 1)))",
    "(lambda t: tf.exp(tf.nn.log_softmax(t)))",
    "(lambda t: tf.nn.softmax(t, axis=0))",
)
_SIGMOID = (
    "keras.activations.sigmoid",
    "keras.activations.sigmoid",
    "keras.activations.get('sigmoid')",
    "tf.sigmoid",
    "tf.nn.sigmoid",
    "keras.layers.Activation('sigmoid')",
    "keras.layers.Activation(tf.sigmoid)",
    "(lambda t: 1 / (1 + tf.exp(-t)))",
)


def _loss(rng: random.Random) -> tuple[str, str, str]:
    """Return random expressions of a cross entropy and of labels for it, and the activation that goes with it."""
    kind = rng.choice(("sparse_categorical", "categorical", "binary"))
    labels = {
        "sparse_categorical": "np.array([2, 1, 3])",
        "categorical": "np.eye(4, dtype='float32')[[2, 1, 3]]",
        "binary": "np.array([[1, 0, 1, 0], [0, 0, 1, 1], [1, 1, 1, 0]], 'float32')",
    }[kind]
    given = ["from_logits=True"] if rng.random() < 0.15 else []
    if kind != "sparse_categorical" and rng.random() < 0.3:
        given.append("label_smoothing=0.1")
    camel = "".join(part.capitalize() for part in kind.split("_")) + "Crossentropy"
    how = rng.choice(("function", "class", "class", "metric", "metric function", "get"))
    if how == "function":
        made = (
            f"(lambda y, p: keras.losses.{kind}_crossentropy(y, p{''.join(', ' + each for each in given)}))"
        )
    elif how == "class":
        if rng.random() < 0.3:
            given.append(f"reduction={rng.choice(('sum', 'none'))!r}")
        weights = rng.choice(("", "", ", sample_weight=[1.0, 0.5, 2.0]"))
        made = f"(lambda y, p: keras.losses.{camel}({', '.join(given)})(y, p{weights}))"
    elif how == "metric":
        weights = rng.choice(("", "", ", sample_weight=[1.0, 0.5, 2.0]"))
        made = f"(lambda y, p: keras.metrics.{camel}({', '.join(given)})(y, p{weights}))"
    elif how == "metric function":
        made = f"(lambda y, p: keras.metrics.MeanMetricWrapper(keras.losses.{kind}_crossentropy)(y, p))"
    else:
        made = f"keras.losses.get('{kind}_crossentropy')"
    return made, labels, "sigmoid" if (kind == "binary") != (rng.random() < 0.1) else "softmax"


@FAMILY.of("keras.losses.logits")
def eager(function: str, rng: random.Random) -> Call:
    """A cross entropy and its gradient, eagerly, in functions, and on both sides of the boundary of one."""
    loss, labels, kind = _loss(rng)
    activation = rng.choice(_SIGMOID if kind == "sigmoid" else _SOFTMAX)
    way = rng.choice(_WAYS).replace("SOFTMAX", "activation")
    where = rng.choice(
        ("eager", "eager", "function", "function", "argument", "captured", "captured", "eager function")
    )
    is_metric = "metrics" in loss
    if is_metric and where in ("function", "argument", "captured"):
        where = "eager"
    if way == "p.numpy()" and where in ("function", "eager function"):
        way = "p"
    body = {
        "eager": "loss(labels, way(activation(x)))",
        "function": "tf.function(lambda: loss(labels, way(activation(x))))()",
        "argument": "tf.function(lambda p: loss(labels, p))(way(activation(x)))",
        "captured": "(lambda p: tf.function(lambda: loss(labels, p))())(way(activation(x)))",
        "eager function": "eagerly(lambda: tf.function(lambda: loss(labels, way(activation(x))))())",
    }[where]
    # The gradient in double precision has the accuracy of a loss in single precision.
    dtype = rng.choice(("float32",) * 5 + ("float64",))
    before = (
        "keras = tf.keras\n"
        "dropout = keras.layers.Dropout(0.5)\n"
        "passing = keras.Sequential([keras.layers.Dropout(0.2), keras.layers.Activation('linear')])\n"
        "def eagerly(function):\n"
        "    tf.config.run_functions_eagerly(True)\n"
        "    try:\n"
        "        return function()\n"
        "    finally:\n"
        "        tf.config.run_functions_eagerly(False)\n"
        f"labels, loss, activation = {labels}, {loss}, {activation}\n"
        f"x = tf.{rng.choice(('Variable', 'Variable', 'constant'))}(np.array([[0, 30, -25, 3], [-40, 0, 1, 9], "
        f"[5, -18, 17, 0.5]], {dtype!r}))\n"
        f"def way(p):\n    return {way}\n"
        "def run():\n"
        "    with tf.GradientTape() as tape:\n"
        "        tape.watch(x)\n"
        f"        value = {body}\n"
        f"    return value, {'None' if is_metric or dtype == 'float64' else 'tape.gradient(value, x)'}\n"
    )
    return Call("run()", [], CLOSE, (), before)


def _head(rng: random.Random, kind: str, units: int) -> str:
    """Return a random expression of the last layers of a classifier."""
    dense = f"keras.layers.Dense({units}, name='last')"
    tail = rng.choice(
        (
            f"keras.layers.Activation('{kind}')",
            f"keras.layers.Lambda(tf.nn.{kind})",
            f"keras.layers.Lambda(lambda t: tf.nn.{kind}(t) * 1.0)",
            f"keras.layers.Activation('{kind}'), keras.layers.Dropout(0.0)",
            f"keras.layers.Activation('{kind}'), keras.layers.Reshape(({units},))",
            f"keras.Sequential([keras.layers.Activation('{kind}')])",
            "keras.layers.Softmax()" if kind == "softmax" else "keras.layers.Activation(tf.sigmoid)",
        )
    )
    if rng.random() < 0.4:
        return f"keras.layers.Dense({units}, {kind!r})"
    return f"{dense}, {tail}"


@FAMILY.of("keras.Model.logits")
def trained(function: str, rng: random.Random) -> Call:
    """Training and evaluation of classifiers with logits that are far from zero."""
    units = rng.choice((3, 3, 1))
    kind = "sigmoid" if units == 1 or rng.random() < 0.3 else "softmax"
    if units == 1:
        losses = [
            "'binary_crossentropy'",
            "keras.losses.BinaryCrossentropy(label_smoothing=0.2)",
            "'crossentropy'",
        ]
        labels = f"np.array([1, 0, 1, 0, 0, 1]){rng.choice(('', '[:, None]'))}"
    elif kind == "sigmoid":
        losses = ["'bce'", "keras.losses.BinaryCrossentropy(from_logits=True)", "'binary_crossentropy'"]
        labels = (
            "np.eye(3, dtype='float32')[[0, 1, 2, 2, 1, 0]] + np.eye(3, dtype='float32')[[1, 0, 0, 0, 2, 1]]"
        )
    elif rng.random() < 0.5:
        losses = [
            "'sparse_categorical_crossentropy'",
            "keras.losses.SparseCategoricalCrossentropy()",
            "'crossentropy'",
        ]
        labels = f"np.array([0, 1, 2, 2, 1, 0]){rng.choice(('', '[:, None]'))}"
    else:
        losses = ["'categorical_crossentropy'", "keras.losses.CategoricalCrossentropy(label_smoothing=0.1)"]
        labels = "np.eye(3, dtype='float32')[[0, 1, 2, 2, 1, 0]]"
    loss = rng.choice(losses)
    plain = losses[0] if losses[0] != "'bce'" else "'binary_crossentropy'"
    given = [f"optimizer={rng.choice(('keras.optimizers.SGD(0.5)', 'keras.optimizers.Adam(0.1)'))}"]
    given.append(
        f"loss={rng.choice((loss, loss, f'lambda y, p: keras.losses.get({plain})(tf.cast(y, p.dtype), p)'))}"
    )
    is_own = rng.random() < 0.2
    if not is_own and rng.random() < 0.5:
        given.append(f"{rng.choice(('metrics', 'weighted_metrics'))}=[{plain}]")
    if rng.random() < 0.6:
        given.append("run_eagerly=True")
    weights = rng.choice(
        ("", "", ", sample_weight=np.arange(6.0)", ", class_weight={0: 0.5, 1: 2.0, 2: 1.0}")
    )
    run = rng.choice(
        (
            f"model.fit(x, y{weights}, batch_size=3, epochs=2, shuffle=False, verbose=0)",
            f"model.train_on_batch(x, y{weights})",
            f"model.evaluate(x, y{weights if 'class' not in weights else ''}, batch_size=4, verbose=0)",
            "model.test_on_batch(x, y)",
        )
    )
    made = f"keras.Sequential([keras.Input((4,)), {_head(rng, kind, units)}])"
    if is_own:
        made = f"step(keras.Input((4,)), keras.Sequential([{_head(rng, kind, units)}]))"
    scope = rng.choice(("nullcontext()",) * 4 + ("tf.distribute.MirroredStrategy(['CPU:0']).scope()",))
    before = (
        "from contextlib import nullcontext\n"
        "keras, tools = tf.keras, keras_tools()\n"
        "class Own(keras.Model):\n"
        "    def train_step(self, data):\n"
        "        x, y = data[:2]\n"
        "        with tf.GradientTape() as tape:\n"
        "            p = self(x, training=True)\n"
        f"            loss = tf.reduce_mean(keras.losses.get({plain})(tf.cast(y, p.dtype), p))\n"
        "        found = tape.gradient(loss, self.trainable_variables)\n"
        "        self.optimizer.apply_gradients(zip(found, self.trainable_variables))\n"
        "        return {'own': loss}\n"
        "def step(start, inner):\n"
        "    return Own(start, inner(start))\n"
        "x = operand('float32', (6, 4), 'ordinary', 3) * 10\n"
        f"y = {labels}\n"
        f"with {scope}:\n"
        f"    model = {made}\n"
        "    tools.fixed(model)\n"
        "    model.set_weights([w * 10 for w in model.get_weights()])\n"
        f"    model.compile({', '.join(given)})\n"
        f"def run():\n    return tools.figures({run}), model.get_weights()\n"
    )
    return Call("run()", [], Tolerance(3000, 1500), (), before)

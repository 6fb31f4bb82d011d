"""Recipes for whole programs with Keras: networks with several heads, losses and metrics, and loops of one's own."""

import random
from collections.abc import Sequence

from programs import Call, Family, Tolerance

FAMILY = Family()

#: Tolerance for the weights after a few steps through several layers.
TRAINED = Tolerance(6000, 3000, terms=1)

#: The body's layers by number of axes of their input, behind the batch.
_BODY = {
    1: (
        "keras.layers.Dense(4, 'tanh')",
        "keras.layers.Dense(3, 'relu', kernel_regularizer='l2', bias_constraint='non_neg')",
        "keras.layers.Dense(5, 'gelu', activity_regularizer='l1')",
        "keras.layers.BatchNormalization(momentum=0.5)",
        "keras.layers.LayerNormalization(gamma_regularizer='l2')",
        "keras.layers.Dropout(0.0)",
        "keras.layers.Activation('sigmoid')",
        "keras.layers.Lambda(lambda t: t * t - 1.0)",
        "keras.layers.Rescaling(0.5, 0.1)",
        "Gate()",
        "Masked()",
        "twice",
    ),
    3: (
        "keras.layers.Conv2D(3, 2, padding='same', activation='relu', kernel_constraint='max_norm')",
        "keras.layers.MaxPooling2D(2, padding='same')",
        "keras.layers.AveragePooling2D(2, strides=1, padding='same')",
        "keras.layers.BatchNormalization(axis=1, momentum=0.5)",
        "keras.layers.LayerNormalization(axis=[1, 2])",
    ),
}

#: Heads of classifiers and regressions: layers, labels for six samples, losses, metrics.
_HEADS = {
    "classes": (
        ("D(3, 'softmax')", "D(3), keras.layers.Softmax()", "D(3), keras.layers.Lambda(tf.nn.softmax)"),
        ("np.array([0, 1, 2, 2, 1, 0])", "np.array([[0], [1], [2], [2], [1], [0]])"),
        ("'sparse_categorical_crossentropy'", "keras.losses.SparseCategoricalCrossentropy(reduction='sum')"),
        (
            "'accuracy'",
            "'sparse_categorical_crossentropy'",
            "keras.metrics.SparseCategoricalAccuracy(name='own')",
        ),
    ),
    "logits": (
        ("D(3)", "D(3), keras.layers.Dropout(0.0)"),
        ("np.array([0, 1, 2, 2, 1, 0])",),
        ("keras.losses.SparseCategoricalCrossentropy(from_logits=True)",),
        ("'accuracy'", "keras.metrics.SparseCategoricalCrossentropy(from_logits=True, name='ce')"),
    ),
    "one hot": (
        ("D(3, 'softmax')", "D(3), keras.layers.Activation('softmax')", "D(3), keras.layers.Softmax(axis=1)"),
        ("np.eye(3, dtype='float32')[[0, 1, 2, 2, 1, 0]]",),
        ("'categorical_crossentropy'", "keras.losses.CategoricalCrossentropy(label_smoothing=0.1)"),
        ("'accuracy'", "'categorical_crossentropy'", "'mse'"),
    ),
    "binary": (
        (
            "D(1, 'sigmoid')",
            "D(1), keras.layers.Activation('sigmoid')",
            "D(1), keras.layers.Lambda(tf.sigmoid)",
        ),
        ("np.array([0, 1, 1, 0, 1, 0])", "np.array([[0.0], [1], [1], [0], [1], [0]])"),
        ("'binary_crossentropy'", "keras.losses.BinaryCrossentropy(label_smoothing=0.2)"),
        ("'accuracy'", "'bce'", "keras.metrics.BinaryAccuracy(threshold=0.3, name='own')"),
    ),
    "labels": (
        ("D(4, 'sigmoid')", "D(4, tf.sigmoid)"),
        ("np.array([[0, 1, 1, 0], [1, 1, 0, 0]] * 3, 'float32')",),
        ("'bce'", "'binary_crossentropy'"),
        ("'binary_accuracy'", "'binary_crossentropy'"),
    ),
    "values": (
        ("D(2)", "D(2, 'linear', kernel_constraint='unit_norm')", "D(2, 'tanh', bias_regularizer='l1')"),
        ("operand('float32', (6, 2), 'unit', 7)",),
        (
            "'mse'",
            "'mae'",
            "keras.losses.Huber(0.4)",
            "lambda y, p: tf.reduce_mean(tf.abs(y - p) ** 1.5, -1)",
        ),
        ("'mae'", "keras.metrics.RootMeanSquaredError(name='own')", "keras.losses.huber"),
    ),
}

#: Adam with a large epsilon, so that steps do not follow the rounding of gradients that are next to nothing.
_OPTIMIZERS = (
    "keras.optimizers.SGD(0.05, momentum=0.5)",
    "keras.optimizers.SGD(keras.optimizers.schedules.ExponentialDecay(0.1, 2, 0.5))",
    "keras.optimizers.Adam(0.02, epsilon=0.1)",
)

_PREPARED = (
    "keras, tools = tf.keras, keras_tools()\n"
    "def D(units, activation=None, **kwargs):\n"
    "    return keras.layers.Dense(units, activation, **kwargs)\n"
    "class Gate(keras.layers.Layer):\n"
    "    def build(self, shape):\n"
    "        self.g = self.add_weight(shape=(shape[-1],), initializer='ones', regularizer='l2', constraint='non_neg')\n"
    "        self.count = tf.Variable(0.0, trainable=False)\n"
    "        self.inner = {'dense': keras.layers.Dense(shape[-1], 'sigmoid')}\n"
    "        self.inner['dense'].build(shape)\n"
    "        self.seen = keras.metrics.Mean(name=self.name + '_seen')\n"
    "    def call(self, x, training=None):\n"
    "        self.seen.update_state(tf.reduce_mean(x))\n"
    "        if training:\n"
    "            self.add_loss(0.01 * tf.reduce_sum(tf.square(self.g)))\n"
    "        return x * self.g * self.inner['dense'](x)\n"
    "class Masked(keras.layers.Layer):\n"
    "    def __init__(self):\n"
    "        super().__init__()\n"
    "        self.soft = keras.layers.Softmax()\n"
    "    def call(self, x):\n"
    "        shown = tf.range(tf.shape(x)[-1]) < 2\n"
    "        return self.soft(x * 1.0, mask=tf.broadcast_to(shown, tf.shape(x))) * 1.0\n"
    "class Twice(keras.layers.Layer):\n"
    "    def __init__(self):\n"
    "        super().__init__()\n"
    "        self.layers_made = []\n"
    "        for _ in range(2):\n"
    "            self.layers_made.append(keras.layers.Dense(3, 'tanh'))\n"
    "        self.layers_made.append(self.layers_made[1])\n"
    "    def call(self, x):\n"
    "        for layer in self.layers_made:\n"
    "            x = layer(x)\n"
    "        return x\n"
)


def _body(rng: random.Random) -> str:
    """Return statements that compute ``h`` of the input ``i``."""
    shape = rng.choice(("(3,)", "(3,)", "(4, 4, 2)"))
    lines = [f"i = keras.Input({shape})", "h = i"]
    if shape != "(3,)":
        lines += [f"h = {each}(h)" for each in rng.choices(_BODY[3], k=rng.randrange(1, 4))]
        lines.append(
            f"h = {rng.choice(('keras.layers.Flatten()', 'keras.layers.GlobalAveragePooling2D()'))}(h)"
        )
    for each in rng.choices(_BODY[1], k=rng.randrange(1, 4)):
        how = rng.random()
        made = each if each != "twice" else "Twice()"
        if how < 0.15:
            lines += ["g = h", f"h = {made}(h)", "h = keras.layers.Concatenate()([g, h])"]
        elif how < 0.25:
            lines.append(f"h = keras.Sequential([{made}])(h)")
        else:
            lines.append(f"h = {made}(h)")
    return (
        f"x = operand('float32', (6, *{shape}), 'ordinary', 3) * {rng.choice((1, 1, 8))}\n"
        + "\n".join(lines)
        + "\n"
    )


def _heads(names: Sequence[str], rng: random.Random) -> str:
    """Return statements that make the outputs ``outs``, and labels, losses and metrics for each."""
    lines = ["outs, ys, losses, metrics = [], [], [], []"]
    for name in names:
        layers, labels, losses, metrics = (rng.choice(each) for each in _HEADS[name])
        lines += ["o = h", *(f"o = {each}(o)" for each in _apart(layers))]
        lines.append(
            f"outs.append(o); ys.append({labels}); losses.append({losses}); metrics.append({metrics})"
        )
    return "\n".join(lines) + "\n"


def _apart(layers: str) -> list[str]:
    """Divide expressions of layers at the commas between them."""
    made, depth = [""], 0
    for letter in layers:
        depth += (letter in "([") - (letter in ")]")
        if letter == "," and not depth:
            made.append("")
        else:
            made[-1] += letter
    return [each.strip() for each in made]


@FAMILY.of("keras.networks.fit")
def trained(function: str, rng: random.Random) -> Call:
    """A network with one head or several: training, evaluation, prediction, weights saved and read again."""
    names = rng.choices(list(_HEADS), k=rng.choice((1, 1, 2, 3)))
    several = len(names) > 1
    given = [f"optimizer={rng.choice(_OPTIMIZERS)}"]
    given.append("loss=losses" if several else "loss=losses[0]")
    if several and rng.random() < 0.5:
        given.append(f"loss_weights={[rng.choice((0.5, 1.0, 2.0)) for _ in names]}")
    if rng.random() < 0.7:
        kind = rng.choice(("metrics", "weighted_metrics"))
        given.append(f"{kind}={'[[each] for each in metrics]' if several else 'metrics'}")
    if rng.random() < 0.75:
        given.append("run_eagerly=True")
    more = ["batch_size=3", "epochs=2", "shuffle=False", "verbose=0"]
    if rng.random() < 0.3:
        more.append("sample_weight=" + (f"[np.arange(6.0)] * {len(names)}" if several else "np.arange(6.0)"))
    elif not several and names[0] in ("classes", "logits", "binary") and rng.random() < 0.4:
        more.append("class_weight={0: 0.5, 1: 2.0, 2: 1.0}")
    if rng.random() < 0.4:
        more.append(
            "validation_data=(x[:4], [y[:4] for y in ys])"
            if several
            else "validation_data=(x[:4], ys[0][:4])"
        )
    callback = rng.choice(
        (
            "",
            "",
            "keras.callbacks.EarlyStopping('loss', patience=0, restore_best_weights=True)",
            "keras.callbacks.LearningRateScheduler(lambda epoch, rate: rate * 0.5)",
            "tools.recorder(seen, stop_batch=0)",
            "keras.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: seen.append(sorted(logs)))",
        )
    )
    if callback:
        more.append(f"callbacks=[{callback}]")
    frozen = "model.layers[-2].trainable = False\n" if rng.random() < 0.15 else ""
    before = (
        f"{_PREPARED}seen = []\n{_body(rng)}{_heads(names, rng)}"
        f"model = tools.fixed(keras.Model(i, {'outs' if several else 'outs[0]'}))\n{frozen}"
        "def run():\n"
        f"    model.compile({', '.join(given)})\n"
        f"    found = tools.figures(model.fit(x, {'ys' if several else 'ys[0]'}, {', '.join(more)}))\n"
        f"    tested = tools.figures(model.evaluate(x, {'ys' if several else 'ys[0]'}, batch_size=4, verbose=0))\n"
        "    counts = len(model.weights), len(model.trainable_weights), model.count_params(), len(model.layers)\n"
        "    return found, tested, counts, model.predict(x, verbose=0), model.get_weights(), seen\n"
    )
    return Call("run()", [], TRAINED, (), before)


@FAMILY.of("keras.networks.loop")
def loops(function: str, rng: random.Random) -> Call:
    """A training loop of one's own, or a train step in a model, with losses, metrics and a copy of the weights."""
    name = rng.choice(list(_HEADS))
    decorated = "@tf.function\n" if rng.random() < 0.5 else ""
    clip = rng.choice(
        ("", "", "    found = [tf.clip_by_norm(each, 0.5) if each is not None else None for each in found]\n")
    )
    of_class = rng.choice(("", "    def train_step(self, data):\n        return step_of(self, data)\n"))
    steps = (
        "model.compile(optimizer, run_eagerly=True)\n    found = tools.figures(model.fit(x, y, batch_size=3, epochs=2, "
        "shuffle=False, verbose=0))"
        if of_class
        else "found = [step(x[k:k + 3], y[k:k + 3]) for _ in range(2) for k in (0, 3)]"
    )
    before = (
        f"{_PREPARED}{_body(rng)}{_heads([name], rng)}"
        "class Own(keras.Model):\n"
        f"    pass\n{of_class}"
        "model, y = tools.fixed(Own(i, outs[0])), ys[0]\n"
        f"optimizer = {rng.choice(_OPTIMIZERS)}\n"
        "loss_of = keras.losses.get(losses[0])\n"
        "mean, metric = keras.metrics.Mean(name='mean'), keras.metrics.get(metrics[0])\n"
        "if metrics[0] == 'accuracy':\n"
        "    metric = keras.metrics.MeanSquaredError()\n"
        f"{decorated}def step(x, y):\n"
        "    with tf.GradientTape() as tape:\n"
        "        p = model(x, training=True)\n"
        "        loss = tf.reduce_mean(loss_of(tf.cast(y, 'float32'), p)) + sum(model.losses, 0.0)\n"
        "    found = tape.gradient(loss, model.trainable_variables)\n"
        f"{clip}"
        "    optimizer.apply_gradients((g, v) for g, v in zip(found, model.trainable_variables) if g is not None)\n"
        "    mean.update_state(loss)\n"
        "    return loss\n"
        "def step_of(self, data):\n"
        "    return {'own': step(*data[:2]), 'rate': self.optimizer.learning_rate + 0.0}\n"
        "def run():\n"
        f"    {steps}\n"
        "    value = np.float32(mean.result())\n"
        "    return found, value, len(model.losses), model.get_weights(), model(x, training=False)\n"
    )
    return Call("run()", [], TRAINED, (), before)

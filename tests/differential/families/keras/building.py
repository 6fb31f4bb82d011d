"""Recipes for layers of a program with state: shapes, variables and results after a model was built."""

import random

from programs import Call, Family, Tolerance

FAMILY = Family()

#: Tolerance for short sums and products, more than once.
CLOSE = Tolerance(128, 32)

#: Statements of ``call`` that change the state of the layer, and statements that compute.
_CHANGES = (
    "self.n.assign_add(1.0)",
    "self.n.assign(self.n * 2.0 + tf.reduce_sum(x))",
    "self.v.assign(0.5 * self.v + 0.5 * tf.reduce_mean(x, 0))",
    "self.v.assign_sub(tf.ones(3))",
    "self.v.scatter_nd_update([[0]], [7.0])",
    "self.n.assign_add(tf.cast(tf.shape(x)[0], tf.float32))",
    "self.m.update_state(x)",
    "self.add_loss(tf.reduce_mean(x))",
)
_STEPS = (
    "x = x * self.v",
    "x = x + self.n",
    "x = x - tf.reduce_mean(x, 0)",
    "x = self.d(x)",
    "x = tf.nn.relu(self.d(x)) + x",
    "x = tf.concat([x, x], 0)[:tf.shape(x)[0]]",
    "x = tf.reshape(tf.transpose(x), tf.shape(x))",
    "x = tf.map_fn(lambda row: row * 2.0, x)",
    "x = tf.scan(lambda total, row: total + row, x)",
    "x = tf.cond(tf.shape(x)[0] > 3, lambda: x, lambda: -x)",
    "x = tf.while_loop(lambda i, h: i < 3, lambda i, h: (i + 1, h * 0.5), [tf.constant(0), x])[1]",
    "x = tf.where(x > 0, x, tf.zeros_like(x))",
    "tf.debugging.assert_equal(tf.shape(x)[1], 3)",
    "tf.debugging.assert_non_negative(x + 100.0)",
    "x = self.b(x, training=True)",
    "x = tf.reshape(x, (-1, 3))",
)
#: Last statements, which change the shape.
_ENDS = (
    "return x",
    "return tf.reduce_sum(x, 1)",
    "return tf.reduce_sum(x, 0)",
    "return {'a': x, 'b': tf.shape(x)}",
    "return x[:, :2], x[0]",
    "return tf.argmax(x, 1)",
    "return tf.reshape(x, [-1, 3, 1])",
    "return tf.tile(x, [1, 2])",
    "return tf.boolean_mask(x, x > 0)",
    "return x + tf.reshape(tf.range(12.0), (4, 3))",
    "return tf.cond(tf.shape(x)[0] > 3, lambda: x, lambda: x[:, :1])",
)


@FAMILY.of("keras.Layer")
def layer(function: str, rng: random.Random) -> Call:
    """A layer with state in a functional model: its shapes and state, what it computes, and its state then."""
    changes = rng.sample(_CHANGES, rng.randrange(1, 4))
    lines = [*changes, *rng.choices(_STEPS, k=rng.randrange(1, 4))]
    rng.shuffle(lines)
    lines.append(rng.choice(_ENDS))
    body = "".join(f"        {line}\n" for line in lines)
    before = (
        "keras, tools = tf.keras, keras_tools()\n"
        "class Own(keras.layers.Layer):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.n = tf.Variable(1.0, trainable=False)\n"
        "        self.v = tf.Variable([1.0, 2.0, 3.0], trainable=False)\n"
        "        self.d = keras.layers.Dense(3, kernel_initializer='ones')\n"
        "        self.b = keras.layers.BatchNormalization()\n"
        "        self.m = keras.metrics.Mean()\n"
        "    def call(self, x):\n"
        f"{body}"
        "    def state(self):\n"
        "        kept = [self.n.numpy(), self.v.numpy(), np.float32(self.m.result())]\n"
        "        return kept + [np.array(w) for w in self.d.get_weights() + self.b.get_weights()]\n"
        "def shapes(found):\n"
        "    flat = [found[name] for name in sorted(found)] if isinstance(found, dict) else found\n"
        "    flat = list(flat) if isinstance(flat, (list, tuple)) else [flat]\n"
        "    return [(list(each.shape), str(each.dtype)) for each in flat]\n"
        "def run(x0):\n"
        "    own = Own()\n"
        "    start = keras.Input((3,))\n"
        "    outputs = own(start)\n"
        "    built = shapes(outputs), own.state(), len(own.losses)\n"
        "    model = keras.Model(start, outputs)\n"
        "    return built, model(x0), own.state(), len(own.losses)\n"
    )
    return Call("run(x0)", [("float32", (4, 3), "unit")], CLOSE, (), before)


@FAMILY.of("keras.Model")
def model(function: str, rng: random.Random) -> Call:
    """A subclass of ``Model`` with state: after ``build`` or a first call, and after a training."""
    changes = rng.sample(_CHANGES[:6], rng.randrange(1, 3))
    lines = [*changes, *rng.choices(_STEPS[:12], k=rng.randrange(1, 3))]
    rng.shuffle(lines)
    body = "".join(f"        {line}\n" for line in lines)
    first = rng.choice(("model.build((None, 3))", "model.build([4, 3])", "model(x0)", "pass"))
    before = (
        "import warnings\n"
        "keras = tf.keras\n"
        "class Own(keras.Model):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.n = tf.Variable(0.5, trainable=False)\n"
        "        self.v = tf.Variable([1.0, 0.5, 0.25], trainable=False)\n"
        "        self.d = keras.layers.Dense(3, kernel_initializer='ones')\n"
        "        self.e = keras.layers.Dense(1, kernel_initializer='ones')\n"
        "    def call(self, x):\n"
        f"{body}"
        "        return self.e(x)\n"
        "    def state(self):\n"
        "        return [self.n.numpy(), self.v.numpy(), self.built, self.d.built, self.e.get_weights()]\n"
        "def run(x0):\n"
        "    model = Own()\n"
        "    with warnings.catch_warnings(record=True) as heard:\n"
        "        warnings.simplefilter('always')\n"
        f"        {first}\n"
        f"    built = model.state(), [each.category.__name__ for each in heard] if {'build' in first} else None\n"
        "    model.compile(keras.optimizers.SGD(0.0009765625), 'mse', run_eagerly=True)\n"
        "    found = model.fit(x0, x0[:, :1], batch_size=2, shuffle=False, verbose=0)\n"
        "    return built, np.float32(found.history['loss']), model.state()\n"
    )
    return Call("run(x0)", [("float32", (4, 3), "unit")], CLOSE, (), before)

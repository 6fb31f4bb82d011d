"""Recipes for `tf.IndexedSlices`: gradients of lookups with repeated numbers, and what takes them."""

import random

from families.keras.losses import CLOSE
from families.keras.optimizers import construction
from programs import Call, Family

FAMILY = Family()

#: Functions of a matrix with four rows of three columns: their gradients pass slices on, or make tensors of them.
_BEFORE = (
    "x",
    "x",
    "x",
    "tf.identity(x)",
    "-x",
    "x + 1.0",
    "1.0 - x",
    "x + x",
    "x - tf.ones([4, 3])",
    "x * 2.0",
    "tf.add_n([x, x])",
    "tf.add_n([x, tf.ones([4, 3])])",
    "tf.cast(tf.cast(x, tf.float64), tf.float32)",
    "tf.concat([x, x], 0)",
    "tf.concat([tf.ones([1, 3]), x], 0)",
    "tf.concat([x, tf.ones([4, 2])], 1)",
    "tf.concat([x, x], -1)",
    "tf.ensure_shape(x, [4, 3])",
    "tf.identity_n([x])[0]",
    "tf.nn.bias_add(x, [1.0, 2.0, 3.0])",
    "tf.reshape(x, [4, 3])",
    "tf.nn.relu(x)",
    "tf.gather(x, [0, 1, 1, 3])",
    "tf.grad_pass_through(tf.round)(x)",
)
_LOOKUPS = (
    "tf.gather(y, {i})",
    "tf.gather(y, {i})",
    "tf.gather(y, {i}, axis=0)",
    "tf.gather(y, {i}, axis=tf.constant(0))",
    "tf.gather(y, {i}, axis=-2)",
    "tf.gather(y[:4], [[0, 0], [1, 0], [0, 0], [1, 1]], batch_dims=1)",
    "tf.gather(y, [0, 2, 0], axis=1)",
    "tf.nn.embedding_lookup(y, {i})",
    "tf.nn.embedding_lookup(y, {i}, max_norm=0.5)",
    "tf.nn.embedding_lookup([y, y], {i})",
    "tf.gather_nd(y, [[0], [0], [2]])",
    "tf.gather_nd(y, [[0, 1], [0, 1]])",
    "tf.gather(y, tf.constant({i}, tf.int64))",
    "tf.boolean_mask(y, [True] * 3 + [False] * (y.shape[0] - 3))",
)
#: What is done with a gradient `g`, and with that of a vector, `h`.
_AFTER = (
    "g",
    "g",
    "-g",
    "tf.clip_by_norm(g, 1.5)",
    "tf.clip_by_norm(g, 1.5, axes=[1])",
    "tf.clip_by_value(g, -0.5, 0.75)",
    "tf.clip_by_global_norm([g, None, h], 1.5)",
    "tf.clip_by_global_norm([g, h], 1.5, use_norm=tf.constant(3.0))",
    "tf.linalg.global_norm([g, h])",
    "tf.add_n([g, g])",
    "tf.add_n([g, v])",
    "tf.cast(g, tf.float64)",
    "tf.identity(g)",
    "tf.stop_gradient(g)",
    "tf.math.scalar_mul(0.5, g)",
    "tf.convert_to_tensor(g)",
    "tf.reduce_sum(g)",
    "tf.square(g)",
    "tf.constant(2.0) * g",
    "g * 2.0",
    "g[0]",
    "tf.zeros_like(g)",
    "tf.is_tensor(g)",
    "tf.math.accumulate_n([g, g])",
    "[g.shape, g.dtype, g.values, g.indices, g.dense_shape]",
    "v1.convert_to_tensor_or_indexed_slices(g)",
    "v.assign_sub(g)",
    "v.scatter_sub(g)",
    "v.scatter_update(tf.IndexedSlices(g.values[:1], g.indices[:1]))",
    "v.scatter_max(g)",
    "v.scatter_mul(g)",
    "tf.convert_to_tensor(tf.IndexedSlices(g.values, g.indices))",
    "tf.gradients(v, v)",
)


def _numbers(rng: random.Random) -> str:
    length = rng.choice((1, 2, 3, 3, 5))
    numbers = [rng.randrange(4) for _ in range(length)]
    if rng.random() < 0.7:
        numbers += [numbers[0]]
    if rng.random() < 0.2:
        return str([numbers, numbers[::-1]])
    return str(numbers) if rng.random() < 0.95 else "0"


def _taped(rng: random.Random) -> str:
    """Source text that computes `g` and `h` from a matrix or its variable `v`, and a vector."""
    lookup = rng.choice(_LOOKUPS).format(i=_numbers(rng))
    more = rng.choice(
        ("", "", "", " + tf.reduce_sum(x)", f" + tf.reduce_sum(tf.gather(x, {_numbers(rng)}) ** 2)")
    )
    source, watch = rng.choice((("v", "pass"), ("x", "tape.watch(x)")))
    return (
        "    v, w = tf.Variable(a), tf.Variable(b)\n"
        "    with tf.GradientTape() as tape:\n"
        "        x = tf.convert_to_tensor(v)\n"
        f"        {watch}\n"
        f"        y = {rng.choice(_BEFORE)}\n"
        f"        found = {lookup}\n"
        f"        loss = tf.reduce_sum(found * found){more} + tf.reduce_sum(w * w)\n"
        f"    g, h = tape.gradient(loss, [{source}, w])\n"
    )


@FAMILY.of("IndexedSlices")
def slices(function: str, rng: random.Random) -> Call:
    """A gradient of a lookup, and an operation on it."""
    before = f"def run(a, b):\n{_taped(rng)}    return {rng.choice(_AFTER)}\n"
    return Call("run(x0, x1)", _OPERANDS, CLOSE, (), before)


_OPERANDS = [("float32", (4, 3), "unit"), ("float32", (3,), "unit")]
_KERAS = ("SGD", "Adam", "RMSprop", "Adagrad")
_LEGACY = (
    "v1.train.GradientDescentOptimizer(0.5)",
    "v1.train.MomentumOptimizer(0.5, 0.9)",
    "v1.train.MomentumOptimizer(0.5, 0.9, use_nesterov=True)",
    "v1.train.AdagradOptimizer(0.5)",
    "v1.train.AdamOptimizer(0.5)",
    "v1.train.RMSPropOptimizer(0.5)",
    "v1.train.RMSPropOptimizer(0.5, momentum=0.5, centered=True)",
)


def _constraint(rng: random.Random) -> str:
    return ", constraint=lambda v: tf.clip_by_value(v, -1., 1.)" if rng.random() < 0.1 else ""


@FAMILY.of("IndexedSlices.optimizers")
def optimized(function: str, rng: random.Random) -> Call:
    """A few steps of an optimizer on a table, with other rows in each, and on a vector."""
    made = rng.choice(_LEGACY)
    if rng.random() < 0.75:
        made = construction(f"keras.optimizers.{rng.choice(_KERAS)}", rng)
    rows = [_numbers(rng) for _ in range(4)]
    dense = rng.choice(("", "", "", " + tf.reduce_sum(e ** 2)"))
    before = (
        f"optimizer = {made}\n"
        "def train(a, b):\n"
        f"    e, w = tf.Variable(a{_constraint(rng)}), tf.Variable(b)\n"
        f"    for rows in ({', '.join(rows)}):\n"
        "        with tf.GradientTape() as tape:\n"
        f"            loss = tf.reduce_sum((tf.gather(e, rows) - 0.3) ** 2 * w){dense}\n"
        "        optimizer.apply_gradients(zip(tape.gradient(loss, [e, w]), [e, w]))\n"
        "    return e, w\n"
    )
    return Call("train(x0, x1)", _OPERANDS, CLOSE, (), before)


@FAMILY.of("IndexedSlices.embedding")
def embedded(function: str, rng: random.Random) -> Call:
    """A model with an embedding is trained on padded rows."""
    made = construction(f"keras.optimizers.{rng.choice(_KERAS)}", rng)
    regularizer = rng.choice(("", "", ", embeddings_regularizer='l2'"))
    before = (
        "keras, tools = tf.keras, keras_tools()\n"
        "def train(a, b):\n"
        "    model = keras.Sequential([keras.Input((4,)), "
        f"keras.layers.Embedding(5, 2{regularizer}), keras.layers.Flatten(), keras.layers.Dense(1)])\n"
        "    tools.fixed(model)\n"
        f"    model.compile({made}, 'mse', run_eagerly=True)\n"
        "    x = np.array([[1, 2, 0, 0], [3, 1, 1, 0], [4, 4, 2, 0]])\n"
        "    found = model.fit(x, np.array([[1.], [2.], [3.]]), epochs=3, batch_size=2, shuffle=False, verbose=0)\n"
        "    return tools.figures(found), model.get_weights()\n"
    )
    return Call("train(x0, x1)", _OPERANDS, CLOSE, (), before)


_IN_GRAPH = (
    "g",
    "-g",
    "tf.clip_by_norm(g, 1.5)",
    "tf.clip_by_value(g, -0.5, 0.75)",
    "tf.clip_by_global_norm([g], 1.5)",
    "tf.linalg.global_norm([g])",
    "tf.add_n([g, g])",
    "tf.cast(g, tf.float64)",
    "tf.identity(g)",
    "tf.convert_to_tensor(g)",
    "e.scatter_sub(g)",
    "e.assign_sub(g)",
)


@FAMILY.of("IndexedSlices.graphs")
def graphs(function: str, rng: random.Random) -> Call:
    """The gradient of a lookup in a graph, and an operation on it; or steps of an optimizer."""
    lookup = rng.choice(_LOOKUPS[:-1]).format(i="i" if rng.random() < 0.5 else _numbers(rng))
    if "tf.constant(i," in lookup:
        lookup = "tf.gather(y, tf.cast(i, tf.int64))"
    more = rng.choice(("", "", "", " + tf.reduce_sum(x)", " + tf.reduce_sum(tf.gather(x, [1, 1]) ** 2)"))
    if rng.random() < 0.5:
        result = rng.choice(_IN_GRAPH)
        steps, last = "g = tf.gradients(loss, e)[0]", f"session.run({result}, {{i: [0, 2, 0]}})"
    else:
        steps = f"g = {rng.choice(_LEGACY)}.minimize(loss)"
        last = "[session.run(g, {i: each}) for each in ([0, 2, 0], [1, 1], [3])] and session.run(e)"
    before = (
        "def run(a, b):\n"
        "    with v1.Graph().as_default(), v1.Session() as session:\n"
        f"        e = v1.get_variable('e', initializer=a.numpy(), use_resource={rng.random() < 0.6})\n"
        "        x, i = tf.convert_to_tensor(e), v1.placeholder(tf.int32, [None])\n"
        f"        y = {rng.choice(_BEFORE)}\n"
        f"        found = {lookup}\n"
        f"        loss = tf.reduce_sum(found * found){more}\n"
        f"        {steps}\n"
        "        session.run(v1.global_variables_initializer())\n"
        f"        return {last}\n"
    )
    return Call("run(x0, x1)", _OPERANDS, CLOSE, (), before)

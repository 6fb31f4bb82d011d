"""Recipes for Keras layers with fixed weights, for inputs of every type and rank.

Longer than 300 lines: the recipes of one family, one after the other.
"""

import random

from programs import Call, Family, Tolerance

FAMILY = Family()

#: Tolerance for sums of a few products.
SUMS = Tolerance(128, 32)

#: Tolerance for gradients of normalization, which cancel terms of this size.
NORMALIZED = Tolerance(128, 32, terms=1)

#: Tolerance for float32 gradients of layers that compute in float16, which has 13 bits less.
_OF_HALVES = Tolerance(16 * 2**13, 8 * 2**13, terms=1)

_TYPES = ("float32", "float32", "float32", "float64", "float16", "int32", "int64", "uint8", "int8", "bool")
_RANKS = ((4, 3), (4, 3), (2, 3, 4), (2, 4, 5, 3), (3,), (), (0, 3), (1, 1), (2, 2, 3, 2, 2))
_IMAGES = ((2, 5, 6, 3), (1, 4, 4, 1), (2, 7, 5, 2), (0, 4, 4, 3), (4, 3), (2, 3, 4), (2, 1, 1, 3))

_BEFORE = "keras, tools = tf.keras, keras_tools()\n"


def _dtype(rng: random.Random) -> str:
    return rng.choice(_TYPES)


def _given(rng: random.Random, options: dict[str, tuple[str, ...]], chance: float = 0.35) -> str:
    chosen = [f"{name}={rng.choice(values)}" for name, values in options.items() if rng.random() < chance]
    if rng.random() < 0.1:
        chosen.append(rng.choice(("dtype='float64'", "dtype='float16'", "dtype='float32'")))
    return ", ".join(chosen)


def _as_given(name: str, rng: random.Random) -> str:
    return rng.choice(
        (name, name, name, name, f"{name}.numpy()", f"tf.Variable({name})", f"{name}.numpy().tolist()")
    )


def _called(
    layer: str,
    operands: list[tuple[str, tuple[int, ...], str]],
    rng: random.Random,
    call: str = "",
    tolerance: Tolerance = SUMS,
) -> Call:
    """Create a call of a layer with fixed weights: alone, in a functional model, or with its gradient."""
    shape, dtype = operands[0][1], operands[0][0]
    inner = _as_given("x0", rng)
    how = rng.random()
    before = f"{_BEFORE}layer = {layer}\n"
    if how < 0.65 or not shape:
        before += (
            f"def run(x0):\n    layer.build(tuple(x0.shape)) if layer.built is False else None\n"
            f"    tools.fixed(layer)\n    found = layer({inner}{call})\n"
            "    types = [w.dtype == layer.variable_dtype for w in layer.weights]\n"
            "    return found, layer.built, len(layer.weights), types, layer.losses\n"
        )
    elif how < 0.85:
        before += (
            f"i = keras.Input({shape[1:]}, dtype={dtype!r})\no = layer(i{call})\n"
            "def run(x0):\n    model = tools.fixed(keras.Model(i, o))\n"
            "    return list(o.shape), str(o.dtype), model(x0), model.predict(x0, verbose=0)\n"
        )
    else:
        before += (
            "def run(x0):\n    layer(x0)\n    tools.fixed(layer)\n"
            f"    with tf.GradientTape() as tape:\n        tape.watch(x0)\n        found = layer(x0{call})\n"
            "        loss = tf.reduce_sum(tf.cast(found, 'float32') ** 2)\n"
            "    return found, tape.gradient(loss, [x0, *layer.trainable_weights])\n"
        )
        operands = [("float32", shape, operands[0][2])]
    if "dtype='float16'" in layer:
        tolerance = _OF_HALVES
    return Call("run(x0)", operands, tolerance, (), before)


_ACTIVATIONS = (
    "'relu'",
    "'tanh'",
    "'softmax'",
    "'gelu'",
    "None",
    "'linear'",
    "'sigmoid'",
    "'elu'",
    "'nothing'",
    "tf.nn.relu",
)


@FAMILY.of("keras.layers.Dense")
def dense(function: str, rng: random.Random) -> Call:
    units = (
        rng.choice(("2", "1", "5", "0", "-1", "2.0", "'a'", "np.int64(3)"))
        if rng.random() < 0.2
        else rng.choice(("2", "4"))
    )
    options = _given(
        rng,
        {
            "activation": _ACTIVATIONS,
            "use_bias": ("True", "False"),
            "kernel_initializer": ("'ones'", "keras.initializers.Constant(0.5)", "'zeros'"),
            "bias_initializer": ("'ones'", "'zeros'"),
            "activity_regularizer": ("'l2'", "keras.regularizers.L1(0.5)", "None"),
        },
        0.25,
    )
    shape = rng.choice(_RANKS)
    if rng.random() < 0.1:
        more = rng.choice(("input_dim=3", "input_shape=(3,)", "input_shape=3", "nothing=1", "batch_size=4"))
        options += f"{', ' if options else ''}{more}"
    return _called(
        f"keras.layers.Dense({units}{', ' if options else ''}{options})",
        [(_dtype(rng), shape, "ordinary")],
        rng,
    )


@FAMILY.of("keras.layers.Conv2D")
def convolutions(function: str, rng: random.Random) -> Call:
    options = _given(
        rng,
        {
            "strides": ("2", "(1, 2)", "1", "0"),
            "padding": ("'same'", "'valid'", "'SAME'", "'causal'"),
            "dilation_rate": ("2", "(1, 2)", "1"),
            "activation": ("'relu'", "'tanh'"),
            "use_bias": ("True", "False"),
            "groups": ("1", "1", "2", "3"),
            "activity_regularizer": ("'l2'", "keras.regularizers.L1(0.5)", "None"),
        },
        0.25,
    )
    size = rng.choice(("2", "3", "(2, 1)", "1", "[1, 2]", "(1,)", "9"))
    filters = rng.choice(("2", "3", "6", "4"))
    layer = f"keras.layers.Conv2D({filters}, {size}{', ' if options else ''}{options})"
    return _called(layer, [(_dtype(rng), rng.choice(_IMAGES), "ordinary")], rng)


@FAMILY.of("keras.layers.MaxPooling2D keras.layers.AveragePooling2D keras.layers.GlobalAveragePooling2D")
def pools(function: str, rng: random.Random) -> Call:
    if "Global" in function:
        options = _given(
            rng,
            {"keepdims": ("True", "False"), "data_format": ("'channels_last'", "'channels_first'", "'x'")},
        )
    else:
        options = _given(
            rng,
            {
                "pool_size": ("2", "(1, 2)", "3", "0"),
                "strides": ("2", "(1, 2)", "1", "None"),
                "padding": ("'same'", "'valid'", "'x'"),
            },
        )
    return _called(f"{function}({options})", [(_dtype(rng), rng.choice(_IMAGES), "ordinary")], rng)


@FAMILY.of("keras.layers.Flatten keras.layers.Reshape")
def shapes(function: str, rng: random.Random) -> Call:
    shape = rng.choice(_RANKS)
    if function.endswith("Flatten"):
        options = _given(rng, {"data_format": ("'channels_last'", "None")}, 0.2)
    else:
        options = rng.choice(
            (
                "(3,)",
                "(-1,)",
                "(1, 3)",
                "(-1, 2)",
                "(2, -1)",
                "()",
                "(3, 1, -1)",
                "[3]",
                "(-1, -1)",
                "3",
                "(4, 3)",
            )
        )
    return _called(f"{function}({options})", [(_dtype(rng), shape, "ordinary")], rng)


@FAMILY.of(
    "keras.layers.Activation keras.layers.ReLU keras.layers.Softmax keras.layers.Rescaling",
    "keras.layers.Dropout keras.layers.Lambda",
)
def elementwise(function: str, rng: random.Random) -> Call:
    name = function.rpartition(".")[2]
    call = ""
    if name == "Activation":
        options = rng.choice(
            (
                *_ACTIVATIONS,
                *map(
                    repr,
                    ("selu", "softplus", "softsign", "hard_sigmoid", "silu", "swish", "mish", "exponential"),
                ),
                *map(repr, ("leaky_relu", "relu6", "log_softmax")),
            )
        )
    elif name == "ReLU":
        options = _given(
            rng,
            {
                "max_value": ("1.0", "6", "-1.0", "None"),
                "negative_slope": ("0.1", "0.0", "-0.5"),
                "threshold": ("0.5", "0.0", "-1.0"),
            },
        )
    elif name == "Softmax":
        options = _given(rng, {"axis": ("-1", "0", "1", "2", "(0, 1)", "[-1]")})
    elif name == "Rescaling":
        options = rng.choice(("0.5", "1.0 / 255", "2, offset=1", "[1.0, 2.0, 3.0]", "0.5, offset=-1.0", "2"))
    elif name == "Lambda":
        options = rng.choice(
            (
                "lambda x: x * 2",
                "lambda x: tf.reduce_sum(x, -1)",
                "tf.abs",
                "lambda x, k: x + k, arguments={'k': 1}",
                "3",
            )
        )
    else:
        options = rng.choice(("0.5", "0.0", "0", "1.0", "1.5", "-0.1", "'x'", "0.3, seed=1"))
        call = rng.choice(
            ("", ", training=False", ", training=True" if options in ("0.0", "0", "1.0") else "")
        )
    dtype = _dtype(rng) if name != "Lambda" else rng.choice(("float32", "float16", "float64", "int32"))
    kind = "ordinary" if rng.random() < 0.8 else "special"
    return _called(f"{function}({options})", [(dtype, rng.choice(_RANKS), kind)], rng, call)


@FAMILY.of("keras.layers.BatchNormalization keras.layers.LayerNormalization")
def normalizations(function: str, rng: random.Random) -> Call:
    batch = function.endswith("BatchNormalization")
    options = _given(
        rng,
        {
            "axis": ("-1", "1", "0", "2", "-2", "5")
            if batch
            else ("-1", "1", "[1, 2]", "-2", "(-1,)", "0", "5"),
            "epsilon": ("0.1", "1e-5"),
            "center": ("True", "False"),
            "scale": ("True", "False"),
            **({"momentum": ("0.5", "0.0", "1.0")} if batch else {}),
        },
        0.2,
    )
    call = rng.choice(("", ", training=True", ", training=False")) if batch else ""
    operands: list[tuple[str, tuple[int, ...], str]] = [(_dtype(rng), rng.choice(_RANKS), "ordinary")]
    return _called(f"{function}({options})", operands, rng, call, NORMALIZED)


@FAMILY.of("keras.layers.Embedding")
def embeddings(function: str, rng: random.Random) -> Call:
    options = rng.choice(
        (
            "4, 2",
            "4, 3",
            "5, 2, embeddings_initializer='ones'",
            "2, 2",
            "0, 2",
            "4, 2, input_length=3",
            "4.0, 2",
        )
    )
    shape = rng.choice(((4,), (4, 3), (2, 3, 2), (), (0,), (2, 1)))
    dtype = rng.choice(("int32", "int64", "uint8", "float32", "int8", "bool", "int16", "float64"))
    return _called(f"keras.layers.Embedding({options})", [(dtype, shape, "index")], rng)


@FAMILY.of("keras.layers.Add keras.layers.Concatenate")
def merges(function: str, rng: random.Random) -> Call:
    shape: tuple[int, ...] = rng.choice(_RANKS)
    other: tuple[int, ...] = shape
    if rng.random() < 0.4:
        others = ((*shape[:-1], 1), (*shape[:-1], 5), (1, *shape[1:]), rng.choice(_RANKS[:4]))
        other = rng.choice(others)
    options = _given(rng, {"axis": ("-1", "1", "0", "-2")}) if "Concat" in function else ""
    operands = [
        (_dtype(rng), shape, "ordinary"),
        (_dtype(rng) if rng.random() < 0.4 else "float32", other, "ordinary"),
    ]
    inputs = rng.choice(("[x0, x1]", "[x0, x1]", "(x0, x1)", "[x0, x1, x0]", "[x0]"))
    if rng.random() < 0.3 and len(shape) == len(other) > 1 and shape[0] == other[0]:
        before = (
            f"{_BEFORE}a, b = keras.Input({shape[1:]}), keras.Input({other[1:]})\n"
            f"o = {function}({options})([a, b])\n"
            "def run(x0, x1):\n    return list(o.shape), str(o.dtype), keras.Model([a, b], o)([x0, x1])\n"
        )
        return Call("run(x0, x1)", operands, SUMS, (), before)
    return Call(f"tf.{function}({options})({inputs})", operands, SUMS, ())


@FAMILY.of("keras.layers.Layer")
def of_the_program(function: str, rng: random.Random) -> Call:
    """A subclassed layer: forms of ``add_weight``, and ``call`` with and without ``training``."""
    weight = rng.choice(
        (
            "shape=(input_shape[-1], 2)",
            "shape=tf.TensorShape([3, 2])",
            "shape=[3, 2]",
            "shape=tf.TensorShape([3, 2]), initializer='ones'",
            "shape=(3, 2), initializer='ones', trainable=False",
            "shape=(3, 2), initializer=keras.initializers.Constant(0.5), name='w'",
            "shape=(3, 2), initializer=lambda shape, dtype=None: tf.ones(shape, dtype)",
            "shape=(None, 2)",
            "shape=(3, 2), dtype='float64'",
            "shape=(3, 2), initializer='nothing'",
            "initializer='ones'",
            "shape=3",
        )
    )
    body = rng.choice(
        ("tf.matmul(x, tf.cast(self.w, x.dtype))", "x * tf.reduce_sum(tf.cast(self.w, x.dtype))", "x")
    )
    arguments = rng.choice(("self, x", "self, x", "self, x, training=None", "self, x, training=False"))
    options = rng.choice(
        ("", "", "dtype='float64'", "name='own'", "trainable=False", "nothing=1", "dtype='nothing'")
    )
    loss = rng.choice(
        ("", "", "self.add_loss(tf.reduce_sum(x))", "self.add_loss([x, x])", "self.add_loss(1.0)")
    )
    before = (
        f"{_BEFORE}class Own(keras.layers.Layer):\n"
        "    def build(self, input_shape):\n"
        f"        self.w = self.add_weight({weight})\n"
        f"    def call({arguments}):\n"
        f"        {loss or 'pass'}\n"
        f"        return {body}\n"
        "def run(x0):\n"
        f"    layer = Own({options})\n"
        f"    layer({_as_given('x0', rng)})\n"
        "    tools.fixed(layer)\n"
        "    found = [layer(x0), len(layer.weights), len(layer.trainable_weights), layer.count_params(), layer.built]\n"
        "    return [*found, layer.compute_dtype, layer.weights, layer.losses]\n"
    )
    return Call("run(x0)", [(_dtype(rng), (4, 3), "ordinary")], SUMS, (), before)


@FAMILY.of(
    "keras.activations.relu keras.activations.elu keras.activations.selu keras.activations.softmax "
    "keras.activations.gelu "
    "keras.activations.sigmoid keras.activations.tanh keras.activations.softplus keras.activations.softsign "
    "keras.activations.exponential keras.activations.hard_sigmoid keras.activations.linear keras.activations.mish "
    "keras.activations.silu keras.activations.leaky_relu keras.activations.relu6 keras.activations.log_softmax"
)
def activations(function: str, rng: random.Random) -> Call:
    name = function.rpartition(".")[2]
    options = {
        "relu": (
            "",
            ", negative_slope=0.1",
            ", max_value=1.0",
            ", threshold=0.5",
            ", negative_slope=0.2, max_value=2.0, threshold=1.0",
            ", 0.1, 2.0",
        ),
        "elu": ("", ", alpha=0.5"),
        "gelu": ("", ", approximate=True", ", approximate=False"),
        "leaky_relu": ("", ", negative_slope=0.1"),
        "softmax": ("", ", axis=0", ", axis=1"),
        "log_softmax": ("", ", axis=0"),
    }.get(name, ("",))
    kind = rng.choice(("ordinary", "ordinary", "special"))
    operands = [(_dtype(rng), rng.choice(((4, 3), (2, 2, 2), (3,), (), (0, 3))), kind)]
    modes = ("gradients",) if kind == "ordinary" and operands[0][0] in ("float32", "float64") else ()
    return Call(
        f"tf.{function}({rng.choice(('x0', 'x0', 'x0.numpy()')) if not modes else 'x0'}{rng.choice(options)})",
        operands,
        # Cancellation: one minus a number near one.
        Tolerance(SUMS.ulps, SUMS.of_largest, terms=1) if name == "gelu" else SUMS,
        modes,
    )


@FAMILY.of("keras.activations.get keras.initializers.get")
def by_name(function: str, rng: random.Random) -> Call:
    if "activations" in function:
        name = rng.choice(("relu", "Relu", "ReLU", "tanh", "nothing", "linear", "softmax", "leaky_relu"))
        given = rng.choice((repr(name), "None", "3", "len", "tf.nn.relu"))
        return Call(f"getattr(tf.{function}({given}), '__name__', 'object')", [], SUMS, ())
    name = rng.choice(
        ("zeros", "Zeros", "ones", "one", "glorot_uniform", "GlorotUniform", "normal", "nothing", "he_normal")
    )
    return Call(
        f"type(tf.{function}({rng.choice((repr(name), repr(name), '3', 'tf.keras.initializers.Zeros'))})).__name__",
        [],
        SUMS,
        (),
    )


@FAMILY.of("keras.initializers.Zeros keras.initializers.Ones keras.initializers.Constant")
def initializers(function: str, rng: random.Random) -> Call:
    """Initializers with fixed values."""
    value = (
        rng.choice(("0.5", "2", "-1.0", "np.ones(3)", "True", "[1., 2.]"))
        if function.endswith("Constant")
        else ""
    )
    shape = rng.choice(
        ("(2, 3)", "[3]", "()", "(0,)", "tf.TensorShape([2, 2])", "3", "(2,)", "tf.constant([2, 3])")
    )
    dtype = rng.choice(
        (
            "",
            "",
            ", dtype='float64'",
            ", dtype='int32'",
            ", 'float16'",
            ", dtype=tf.float32",
            ", dtype='bool'",
            ", dtype=None",
        )
    )
    return Call(f"tf.{function}({value})({shape}{dtype})", [], SUMS, ())


@FAMILY.of(
    "keras.initializers.RandomNormal keras.initializers.TruncatedNormal keras.initializers.RandomUniform "
    "keras.initializers.VarianceScaling keras.initializers.GlorotUniform keras.initializers.HeNormal"
)
def drawn(function: str, rng: random.Random) -> Call:
    """Random initializers, compared by shapes, types and errors."""
    shape = rng.choice(("(2, 3)", "[3]", "()", "(2, 2, 3, 4)", "(0, 2)"))
    dtype = rng.choice(("", ", dtype='float64'", ", 'float16'", ", dtype=None", ", dtype='bool'"))
    if "Uniform" in function:
        dtype = rng.choice(("", ", dtype='float64'", ", 'float16'", ", dtype=None"))
    arguments = rng.choice(("", "seed=1", "nothing=1"))
    if "Scaling" in function:
        arguments = rng.choice(
            (
                "",
                "scale=2.0",
                "scale=-1.0",
                "mode='fan_out'",
                "mode='x'",
                "distribution='Normal'",
                "distribution='x'",
                "distribution='untruncated_normal'",
            )
        )
    return Call(f"described(tf.{function}({arguments})({shape}{dtype}))", [], SUMS, ())

"""Recipes for constraints of Keras, by themselves and in layers that are trained."""

import random

from programs import Call, Family, Tolerance

FAMILY = Family()

#: Tolerance for quotients of norms.
CLOSE = Tolerance(64, 16, terms=1)

_NAMES = ("non_neg", "NonNeg", "max_norm", "MaxNorm", "unit_norm", "UnitNorm", "min_max_norm", "MinMaxNorm")


def _constraint(rng: random.Random, rank: int) -> str:
    """Return a random expression of a constraint."""
    name = rng.choice(_NAMES)
    if rng.random() < 0.4:
        return repr(name)
    axis = rng.choice(("0", "-1", "None", "[0]" if rank < 2 else "[0, 1]"))
    given = {
        "max_norm": rng.choice(("", "0.5", f"max_value=1.5, axis={axis}", "0, 0")),
        "min_max_norm": rng.choice(("", "0.5, 0.8", f"rate=0.3, axis={axis}", f"0.2, 0.9, 0.5, {axis}")),
        "unit_norm": rng.choice(("", f"axis={axis}")),
        "non_neg": "",
    }[
        name
        if "_" in name
        else {"NonNeg": "non_neg", "MaxNorm": "max_norm", "UnitNorm": "unit_norm"}.get(name, "min_max_norm")
    ]
    return f"keras.constraints.{name}({given})"


@FAMILY.of("keras.constraints.get")
def by_itself(function: str, rng: random.Random) -> Call:
    """A constraint, its value and its configuration."""
    rank = rng.choice((1, 2, 2, 4))
    shape = {1: (3,), 2: (3, 2), 4: (2, 1, 2, 3)}[rank]
    made = rng.choice(
        (_constraint(rng, rank),) * 5 + ("None", "'nope'", "3", "abs", "keras.constraints.MaxNorm")
    )
    dtype = rng.choice(("float32", "float32", "float64", "float16"))
    before = (
        "keras = tf.keras\n"
        "def run(x0):\n"
        f"    found = keras.constraints.get({made})\n"
        "    if found is None:\n"
        "        return None\n"
        "    config = found.get_config() if hasattr(found, 'get_config') else None\n"
        "    again = type(found).from_config(config)(x0) if config is not None else None\n"
        "    return found(x0), found(tf.Variable(x0)), again, config\n"
    )
    tolerance = Tolerance(64, 16, terms=4) if dtype == "float16" else CLOSE
    return Call("run(x0)", [(dtype, shape, rng.choice(("ordinary", "unit")))], tolerance, (), before)


@FAMILY.of("keras.layers.constrained")
def in_layers(function: str, rng: random.Random) -> Call:
    """The weights of layers with constraints after a few steps, and layers that a model has twice."""
    of_kernel, of_bias = _constraint(rng, 2), _constraint(rng, 1)
    layer, shape = rng.choice(
        (
            (f"keras.layers.Dense(3, kernel_constraint={of_kernel}, bias_constraint={of_bias})", (3,)),
            (
                f"keras.layers.Conv2D(2, 2, kernel_constraint={_constraint(rng, 4)}, bias_constraint={of_bias})",
                (3, 3, 2),
            ),
            (f"keras.layers.BatchNormalization(gamma_constraint={of_bias}, beta_constraint={of_bias})", (3,)),
            (f"keras.layers.LayerNormalization(gamma_constraint={of_bias}, beta_constraint={of_bias})", (3,)),
        )
    )
    layers = rng.choice(("layer", "layer, layer", "layer, keras.layers.Activation('tanh'), layer"))
    if "Conv2D" in layer:
        layers = "layer"
    optimizer = rng.choice(("keras.optimizers.SGD(0.5)", "keras.optimizers.Adam(0.1)", "'sgd'"))
    before = (
        "keras, tools = tf.keras, keras_tools()\n"
        f"layer = {layer}\n"
        f"model = tools.fixed(keras.Sequential([keras.Input({shape}), {layers}]))\n"
        f"x = operand('float32', {(4, *shape)}, 'ordinary', 3)\n"
        "def run():\n"
        f"    model.compile({optimizer}, 'mse', run_eagerly=True)\n"
        "    y = operand('float32', (4, *model.output_shape[1:]), 'unit', 5)\n"
        "    found = tools.figures(model.fit(x, y, batch_size=2, epochs=2, shuffle=False, verbose=0))\n"
        "    seen = len(model.layers), len(model.weights), model.count_params()\n"
        "    if len(model.layers) > 1:\n        model.pop()\n"
        "    return found, model.get_weights(), seen, len(model.layers), list(model.output_shape), model(x)\n"
    )
    return Call("run()", [], Tolerance(2000, 400, terms=1), (), before)

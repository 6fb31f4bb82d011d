"""Recipes for Keras optimizers: a few steps on a few variables."""

import random

from families.keras.losses import CLOSE
from programs import Call, Family

FAMILY = Family()

_OWN = {
    "SGD": ("momentum=0.9", "momentum=0.5, nesterov=True", "nesterov=True", "momentum=1.0", "momentum=2"),
    "Adam": ("beta_1=0.5", "beta_2=0.9", "epsilon=1e-3", "amsgrad=True", "beta_1=0.0"),
    "RMSprop": (
        "rho=0.5",
        "momentum=0.9",
        "centered=True",
        "centered=True, momentum=0.5",
        "epsilon=1e-3",
        "rho=0.0",
    ),
    "Adagrad": (
        "initial_accumulator_value=0.0",
        "initial_accumulator_value=1.0",
        "epsilon=1e-3",
        "initial_accumulator_value=-1.0",
    ),
}
_COMMON = (
    "clipnorm=0.5",
    "clipvalue=0.3",
    "global_clipnorm=0.5",
    "clipnorm=0.5, clipvalue=0.5",
    "weight_decay=0.1",
    "gradient_accumulation_steps=2",
    "name='own'",
    "weight_decay=0.0",
    "clipnorm=0",
    "nothing=1",
    "gradient_accumulation_steps=1",
    "clipvalue=-1.0",
)
_RATES = (
    "0.1",
    "0.1",
    "0.5",
    "1",
    "0.0",
    "tf.constant(0.1)",
    "lambda: 0.1",
    "tf.keras.optimizers.schedules.ExponentialDecay(0.1, 2, 0.5)",
    "tf.keras.optimizers.schedules.ExponentialDecay(0.1, 2, 0.5, staircase=True)",
    "tf.keras.optimizers.schedules.PiecewiseConstantDecay([1, 3], [0.1, 0.01, 0.001])",
    "tf.keras.optimizers.schedules.PolynomialDecay(0.1, 3, 0.01, power=2.0)",
    "tf.keras.optimizers.schedules.CosineDecay(0.1, 4)",
    "tf.keras.optimizers.schedules.InverseTimeDecay(0.1, 2, 0.5)",
    "'x'",
)
_SHAPES = ((), (), (3,), (2, 3), (1, 1), (0,), (2, 2, 2))


def construction(function: str, rng: random.Random) -> str:
    """Return an expression that creates an optimizer with random arguments."""
    name = function.rpartition(".")[2]
    given = []
    if rng.random() < 0.7:
        given.append(rng.choice(_RATES[:3] if rng.random() < 0.6 else _RATES))
    if rng.random() < 0.6:
        given.append(rng.choice(_OWN[name]))
    if rng.random() < 0.4:
        given.append(rng.choice(_COMMON))
    return f"tf.{function}({', '.join(given)})"


@FAMILY.of("keras.optimizers.SGD keras.optimizers.Adam keras.optimizers.RMSprop keras.optimizers.Adagrad")
def steps(function: str, rng: random.Random) -> Call:
    """Five steps on one or two variables, with gradients computed from their values."""
    dtype = rng.choice(("float32", "float32", "float32", "float64", "float16"))
    operands = [(dtype, rng.choice(_SHAPES), "ordinary") for _ in range(rng.choice((1, 1, 2)))]
    names = [f"x{i}" for i in range(len(operands))]
    gradient = rng.choice(("v * 0.5 + 1", "v * v - 1", "tf.sign(v) * 3", "v * 0", "tf.ones_like(v)"))
    constraint = ", constraint=lambda v: tf.clip_by_value(v, -1., 1.)" if rng.random() < 0.1 else ""
    after = rng.choice(
        (
            "variables",
            "variables",
            "[variables, int(optimizer.iterations.numpy())]",
            "[variables, float(optimizer.learning_rate.numpy())]",
        )
    )
    how = rng.choice(
        (
            "optimizer.apply_gradients([(gradient(v), v) for v in variables])",
            "optimizer.apply([gradient(v) for v in variables], variables)",
        )
    )
    change = ""
    if rng.random() < 0.15:
        value = rng.choice(("optimizer.learning_rate = 0.5", "optimizer.learning_rate.assign(0.25)"))
        change = f"\n        if step == 2:\n            {value}"
    before = (
        f"optimizer = {construction(function, rng)}\n"
        f"def gradient(v):\n    v = tf.convert_to_tensor(v)\n    return {gradient}\n"
        "def train(*arrays):\n"
        f"    variables = [tf.Variable(each{constraint}) for each in arrays]\n"
        f"    for step in range({rng.choice((1, 2, 5, 5))}):\n"
        f"        {how}{change}\n"
        f"    return {after}\n"
    )
    return Call(f"train({', '.join(names)})", operands, CLOSE, (), before)


@FAMILY.of("keras.optimizers.Optimizer")
def misuse(function: str, rng: random.Random) -> Call:
    """Missing gradients, gradients of other shapes or types, and optimizers given by name."""
    made = rng.choice(("SGD", "Adam", "RMSprop", "Adagrad"))
    name = rng.choice(("sgd", "SGD", "Adam", "adam", "rmsprop", "RMSprop", "adagrad", "AdaGrad", "nothing"))
    what = rng.choice(
        (
            "optimizer.apply_gradients([(None, v)])",
            "optimizer.apply_gradients([])",
            "optimizer.apply_gradients([(tf.ones([2]), v)])",
            "optimizer.apply_gradients([(tf.ones([3, 1]), v)])",
            "optimizer.apply_gradients([(tf.ones([3], tf.float64), v)])",
            "optimizer.apply_gradients([(tf.ones([3], tf.int32), v)])",
            "optimizer.apply_gradients([(np.ones(3, np.float32), v)])",
            "optimizer.apply_gradients([([1., 2., 3.], v)])",
            "optimizer.apply_gradients([(None, w), (tf.ones([3]), v)])",
            "optimizer.apply_gradients(zip([tf.ones([3])], [v]))",
            "optimizer.apply([tf.ones([3])])",
            "optimizer.apply([tf.ones([3])], [v, w])",
            "[optimizer.apply([tf.ones([3])], [v]), optimizer.apply([tf.ones([3])])]",
            "[optimizer.build([v]), optimizer.built]",
            "[optimizer.build([v]), optimizer.apply_gradients([(tf.ones([3]), w)])]",
            "[float(optimizer.learning_rate.numpy()), int(optimizer.iterations.numpy())]",
            f"type(tf.keras.optimizers.get({name!r})).__name__",
            "type(tf.keras.optimizers.get({'class_name': 'sgd', 'config': {}})).__name__",
            f"type(tf.keras.optimizers.get({rng.choice(('None', '3', 'len'))})).__name__",
            f"tf.keras.optimizers.{made}(learning_rate=-1.0).learning_rate.numpy()",
        )
    )
    before = f"optimizer = tf.keras.optimizers.{made}()\n"
    body = f"def run(x0):\n    v, w = tf.Variable(x0), tf.Variable(x0)\n    return [{what}, v, w]\n"
    return Call("run(x0)", [("float32", (3,), "ordinary")], CLOSE, (), before + body)

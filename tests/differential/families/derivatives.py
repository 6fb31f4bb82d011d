"""Recipes for custom gradients, masked singular points, tapes and Jacobians."""

import random

from operands import FLOATS
from programs import Call, Family, Tolerance, any_shape, broadcast_with

FAMILY = Family()

_SUMS = Tolerance(64, 16)
#: Pairs of result and gradient function of an argument ``a``.
_BODIES = (
    "(a * a, lambda u: u * 3 * a)",
    "([a * a], lambda u: u * 3 * a)",
    "((a * a, a + 1), lambda u, w: u * 3 * a + w)",
    "(a, lambda u: -u)",
    "(tf.abs(a), lambda u: None)",
    "((a * 2, tf.cast(a, tf.int32)), lambda u, w: u * 5)",
    # The function's own tensors are in its gradient, are its result, and are used outside.
    "(lambda e: (e * a, lambda u: u * (a * e + e)))(tf.sin(a))",
    "(lambda e: (e, lambda u: u * e))(tf.sin(a))",
    "(lambda e: (e * a, lambda u: (kept.append(e), u * e)[1]))(tf.sin(a))",
    "(lambda e: ((e, e), lambda u, w: u * 3 + w * e))(kept.append(a * 2) or kept[-1])",
)
_FUNCTIONS = (
    "lambda a: tf.sin(a) * a",
    "lambda a: (tf.exp(-a * a), a * a)",
    "lambda a: tf.reduce_sum(tf.abs(a))",
    "lambda a: tf.nn.relu(a) * 2",
)
_PAIRS = (
    "lambda a, b: a * b",
    "lambda a, b: (a * b, a + b)",
    "lambda a, b: tf.where(a > 0, a, b) * a",
    "lambda a, b: a - b * b",
)


def _float(rng: random.Random) -> str:
    return rng.choice((*FLOATS, "float32"))


@FAMILY.of("custom_gradient")
def own_gradients(function: str, rng: random.Random) -> Call:
    operand = (_float(rng), any_shape(rng), "ordinary")
    if rng.random() < 0.3:
        return _captured(operand, rng)
    expression = f"[*tf.nest.flatten(tf.custom_gradient(lambda a: {rng.choice(_BODIES)})(x0)), *kept]"
    return Call(expression, [operand], _SUMS, before="kept = []\n")


def _captured(operand: tuple[str, tuple[int, ...], str], rng: random.Random) -> Call:
    """Tensors and variables that are not arguments of the function; arguments not watched, or not among the sources."""
    used, argument = rng.choice(("z", "v", "z * v", "v * v")), rng.choice(("x0", "w", "w * x0", "other"))
    back = f"lambda u, variables=None: (u * {used}, [u * a for _ in variables]) if variables else u * {used}"
    before = (
        "def asked(x0):\n"
        "    v, w, other = tf.Variable(x0), tf.Variable(x0 * 2), tf.Variable(x0 + 1)\n"
        "    with tf.GradientTape() as outer:\n"
        "        with tf.GradientTape() as inner:\n"
        "            z = w * w\n"
        f"            y = tf.custom_gradient(lambda a: (a * {used}, {back}))({argument})\n"
        "        first = inner.gradient(y, [v, w])\n"
        "    known = [each for each in first if each is not None]\n"
        "    return first, outer.gradient(known, [v, w]) if known else None\n"
    )
    return Call("asked(x0)", [operand], Tolerance(64, 64), ("eager",), before)


@FAMILY.of("grad_pass_through recompute_grad")
def wrapped(function: str, rng: random.Random) -> Call:
    dtype, shape = _float(rng), any_shape(rng)
    modes = ("eager", "gradients", "in_graph", "graph_gradients")
    if rng.random() < 0.5:
        functions = _FUNCTIONS if function == "recompute_grad" else ("lambda a: tf.round(a * 2)", "tf.sin")
        return Call(f"tf.{function}({rng.choice(functions)})(x0)", [(dtype, shape, "ordinary")], _SUMS, modes)
    # One tensor as both arguments, two tensors, and computed tensors.
    made = f"tf.{function}({rng.choice(_PAIRS)})"
    operands = [(dtype, shape, "ordinary"), (dtype, shape, "ordinary")]
    return Call(
        f"{made}({rng.choice(('x0, x1', 'x0, x0', 'x1, x0 * 2', 'x0 + x1, x1'))})", operands, _SUMS, modes
    )


@FAMILY.of("gradients")
def masked_points(function: str, rng: random.Random) -> Call:
    inner = rng.choice(
        (
            "tf.sqrt(x0)",
            "tf.math.rsqrt(x0)",
            "tf.math.reciprocal(x0)",
            "tf.math.log(x0)",
            "tf.pow(x0, 0.5)",
            "1 / x0",
            "tf.norm(x0)",
            "tf.math.xlogy(x0, x0)",
            "tf.math.divide_no_nan(x0, x0)",
            "tf.math.asin(x0)",
            "tf.math.acosh(x0)",
        )
    )
    operand = (_float(rng), any_shape(rng), "whole")
    modes = ("gradients", "second_gradients", "graph_gradients")
    return Call(f"tf.where(x0 > 0, {inner}, tf.zeros_like(x0))", [operand], _SUMS, modes)


@FAMILY.of("GradientTape")
def tapes(function: str, rng: random.Random) -> Call:
    dtype, shape = _float(rng), any_shape(rng, (1, 2, 2, 3))
    other = broadcast_with(shape, rng)
    body = rng.choice(
        ("x0 * x1", "tf.sin(x0) + x1", "tf.reduce_sum(x0 * x1, -1)", "x0 * x0", "x0[0] + x1", "x1 - x0")
    )
    asked = rng.choice(
        (
            "gradient(y, [x0, x1])",
            "gradient([y, y * 2], x0)",
            "gradient(y, [x0, x0])",
            "gradient(y, x1, unconnected_gradients='zero')",
            "gradient(y, {'a': x0})",
            "gradient(y, y)",
            "gradient(y, x0, output_gradients=y)",
            "jacobian(y, x0)",
            "jacobian(y, [x0, x1])",
            "batch_jacobian(y, x0)",
        )
    )
    before = (
        "def asked(x0, x1):\n"
        "    with tf.GradientTape() as tape:\n"
        "        tape.watch([x0, x1])\n"
        f"        y = {body}\n"
        f"    return tape.{asked}\n"
    )
    operands = [(dtype, shape, "ordinary"), (dtype, other, "ordinary")]
    return Call("asked(x0, x1)", operands, _SUMS, ("eager",), before)

"""Recipes for the losses of ``compat.v1``."""

import random
from collections.abc import Sequence

from operands import FLOATS
from programs import Call, Family, Tolerance

FAMILY = Family()

SUMS = Tolerance(256, 64)

#: Tolerance for float64 losses, which TensorFlow computes in float32 with 29 bits less.
_IN_SINGLE = Tolerance(8 * 2**29, 8 * 2**29)

_MODES = ("gradients", "in_graph", "graph_gradients")

_REDUCTIONS = (
    "NONE",
    "SUM",
    "SUM_OVER_BATCH_SIZE",
    "MEAN",
    "SUM_BY_NONZERO_WEIGHTS",
    "SUM_OVER_NONZERO_WEIGHTS",
)


def _weights(shape: tuple[int, ...], rng: random.Random) -> str:
    kinds: list[tuple[int, ...]] = [
        shape,
        shape,
        shape,
        tuple(1 for _ in shape),
        (*shape[:1], *(1 for _ in shape[1:])),
    ]
    if rng.random() < 0.15:
        kinds = [(), (7,), (*shape, 1), shape[:1]]
    chosen = rng.choice(kinds)
    made = f"operand({rng.choice(('float32', 'float64', 'int32'))!r}, {chosen}, 'whole', {rng.randrange(99)})"
    return rng.choice(("1.0", "0.0", "2", made, made, made))


def _tolerance(operands: Sequence[tuple[str, tuple[int, ...], str]]) -> Tolerance:
    return _IN_SINGLE if any(dtype == "float64" for dtype, _, _ in operands) else SUMS


def _options(shape: tuple[int, ...], rng: random.Random) -> str:
    text = f", weights={_weights(shape, rng)}" if rng.random() < 0.6 else ""
    if rng.random() < 0.5:
        name = f"v1.losses.Reduction.{rng.choice(_REDUCTIONS)}" if rng.random() < 0.95 else "'nothing'"
        text += f", reduction={name}"
    return text + (rng.choice((", scope='own'", ", loss_collection=None", "")) if rng.random() < 0.2 else "")


@FAMILY.of(
    "v1.losses.absolute_difference v1.losses.mean_squared_error v1.losses.huber_loss",
    "v1.losses.sigmoid_cross_entropy v1.losses.softmax_cross_entropy",
)
def pairs(function: str, rng: random.Random) -> Call:
    shape: tuple[int, ...] = rng.choice(((4,), (4, 3), (4, 3), (4, 1), (2, 3, 4), (), (0, 3)))
    if shape == () and function.endswith("softmax_cross_entropy"):
        shape = (4, 3)
    other = shape if rng.random() < 0.93 else rng.choice(((4,), (4, 1), (3, 3)))
    name = function.rpartition(".")[2]
    options = _options(shape, rng)
    if name == "huber_loss" and rng.random() < 0.4:
        options += f", delta={rng.choice((0.5, 2.0))}"
    if name.endswith("cross_entropy") and rng.random() < 0.3:
        options += f", label_smoothing={rng.choice((0.1, 0.5))}"
    dtype = "float32" if rng.random() < 0.7 else rng.choice((*FLOATS, "int32"))
    operands = [(rng.choice(("float32", dtype)), other, "positive"), (dtype, shape, "ordinary")]
    return Call(f"{function}(x0, x1{options})", operands, _tolerance(operands), _MODES)


@FAMILY.of("v1.losses.sparse_softmax_cross_entropy")
def classes(function: str, rng: random.Random) -> Call:
    shape: tuple[int, ...] = rng.choice(((4, 4), (4, 4), (2, 3, 5), (4,), (0, 4)))
    labels: tuple[int, ...] = shape[:-1] if rng.random() < 0.7 else (*shape[:-1], 1)
    options = _options(shape[:-1], rng)
    if rng.random() < 0.2:
        options = f", weights=operand('float32', {(*shape[:-1], 1)}, 'whole', 5)"
    operands = [(rng.choice(("int32", "int64")), labels, "index"), ("float32", shape, "ordinary")]
    return Call(f"{function}(x0, x1{options})", operands, _tolerance(operands), _MODES)


@FAMILY.of("v1.losses.compute_weighted_loss")
def weighted(function: str, rng: random.Random) -> Call:
    shape: tuple[int, ...] = rng.choice(((4,), (4, 3), (), (2, 3, 4), (0, 3)))
    dtype = "float32" if rng.random() < 0.6 else rng.choice((*FLOATS, "int32"))
    operands = [(dtype, shape, "ordinary")]
    return Call(f"{function}(x0{_options(shape, rng)})", operands, _tolerance(operands), _MODES)


@FAMILY.of("v1.losses.get_total_loss v1.losses.get_losses")
def collected(function: str, rng: random.Random) -> Call:
    """Functions that return the losses collected by a graph."""
    scope = rng.choice(("", "scope='own'"))
    found = f"{function}({scope})"
    if "total" in function:
        found = f"[{found}]"
    before = (
        "def run(x0):\n    with v1.Graph().as_default():\n        x = v1.constant(x0)\n"
        "        v1.losses.mean_squared_error(x, x + 1.0, scope='own')\n"
        "        v1.losses.absolute_difference(x, x - 2.0)\n"
        "        v1.losses.huber_loss(x, x, loss_collection=None)\n"
        "        v1.losses.add_loss(v1.constant(7.0))\n"
        "        v1.add_to_collection(v1.GraphKeys.REGULARIZATION_LOSSES, v1.constant(0.5))\n"
        f"        found = {found}\n"
        "        more = v1.losses.get_regularization_loss()\n"
        "        with v1.Session() as session:\n            return session.run([*found, more])\n"
    )
    return Call("run(x0.numpy())", [("float32", (4, 3), "ordinary")], SUMS, (), before)

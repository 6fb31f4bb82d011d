"""Recipes for reductions and scans along axes."""

import random

from operands import COMPLEX, FLOATS, INTEGERS
from programs import MODES, Call, Family, Tolerance, any_axes, any_axis, any_kind, any_shape, any_type

FAMILY = Family()

SUMS = Tolerance(ulps=32, of_largest=32)


def _axis_text(rng: random.Random, rank: int) -> str:
    how = rng.random()
    if how < 0.15:
        return ""
    if how < 0.22:
        return ", axis=" + rng.choice(
            ("0.5", "1.", "'x'", "[[0]]", "True", "np.int64(0)", "np.array([0])", "(0, 1)")
        )
    axes = any_axes(rng, rank)
    if how < 0.32 and axes != []:
        return f", axis=tf.constant({axes!r})" if axes is not None else ", axis=None"
    return f", axis={axes!r}"


def _keepdims(rng: random.Random) -> str:
    return rng.choice(("", "", ", keepdims=True", ", keepdims=False"))


@FAMILY.of("reduce_sum reduce_mean reduce_prod math.reduce_euclidean_norm reduce_logsumexp")
def numbers(function: str, rng: random.Random) -> Call:
    dtype, shape = any_type(rng, ("float32", *FLOATS, *INTEGERS, *COMPLEX)), any_shape(rng)
    if rng.random() < 0.04:
        shape = (rng.choice((1000, 70_000)),)
    return Call(
        f"tf.{function}(x0{_axis_text(rng, len(shape))}{_keepdims(rng)})",
        [(dtype, shape, any_kind(rng))],
        SUMS,
    )


@FAMILY.of("reduce_max reduce_min math.reduce_variance math.reduce_std")
def extremes(function: str, rng: random.Random) -> Call:
    dtype, shape = any_type(rng, ("float32", *FLOATS, *INTEGERS)), any_shape(rng)
    tolerance = Tolerance() if function.startswith("reduce_m") else Tolerance(64, 64)
    return Call(
        f"tf.{function}(x0{_axis_text(rng, len(shape))}{_keepdims(rng)})",
        [(dtype, shape, any_kind(rng))],
        tolerance,
    )


@FAMILY.of("reduce_all reduce_any")
def truths(function: str, rng: random.Random) -> Call:
    dtype, shape = any_type(rng, ("bool",) * 5), any_shape(rng)
    return Call(
        f"tf.{function}(x0{_axis_text(rng, len(shape))}{_keepdims(rng)})", [(dtype, shape, "ordinary")]
    )


@FAMILY.of("math.count_nonzero")
def counted(function: str, rng: random.Random) -> Call:
    dtype, shape = any_type(rng, ("float32", *INTEGERS, "bool", "string")), any_shape(rng)
    more = rng.choice(("", "", ", dtype=tf.int32", ", dtype=tf.float32", ", dtype='uint8'"))
    return Call(
        f"tf.{function}(x0{_axis_text(rng, len(shape))}{_keepdims(rng)}{more})",
        [(dtype, shape, any_kind(rng))],
    )


@FAMILY.of("argmax argmin")
def positions(function: str, rng: random.Random) -> Call:
    dtype, shape = any_type(rng, ("float32", *FLOATS, *INTEGERS)), any_shape(rng)
    axis = rng.choice(("", f", {any_axis(rng, len(shape))}", f", axis={any_axis(rng, len(shape))}"))
    if rng.random() < 0.06:
        axis = rng.choice((", axis=1.5", ", axis=[0]", ", axis=tf.constant(0)", ", axis=None", ", axis='a'"))
    kind = rng.choice(
        (
            "",
            "",
            ", output_type=tf.int32",
            ", output_type='int64'",
            ", output_type=tf.uint16",
            ", output_type=tf.int8",
        )
    )
    return Call(f"tf.{function}(x0{axis}{kind})", [(dtype, shape, any_kind(rng, "special", "index"))])


@FAMILY.of("cumsum math.cumprod math.cumulative_logsumexp")
def cumulative(function: str, rng: random.Random) -> Call:
    dtype, shape = any_type(rng, ("float32", *FLOATS, *INTEGERS, *COMPLEX)), any_shape(rng)
    axis = rng.choice(("", f", axis={any_axis(rng, len(shape))}", f", {any_axis(rng, len(shape))}"))
    if rng.random() < 0.05:
        axis = rng.choice(
            (", axis=0.5", ", axis=[0]", ", axis=tf.constant(0)", ", axis=None", ", axis=[0, 1]")
        )
    how = rng.choice(("", "", ", exclusive=True", ", reverse=True", ", exclusive=True, reverse=True"))
    return Call(f"tf.{function}(x0{axis}{how})", [(dtype, shape, any_kind(rng))], SUMS)


@FAMILY.of("norm linalg.norm linalg.normalize")
def norms(function: str, rng: random.Random) -> Call:
    dtype, shape = any_type(rng), any_shape(rng)
    order = rng.choice(
        (
            "",
            "",
            ", ord=1",
            ", ord=2",
            ", ord=np.inf",
            ", ord='fro'",
            ", ord='euclidean'",
            ", ord=3.5",
            ", ord=0",
            ", ord='x'",
            ", ord=-1",
        )
    )
    axis = rng.choice(
        ("", f", axis={any_axis(rng, len(shape))}", ", axis=[0, 1]", ", axis=(-2, -1)", ", axis=[0, 0]")
    )
    keep = _keepdims(rng) if function.endswith("norm") else ""
    return Call(f"tf.{function}(x0{order}{axis}{keep})", [(dtype, shape, any_kind(rng))], Tolerance(64, 64))


@FAMILY.of("nn.moments")
def moments(function: str, rng: random.Random) -> Call:
    dtype, shape = any_type(rng), any_shape(rng)
    axes = any_axes(rng, len(shape))
    return Call(
        f"tf.{function}(x0, {axes!r}{_keepdims(rng)})", [(dtype, shape, any_kind(rng))], Tolerance(64, 64)
    )


@FAMILY.of("nn.softmax nn.log_softmax math.l2_normalize")
def softmax(function: str, rng: random.Random) -> Call:
    dtype, shape = any_type(rng), any_shape(rng)
    axis = rng.choice(("", f", axis={any_axis(rng, len(shape))}", f", {any_axis(rng, len(shape))}"))
    if rng.random() < 0.05:
        axis = rng.choice((", axis=0.5", ", axis=[0]", ", axis=tf.constant(0)", ", axis=[0, 1]"))
    return Call(f"tf.{function}(x0{axis})", [(dtype, shape, any_kind(rng))], Tolerance(64, 16))


@FAMILY.of("clip_by_norm")
def clipped(function: str, rng: random.Random) -> Call:
    dtype, shape = any_type(rng), any_shape(rng)
    norm = rng.choice(("1.", "0.5", "2", "0", "-1.", "[1., 2.]", "tf.constant(1.5)"))
    return Call(
        f"tf.{function}(x0, {norm}{_axis_text(rng, len(shape)).replace('axis', 'axes')})",
        [(dtype, shape, any_kind(rng))],
        Tolerance(64, 16),
    )


@FAMILY.of("clip_by_global_norm linalg.global_norm")
def global_norms(function: str, rng: random.Random) -> Call:
    dtype = any_type(rng)
    count = rng.randrange(1, 4)
    names = ", ".join(f"x{i}" for i in range(count))
    norm = rng.choice((", 1.", ", 0.5", ", 2", ", -1.")) if function.startswith("clip") else ""
    operands = [(dtype, any_shape(rng), any_kind(rng)) for _ in range(count)]
    # With operands such as 1e30, all gradients contain rounding errors of terms of that size.
    modes = ("in_graph",) if any(kind == "special" for _, _, kind in operands) else MODES
    return Call(f"tf.{function}([{names}]{norm})", operands, Tolerance(64, 16), modes)

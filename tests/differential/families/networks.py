"""Recipes for functions of neural networks."""

import random

from operands import FLOATS, TYPES
from programs import MODES, Call, Family, Tolerance, any_axis, any_kind, any_shape, any_type

FAMILY = Family()

SUMS = Tolerance(64, 64)


def _float(rng: random.Random) -> str:
    return any_type(rng, ("float32", "float32", "float64", "float16")) if rng.random() < 0.3 else "float32"


def _image(rng: random.Random, channels: int, spatial: int = 2) -> tuple[int, ...]:
    sizes = tuple(rng.randrange(1, 8) for _ in range(spatial))
    return (rng.randrange(1, 4) if rng.random() < 0.95 else 0, *sizes, channels)


def _padding(rng: random.Random) -> str:
    return rng.choice(
        ("'SAME'", "'VALID'", "'SAME'", "'VALID'", "'same'" if rng.random() < 0.1 else "'VALID'")
    )


@FAMILY.of("nn.conv2d nn.depthwise_conv2d")
def convolutions(function: str, rng: random.Random) -> Call:
    channels, filters = rng.randrange(1, 4), rng.randrange(1, 4)
    stride = rng.choice((1, 1, 2, 3))
    strides = str(stride) if function == "nn.conv2d" and rng.random() < 0.5 else str([1, stride, stride, 1])
    faulty = rng.random() < 0.04
    if faulty:
        strides = rng.choice(("0", "[1, 0, 1, 1]", "[2, 1, 1, 1]", "-1", "[1, 1]"))
    dilations = (
        rng.choice(("", "", "", ", dilations=2", ", dilations=[1, 2, 2, 1]"))
        if function == "nn.conv2d"
        else rng.choice(("", "", ", dilations=[2, 2]"))
    )
    padding = _padding(rng) if rng.random() < 0.9 else "[[0, 0], [1, 0], [2, 1], [0, 0]]"
    # One error per call: the elements are floats then.
    dtype = "float32" if faulty or padding == "'same'" else _float(rng)
    kernel = (
        rng.randrange(1, 4),
        rng.randrange(1, 4),
        channels if rng.random() < 0.95 else channels + 1,
        filters,
    )
    image = _image(rng, channels)
    if function == "nn.conv2d" and not faulty and rng.random() < 0.1:
        image = (rng.choice((1, 2)), *image)
    operands = [(dtype, image, "ordinary"), (dtype, kernel, "ordinary")]
    return Call(f"tf.{function}(x0, x1, strides={strides}, padding={padding}{dilations})", operands, SUMS)


@FAMILY.of("nn.conv1d")
def convolutions_1d(function: str, rng: random.Random) -> Call:
    channels, filters = rng.randrange(1, 4), rng.randrange(1, 4)
    dtype = _float(rng)
    sequences = _image(rng, channels, 1)
    operands = [
        (dtype, sequences if rng.random() < 0.9 else (2, *sequences), "ordinary"),
        (dtype, (rng.randrange(1, 4), channels, filters), "ordinary"),
    ]
    return Call(f"tf.nn.conv1d(x0, x1, {rng.choice((1, 1, 2))}, {_padding(rng)})", operands, SUMS)


@FAMILY.of("nn.conv2d_transpose")
def transposed(function: str, rng: random.Random) -> Call:
    channels, filters, stride = rng.randrange(1, 4), rng.randrange(1, 4), rng.choice((1, 2, 2, 3))
    size, kernel = rng.randrange(1, 5), rng.randrange(1, 4)
    padding = rng.choice(("SAME", "VALID"))
    length = size * stride if padding == "SAME" else (size - 1) * stride + kernel
    operands = [
        ("float32", (2, size, size, channels), "ordinary"),
        ("float32", (kernel, kernel, filters, channels), "ordinary"),
    ]
    shape = rng.choice(
        (f"[2, {length}, {length}, {filters}]", f"[tf.shape(x0)[0], {length}, {length}, {filters}]")
    )
    return Call(f"tf.nn.conv2d_transpose(x0, x1, {shape}, {stride}, {padding!r})", operands, SUMS)


@FAMILY.of("nn.max_pool2d nn.avg_pool2d nn.max_pool nn.avg_pool")
def pools(function: str, rng: random.Random) -> Call:
    operand = (
        any_type(rng, ("float32", "float32", *FLOATS, "int32", "uint8")),
        _image(rng, rng.randrange(1, 4)),
        any_kind(rng),
    )
    size = rng.choice((1, 2, 3, [1, 2, 3, 1], [2, 1]))
    stride, padding = rng.choice((1, 2, 3, [1, 2, 1, 1])), _padding(rng)
    if rng.random() < 0.04:
        # One error per call: the elements are floats.
        stride, operand = rng.choice((0, -1, [1, 1])), ("float32", *operand[1:])
    if "max" in function and rng.random() < 0.15:
        padding = f"[[0, 0], {[rng.randrange(3) for _ in '12']}, {[rng.randrange(3) for _ in '12']}, [0, 0]]"
    if padding == "'same'":
        operand = ("float32", *operand[1:])
    return Call(
        f"tf.{function}(x0, {size}, {stride}, {padding})",
        [operand],
        SUMS if "avg" in function else Tolerance(),
    )


@FAMILY.of("nn.max_pool1d nn.avg_pool1d")
def pools_1d(function: str, rng: random.Random) -> Call:
    padding = _padding(rng)
    operand = (
        "float32" if padding == "'same'" else any_type(rng, ("float32", "float32", "float64")),
        _image(rng, rng.randrange(1, 4), 1),
        any_kind(rng),
    )
    return Call(
        f"tf.{function}(x0, {rng.choice((1, 2, 3))}, {rng.choice((1, 2))}, {padding})", [operand], SUMS
    )


@FAMILY.of("nn.bias_add")
def biases(function: str, rng: random.Random) -> Call:
    dtype, shape = any_type(rng, ("float32", *TYPES)), any_shape(rng, (1, 2, 2, 3, 4))
    bias = shape[-1:] if rng.random() < 0.93 else any_shape(rng)
    more = rng.choice(
        (
            "",
            "",
            "",
            ", data_format='NHWC'",
            ", data_format='N...C'",
            ", data_format='NCHW'",
            ", data_format='x'",
        )
    )
    if "NCHW" in more and len(shape) > 1:
        bias = (shape[1],)
    return Call(f"tf.nn.bias_add(x0, x1{more})", [(dtype, shape, "ordinary"), (dtype, bias, "ordinary")])


@FAMILY.of("nn.batch_normalization")
def normalization(function: str, rng: random.Random) -> Call:
    dtype, shape = _float(rng), any_shape(rng, (2, 3, 4))
    operands = [
        (dtype, shape, "ordinary"),
        *((dtype, shape[-1:], kind) for kind in ("ordinary", "positive", "ordinary", "ordinary")),
    ]
    offset, scale = rng.choice((("x3", "x4"), ("None", "x4"), ("x3", "None"), ("None", "None")))
    return Call(
        f"tf.nn.batch_normalization(x0, x1, x2, {offset}, {scale}, 1e-3)", operands, Tolerance(64, 16)
    )


@FAMILY.of("nn.sigmoid_cross_entropy_with_logits nn.softmax_cross_entropy_with_logits")
def entropies(function: str, rng: random.Random) -> Call:
    dtype, shape = any_type(rng), any_shape(rng)
    labels = (
        any_type(rng) if rng.random() < 0.06 else dtype,
        shape if rng.random() < 0.92 else any_shape(rng),
        any_kind(rng, "positive", "unit"),
    )
    axis = f", axis={any_axis(rng, len(shape))}" if "softmax" in function and rng.random() < 0.2 else ""
    # Labels of double precision beside others are cast, and their gradients are only as exact as what they are cast to.
    modes = ("in_graph",) if labels[0] != dtype and labels[0] in ("float64", "complex128") else MODES
    return Call(
        f"tf.{function}(labels=x0, logits=x1{axis})",
        [labels, (dtype, shape, any_kind(rng))],
        Tolerance(64, 32),
        modes,
    )


@FAMILY.of("nn.sparse_softmax_cross_entropy_with_logits")
def sparse_entropies(function: str, rng: random.Random) -> Call:
    shape = any_shape(rng, (1, 2, 2, 3))
    classes = rng.choice((4, 5, 3))
    kind = "index" if rng.random() < 0.95 else "ordinary"
    labels = shape[:-1] if rng.random() < 0.95 else any_shape(rng)
    operands = [
        (rng.choice(("int32", "int64", "int32", "uint8")), labels, kind),
        (any_type(rng), (*shape[:-1], classes), any_kind(rng)),
    ]
    return Call(f"tf.{function}(labels=x0, logits=x1)", operands, Tolerance(64, 32))


@FAMILY.of("nn.weighted_cross_entropy_with_logits")
def weighted(function: str, rng: random.Random) -> Call:
    dtype, shape = any_type(rng), any_shape(rng)
    weight = rng.choice(("2.", "0.5", "x2", "1"))
    operands = [
        (dtype, shape, rng.choice(("unit", "positive"))),
        (dtype, shape, any_kind(rng)),
        (dtype, shape[-1:], "positive"),
    ]
    return Call(
        f"tf.{function}(x0, x1, {weight})", operands if weight == "x2" else operands[:2], Tolerance(64, 32)
    )


@FAMILY.of("nn.crelu")
def crelu(function: str, rng: random.Random) -> Call:
    shape = any_shape(rng)
    axis = rng.choice(("", f", axis={any_axis(rng, len(shape))}"))
    return Call(f"tf.nn.crelu(x0{axis})", [(any_type(rng), shape, any_kind(rng))])


@FAMILY.of("nn.dropout")
def dropouts(function: str, rng: random.Random) -> Call:
    """Dropout, compared by shape, type and the results for rates of 0 and nearly 1, as random numbers differ."""
    operand = (any_type(rng), any_shape(rng), "ordinary")
    rate = rng.choice(("0", "0.", "0.5", "1.", "-0.1", "1.5", "tf.constant(0.)", "0.999999", "'a'"))
    text = f"tf.nn.dropout(x0, {rate})"
    return Call(text if rate in ("0", "0.") else f"described({text})", [operand], modes=())


@FAMILY.of("nn.compute_average_loss nn.scale_regularization_loss")
def losses(function: str, rng: random.Random) -> Call:
    shape = any_shape(rng, (0, 1, 1, 2))
    more = (
        rng.choice(("", ", global_batch_size=8", ", sample_weight=[1., 0.]", ", global_batch_size=0"))
        if "average" in function
        else ""
    )
    dtype = any_type(rng)
    # TensorFlow multiplies by the weights in float32.
    tolerance = Tolerance(1 << 30, 1 << 30) if dtype == "float64" and "sample_weight" in more else SUMS
    return Call(f"tf.{function}(x0{more})", [(dtype, shape, "ordinary")], tolerance)

"""Recipes for functions of ``compat.v1`` whose parameters or results differ from TensorFlow 2's."""

import random

from operands import FLOATS, INTEGERS, TYPES
from programs import Call, Family, Tolerance, any_axis, any_kind, any_shape, any_type

FAMILY = Family()

SUMS = Tolerance(64, 64)


@FAMILY.of("v1.where")
def where(function: str, rng: random.Random) -> Call:
    shape = any_shape(rng, (1, 1, 2, 3))
    dtype = any_type(rng, ("float32", *TYPES))
    condition = rng.choice((shape, shape, shape[:1], any_shape(rng)))
    if rng.random() < 0.15:
        return Call("v1.where(x0)", [("bool", shape, "ordinary")])
    operands = [("bool", condition, "ordinary"), (dtype, shape, any_kind(rng)), (dtype, shape, any_kind(rng))]
    return Call("v1.where(x0, x1, x2)", operands)


@FAMILY.of(
    "v1.reduce_sum v1.reduce_mean v1.reduce_max v1.reduce_min v1.reduce_prod v1.reduce_all v1.reduce_any",
    "v1.reduce_logsumexp v1.count_nonzero",
)
def reductions(function: str, rng: random.Random) -> Call:
    usual = ("bool",) * 6 if function.endswith(("all", "any")) else ("float32", *FLOATS, *INTEGERS)
    dtype, shape = any_type(rng, usual), any_shape(rng)
    axis = any_axis(rng, len(shape))
    text = rng.choice(
        ("", f", {axis}", f", axis={axis}", f", reduction_indices={axis}", f", reduction_indices=[{axis}]")
    )
    text += rng.choice(("", ", keepdims=True", ", keep_dims=True"))
    if rng.random() < 0.05:
        text = rng.choice((", axis=0, reduction_indices=0", ", keepdims=True, keep_dims=True"))
    return Call(f"{function}(x0{text})", [(dtype, shape, any_kind(rng))], SUMS)


@FAMILY.of("v1.argmax v1.argmin")
def positions(function: str, rng: random.Random) -> Call:
    dtype, shape = any_type(rng, ("float32", *FLOATS, *INTEGERS)), any_shape(rng)
    axis = any_axis(rng, len(shape))
    text = rng.choice(("", f", {axis}", f", axis={axis}", f", dimension={axis}", ", output_type=tf.int32"))
    return Call(f"{function}(x0{text})", [(dtype, shape, any_kind(rng, "index"))])


@FAMILY.of("v1.expand_dims v1.squeeze")
def axes_of_one(function: str, rng: random.Random) -> Call:
    shape = tuple(1 if rng.random() < 0.4 else each for each in any_shape(rng))
    axis = rng.randrange(-len(shape) - 1, len(shape) + 1)
    names = ("axis", "dim") if function.endswith("dims") else ("axis", "squeeze_dims")
    return Call(f"{function}(x0, {rng.choice(names)}={axis})", [(any_type(rng), shape, "ordinary")])


@FAMILY.of("v1.nn.softmax v1.nn.log_softmax")
def softmax(function: str, rng: random.Random) -> Call:
    shape = any_shape(rng)
    axis = any_axis(rng, len(shape))
    text = rng.choice(("", f", {axis}", f", axis={axis}", f", dim={axis}"))
    return Call(f"{function}(x0{text})", [(any_type(rng), shape, any_kind(rng))], SUMS)


@FAMILY.of("v1.nn.embedding_lookup")
def embeddings(function: str, rng: random.Random) -> Call:
    parts, width = rng.randrange(1, 4), any_shape(rng, (0, 1, 1, 2))
    operands = [("float32", (rng.randrange(2, 5), *width), "ordinary")] * parts
    operands.append((rng.choice(("int32", "int64")), any_shape(rng, (0, 1, 1, 2)), "index"))
    names = ", ".join(f"x{i}" for i in range(parts))
    more = rng.choice(("", ", partition_strategy='div'", ", partition_strategy='mod'", ", max_norm=1."))
    return Call(f"v1.nn.embedding_lookup([{names}], x{parts}{more})", operands, SUMS)


@FAMILY.of("v1.nn.dropout")
def dropout(function: str, rng: random.Random) -> Call:
    keep = rng.choice(
        ("1.", "keep_prob=1.", "rate=0.", "keep_prob=0.5", "rate=0.3", "0.", "keep_prob=1.5", "rate=1")
    )
    text = f"v1.nn.dropout(x0, {keep})"
    exact = keep in ("1.", "keep_prob=1.", "rate=0.")
    return Call(
        text if exact else f"described({text})", [(any_type(rng), any_shape(rng), "ordinary")], modes=()
    )


@FAMILY.of("v1.nn.max_pool v1.nn.avg_pool")
def pools(function: str, rng: random.Random) -> Call:
    image = (rng.randrange(1, 3), rng.randrange(1, 7), rng.randrange(1, 7), rng.randrange(1, 4))
    size, stride = rng.randrange(1, 4), rng.randrange(1, 3)
    padding = rng.choice(("SAME", "VALID"))
    name = "input" if function.endswith("max_pool") and rng.random() < 0.2 else "value"
    windows = f"ksize=[1, {size}, {size}, 1], strides=[1, {stride}, {stride}, 1], padding={padding!r}"
    return Call(f"{function}({name}=x0, {windows})", [("float32", image, any_kind(rng))], SUMS)


@FAMILY.of("v1.nn.conv2d v1.nn.depthwise_conv2d")
def convolutions(function: str, rng: random.Random) -> Call:
    channels, stride = rng.randrange(1, 4), rng.randrange(1, 3)
    operands = [
        ("float32", (rng.randrange(1, 3), rng.randrange(1, 7), rng.randrange(1, 7), channels), "ordinary"),
        ("float32", (rng.randrange(1, 4), rng.randrange(1, 4), channels, rng.randrange(1, 4)), "ordinary"),
    ]
    padding = rng.choice(("SAME", "VALID"))
    return Call(f"{function}(x0, x1, [1, {stride}, {stride}, 1], {padding!r})", operands, SUMS)


@FAMILY.of("v1.nn.softmax_cross_entropy_with_logits v1.nn.softmax_cross_entropy_with_logits_v2")
def entropies(function: str, rng: random.Random) -> Call:
    shape = any_shape(rng, (1, 2, 2, 3))
    dtype = any_type(rng, FLOATS)
    axis = rng.choice(("", "", ", axis=0", ", dim=-1", ", axis=-1"))
    operands = [(dtype, shape, "positive"), (dtype, shape, any_kind(rng))]
    return Call(f"{function}(labels=x0, logits=x1{axis})", operands, SUMS)


@FAMILY.of("v1.nn.moments")
def moments(function: str, rng: random.Random) -> Call:
    shape = any_shape(rng)
    keep = rng.choice(("", ", keep_dims=True", ", keepdims=True"))
    return Call(
        f"v1.nn.moments(x0, [{any_axis(rng, len(shape))}]{keep})",
        [(any_type(rng), shape, any_kind(rng))],
        SUMS,
    )


@FAMILY.of("v1.norm v1.nn.l2_normalize")
def norms(function: str, rng: random.Random) -> Call:
    shape = any_shape(rng)
    axis = any_axis(rng, len(shape))
    names = ("axis", "dim") if function.endswith("normalize") else ("axis",)
    # Gradients cancel terms of the size of the norms' reciprocals.
    tolerance = Tolerance(64, 2048) if function.endswith("normalize") else SUMS
    return Call(
        f"{function}(x0, {rng.choice(names)}={axis})", [(any_type(rng), shape, any_kind(rng))], tolerance
    )


@FAMILY.of("v1.to_float v1.to_int32 v1.to_int64 v1.to_double")
def conversions(function: str, rng: random.Random) -> Call:
    return Call(f"{function}(x0)", [(rng.choice(TYPES), any_shape(rng), "ordinary")])


@FAMILY.of("v1.zeros_like v1.ones_like v1.shape v1.size v1.rank")
def likes(function: str, rng: random.Random) -> Call:
    more = rng.choice(("", ", dtype=tf.int32", ", optimize=False")) if "like" in function else ""
    if function in ("v1.shape", "v1.size"):
        more = rng.choice(("", ", out_type=tf.int64"))
    return Call(f"{function}(x0{more})", [(rng.choice(TYPES), any_shape(rng), "ordinary")])


@FAMILY.of("v1.string_to_number v1.substr")
def texts(function: str, rng: random.Random) -> Call:
    if function == "v1.string_to_number":
        number = rng.choice(("['1', '2.5']", "'x'", "'7'"))
        return Call(f"v1.string_to_number({number})", modes=())
    more = (
        ", 0, 2" if function == "v1.substr" else rng.choice((", 0", ", axis=0", ", reduction_indices=0", ""))
    )
    return Call(f"{function}(x0{more})", [("string", any_shape(rng), "ordinary")], modes=("in_graph",))


@FAMILY.of("v1.gather v1.gather_nd")
def gathered(function: str, rng: random.Random) -> Call:
    shape = tuple(max(each, 4) for each in any_shape(rng, (2, 2, 3)))
    indices = (shape[0], 2) if function != "v1.gather" else any_shape(rng, (0, 1, 2))
    more = rng.choice(("", ", axis=1", ", axis=0")) if function == "v1.gather" else ""
    return Call(
        f"{function}(x0, x1{more})", [(any_type(rng), shape, "ordinary"), ("int32", indices, "index")]
    )


#: Calls with the order and names of TensorFlow 1's parameters.
_PARAMETERS = {
    "boolean_mask": ("x0, x0 > 0", "x0, [True], 'name'", "x0, x0 > 0, axis=0"),
    "cond": (
        "tf.constant(True), lambda: [x0], lambda: [x0 * 2]",
        "tf.constant(False), fn1=lambda: x0, fn2=lambda: x0 * 2",
        "tf.constant(True), lambda: [x0], lambda: [x0], strict=True",
        "tf.constant(True), lambda: x0, lambda: x0, fn1=lambda: x0",
    ),
    "confusion_matrix": ("[0, 1], [1, 1], 2, tf.int64", "[0, 1], [1, 1], weights=[2, 3]"),
    "pad": (
        "x0, [[1, 1]] * len(x0.shape), 'CONSTANT', 'name', 1",
        "x0, [[1, 0]] * len(x0.shape), constant_values=2",
    ),
    "transpose": ("x0, None, 'name', True", "x0, perm=list(range(len(x0.shape)))"),
}


@FAMILY.of(*(f"v1.{name}" for name in _PARAMETERS))
def parameters(function: str, rng: random.Random) -> Call:
    arguments = rng.choice(_PARAMETERS[function.rpartition(".")[2]])
    operand = (rng.choice(("float32", "float64", "int32", "int64")), any_shape(rng, (1, 1, 2, 3)), "ordinary")
    return Call(f"{function}({arguments})", [operand], modes=("eager", "in_graph"))

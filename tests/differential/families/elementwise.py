"""Recipes for element-wise functions of one or two operands."""

import random

from operands import COMPLEX, FLOATS, INTEGERS, NUMBERS, TYPES
from programs import MODES, Call, Family, Tolerance, any_kind, any_shape, any_type, broadcast_with

FAMILY = Family()

#: Polynomials and series of special functions lose more digits than elementary ones. TensorFlow's have the error of the
#: largest term, which shows near a root: that of `digamma` at 1.46 in float32, and that of `erfinv` at zero.
SPECIAL = Tolerance(ulps=64, of_largest=64)

QUOTIENTS = ("divide", "truediv", "realdiv", "math.divide_no_nan", "math.xdivy")


def _one(function: str, rng: random.Random, tolerance: Tolerance, *kinds: str) -> Call:
    operand = (any_type(rng), any_shape(rng), any_kind(rng, "special", "positive", "unit", *kinds))
    return Call(f"tf.{function}(x0)", [operand], tolerance)


@FAMILY.of(
    "abs math.angle math.ceil math.conj math.is_finite math.is_inf math.is_nan floor math.imag math.real negative",
    "math.reciprocal math.reciprocal_no_nan math.rint round math.rsqrt sign sqrt square bitwise.invert",
    "logical_not nn.relu nn.relu6 math.softsign identity stop_gradient zeros_like ones_like size rank shape",
    "math.zero_fraction debugging.is_numeric_tensor is_tensor nn.l2_loss",
)
def simple(function: str, rng: random.Random) -> Call:
    return _one(function, rng, Tolerance(of_largest=4 if function.endswith(("l2_loss", "fraction")) else 0))


@FAMILY.of(
    "acos acosh asin asinh atan atanh cos cosh exp math.expm1 math.log math.log1p math.log_sigmoid sigmoid sin sinh",
    "tan tanh nn.elu nn.selu nn.silu nn.gelu math.softplus",
)
def transcendental(function: str, rng: random.Random) -> Call:
    # TensorFlow computes `elu` and `selu` near zero as `exp(x) - 1`, with cancellation, and vectors with another `exp`.
    of_largest = 16 if function in ("nn.elu", "nn.selu") else 0
    return _one(function, rng, Tolerance(ulps=32, of_largest=of_largest))


@FAMILY.of(
    "math.digamma math.erf math.erfc math.erfinv math.erfcinv math.lgamma math.ndtri",
)
def special(function: str, rng: random.Random) -> Call:
    return _one(function, rng, SPECIAL)


def _two(
    function: str, rng: random.Random, types: tuple[str, ...], tolerance: Tolerance, swap: bool = False
) -> Call:
    dtype = any_type(rng, types)
    other = rng.choice(TYPES) if rng.random() < 0.05 else dtype
    shape = any_shape(rng)
    shapes = [shape, broadcast_with(shape, rng)]
    rng.shuffle(shapes)
    operands = [(dtype, shapes[0], any_kind(rng)), (other, shapes[1], any_kind(rng))]
    how = rng.random()
    if how < 0.15:
        number = rng.choice(
            ("2", "-1.5", "0", "True", "[1, 2]", "1 + 2j", "3000000000", "'a'", "None", "1e40")
        )
        if number in ("'a'", "None"):
            # An error of the tensor's type would hide the error of the other operand.
            operands[0] = (types[0], *operands[0][1:])
        return Call(f"tf.{function}(x0, {number})", operands[:1], tolerance)
    if how < 0.2:
        # Second derivatives of quotients cancel terms of any size, which leaves their rounding errors.
        modes = ("gradients", "in_graph", "graph_gradients") if function in QUOTIENTS else MODES
        return Call(f"tf.{function}(x0, x0)", operands[:1], tolerance, modes)
    if how < 0.25:
        return Call(f"tf.{function}({rng.choice(('2', '-1.5', '0'))}, x0)", operands[:1], tolerance)
    return Call(f"tf.{function}(x0, x1)", operands, tolerance)


@FAMILY.of(
    "add subtract multiply divide math.divide_no_nan math.floordiv math.floormod maximum minimum truediv realdiv",
    "truncatediv truncatemod math.multiply_no_nan math.squared_difference equal not_equal greater",
    "greater_equal less less_equal",
)
def arithmetic(function: str, rng: random.Random) -> Call:
    return _two(function, rng, ("float32", *FLOATS, *INTEGERS, *COMPLEX), Tolerance(ulps=16))


@FAMILY.of("pow atan2 math.xdivy math.xlog1py math.xlogy math.nextafter")
def powers(function: str, rng: random.Random) -> Call:
    types = (
        ("float32", *FLOATS, *INTEGERS, *COMPLEX) if function == "pow" else ("float32", "float64", "float16")
    )
    return _two(function, rng, types, Tolerance(ulps=64))


@FAMILY.of("math.zeta math.polygamma")
def of_order(function: str, rng: random.Random) -> Call:
    # exp(lgamma(101)): the exponent is 364, which multiplies the relative error by as much.
    return _two(function, rng, ("float32", "float64"), Tolerance(ulps=512))


@FAMILY.of("logical_and logical_or math.logical_xor")
def logic(function: str, rng: random.Random) -> Call:
    return _two(function, rng, ("bool",), Tolerance())


@FAMILY.of(
    "bitwise.bitwise_and bitwise.bitwise_or bitwise.bitwise_xor bitwise.left_shift bitwise.right_shift"
)
def bits(function: str, rng: random.Random) -> Call:
    return _two(function, rng, INTEGERS, Tolerance())


@FAMILY.of("complex")
def complex_(function: str, rng: random.Random) -> Call:
    return _two(function, rng, ("float32", "float64"), Tolerance())


@FAMILY.of("cast saturate_cast bitcast")
def casts(function: str, rng: random.Random) -> Call:
    wanted = (
        rng.choice((*TYPES, "half", "double"))
        if rng.random() < 0.95
        else rng.choice(("float", "nothing", "int"))
    )
    argument = f"tf.{wanted}" if wanted in TYPES and rng.random() < 0.5 else repr(wanted)
    operand = (rng.choice(TYPES), any_shape(rng), any_kind(rng))
    return Call(f"tf.{function}(x0, {argument})", [operand])


@FAMILY.of("clip_by_value")
def clip(function: str, rng: random.Random) -> Call:
    dtype, shape = any_type(rng, ("float32", *FLOATS, *INTEGERS)), any_shape(rng)
    if rng.random() < 0.4:
        ends = rng.choice(("-1, 2", "0, 1", "2, -1", "1.5, 3.5", "-1., float('inf')", "0, 300"))
        return Call(f"tf.clip_by_value(x0, {ends})", [(dtype, shape, any_kind(rng))])
    operands = [
        (dtype, each, any_kind(rng))
        for each in (shape, broadcast_with(shape, rng), broadcast_with(shape, rng))
    ]
    return Call("tf.clip_by_value(x0, x1, x2)", operands)


@FAMILY.of("nn.leaky_relu")
def leaky(function: str, rng: random.Random) -> Call:
    alpha = rng.choice(
        ("", ", 0.3", ", alpha=0.0", ", alpha=1.5", ", alpha=-0.2", ", alpha=tf.constant(0.1)")
    )
    return Call(
        f"tf.nn.leaky_relu(x0{alpha})", [(any_type(rng), any_shape(rng), any_kind(rng))], Tolerance(ulps=32)
    )


@FAMILY.of("scalar_mul")
def scaled(function: str, rng: random.Random) -> Call:
    scalar = rng.choice(("2", "-0.5", "[1, 2]", "tf.constant(3)", "tf.constant(2.)", "1j", "True"))
    return Call(f"tf.scalar_mul({scalar}, x0)", [(any_type(rng), any_shape(rng), any_kind(rng))])


@FAMILY.of("add_n math.accumulate_n")
def sums(function: str, rng: random.Random) -> Call:
    dtype, shape = any_type(rng, ("float32", *FLOATS, *INTEGERS, *COMPLEX)), any_shape(rng)
    count = rng.randrange(1, 4)
    alike = 0.93 if dtype in NUMBERS else 1
    shapes = [shape if rng.random() < alike else any_shape(rng) for _ in range(count)]
    names = ", ".join(f"x{i}" for i in range(count))
    return Call(
        f"tf.{function}([{names}])", [(dtype, each, any_kind(rng)) for each in shapes], Tolerance(ulps=32)
    )


@FAMILY.of("debugging.check_numerics debugging.assert_all_finite")
def checked(function: str, rng: random.Random) -> Call:
    return Call(f"tf.{function}(x0, 'text')", [(any_type(rng), any_shape(rng), any_kind(rng))])


@FAMILY.of(
    "debugging.assert_equal debugging.assert_greater debugging.assert_greater_equal debugging.assert_less",
    "debugging.assert_less_equal debugging.assert_none_equal debugging.assert_near",
)
def compared(function: str, rng: random.Random) -> Call:
    return _two(function, rng, ("float32", *FLOATS, *INTEGERS), Tolerance())


@FAMILY.of(
    "debugging.assert_positive debugging.assert_negative debugging.assert_non_negative",
    "debugging.assert_non_positive debugging.assert_integer debugging.assert_scalar",
)
def stated(function: str, rng: random.Random) -> Call:
    return Call(f"tf.{function}(x0)", [(any_type(rng), any_shape(rng), any_kind(rng))], modes=("in_graph",))


@FAMILY.of("debugging.assert_rank debugging.assert_rank_at_least debugging.assert_rank_in")
def ranks(function: str, rng: random.Random) -> Call:
    rank = rng.choice(("0", "1", "2", "3", "-1", "1.5", "[1]", "tf.constant(2)"))
    if function.endswith("_in"):
        rank = rng.choice(("[0, 1]", "(1, 2, 3)", "[2]", "[]", "2"))
    return Call(
        f"tf.{function}(x0, {rank})", [(any_type(rng), any_shape(rng), "ordinary")], modes=("in_graph",)
    )

"""Recipes for functions that create tensors, such as ``range`` and ``fill``."""

import random

from operands import TYPES
from programs import Call, Family, Tolerance, any_shape

FAMILY = Family()


def _shape_text(rng: random.Random) -> str:
    shape = list(any_shape(rng))
    if rng.random() < 0.12:
        return rng.choice(
            (
                "3",
                "-1",
                "[-1]",
                "[2, None]",
                "[1.5]",
                "'a'",
                "None",
                "tf.TensorShape([2, None])",
                "[[2]]",
                "[2.0, 1]",
            )
        )
    return rng.choice(
        (
            repr(shape),
            repr(tuple(shape)),
            f"tf.constant({shape}, tf.int32)",
            f"np.array({shape}, 'int64')",
            f"tf.TensorShape({shape})",
        )
    )


@FAMILY.of("zeros ones")
def filled_with(function: str, rng: random.Random) -> Call:
    dtype = rng.choice(("", f", tf.{rng.choice(TYPES)}", f", dtype={rng.choice(TYPES)!r}"))
    return Call(f"tf.{function}({_shape_text(rng)}{dtype})", modes=("in_graph",))


@FAMILY.of("fill")
def filled(function: str, rng: random.Random) -> Call:
    value = rng.choice(
        (
            "7",
            "1.5",
            "True",
            "'a'",
            "[1]",
            "1 + 2j",
            "tf.constant(3, tf.int8)",
            "np.float64(2)",
            "None",
            "3000000000",
        )
    )
    shape = "[2, 3]" if value == "None" else _shape_text(rng)
    return Call(f"tf.fill({shape}, {value})", modes=("in_graph",))


@FAMILY.of("constant convert_to_tensor")
def constants(function: str, rng: random.Random) -> Call:
    value = rng.choice(
        (
            "1",
            "2.5",
            "True",
            "'text'",
            "b'bytes'",
            "[1, 2.5]",
            "[True, 2]",
            "[[1, 2], [3, 4]]",
            "[[1], [2, 3]]",
            "[]",
            "[[]]",
            "None",
            "1 + 2j",
            "[1, 2j]",
            "3000000000",
            "2 ** 63",
            "-2 ** 63",
            "[1, 'a']",
            "np.arange(4)",
            "np.float16(1)",
            "np.array(['a', 'bc'])",
            "[np.float32(1), 2]",
            "(1, 2)",
            "range(3)",
            "1e400",
            "[tf.constant(1), 2]",
            "[tf.constant(1.), 2]",
            "{1: 2}",
            "[[1, 2], [3]]",
            "np.zeros((0, 3))",
            "tf.int32",
            "[None]",
            "np.uint16([1, 2])",
            "300",
            "-1",
            "[0.1, 1]",
            "np.datetime64('2020-01-01')",
            "object()",
        )
    )
    dtype = rng.choice(("", "", f", tf.{rng.choice(TYPES)}", f", dtype={rng.choice(TYPES)!r}"))
    shape = ""
    if function == "constant" and rng.random() < 0.2:
        shape = f", shape={rng.choice(('[2]', '[2, 2]', '[]', '4', '[1, 1]', '(3,)', '[0]', '[-1]'))}"
    return Call(f"tf.{function}({value}{dtype}{shape})", modes=("in_graph",))


@FAMILY.of("range")
def ranges(function: str, rng: random.Random) -> Call:
    numbers = (
        "0",
        "1",
        "5",
        "-3",
        "10",
        "2.5",
        "0.1",
        "-1",
        "3",
        "np.int64(4)",
        "np.float32(0.5)",
        "tf.constant(2)",
        "tf.constant(7.)",
        "300",
        "[1]",
        "True",
    )
    arguments = [rng.choice(numbers) for _ in range(rng.choice((1, 2, 2, 3, 3)))]
    dtype = rng.choice(("", "", "", f", dtype=tf.{rng.choice(TYPES)}"))
    return Call(
        f"tf.range({', '.join(arguments)}{dtype})", modes=("in_graph",), tolerance=Tolerance(of_largest=4)
    )


@FAMILY.of("linspace")
def spaced(function: str, rng: random.Random) -> Call:
    ends = [
        rng.choice(
            (
                "0.",
                "1.",
                "-2.5",
                "10",
                "3",
                "[1., 2.]",
                "tf.constant(4., tf.float64)",
                "np.float32(1)",
                "tf.constant([0., 5.])",
            )
        )
        for _ in range(2)
    ]
    number = rng.choice(("1", "2", "5", "3", "0", "-1", "tf.constant(4)", "2.5", "7"))
    axis = rng.choice(("", "", ", axis=-1", ", axis=1"))
    return Call(
        f"tf.linspace({ends[0]}, {ends[1]}, {number}{axis})", modes=("in_graph",), tolerance=Tolerance(16, 16)
    )


@FAMILY.of("eye")
def eyes(function: str, rng: random.Random) -> Call:
    arguments = rng.choice(
        (
            "3",
            "2, 4",
            "0",
            "3, num_columns=2",
            "2, batch_shape=[2]",
            "2, 3, [1, 2]",
            "-1",
            "2.5",
            "[2]",
            "tf.constant(3)",
            "2, batch_shape=[0]",
        )
    )
    dtype = rng.choice(("", f", dtype=tf.{rng.choice(TYPES)}"))
    return Call(f"tf.eye({arguments}{dtype})", modes=("in_graph",))


@FAMILY.of("one_hot")
def one_hot(function: str, rng: random.Random) -> Call:
    operand = (
        rng.choice(("int32", "int64", "uint8", "int8", "float32", "int16")),
        any_shape(rng, (0, 1, 1, 2, 3)),
        rng.choice(("index", "ordinary")),
    )
    depth = rng.choice(("3", "4", "1", "0", "-1", "tf.constant(5)", "2.5", "[3]"))
    values = rng.choice(
        (
            "",
            "",
            ", 5, -1",
            ", on_value=2.5, off_value=0.",
            ", on_value=True, off_value=False",
            ", on_value=1",
            ", off_value=3.",
            ", 1, 2.",
            ", on_value='a', off_value='b'",
        )
    )
    axis = rng.choice(("", "", ", axis=0", ", axis=-1", ", axis=1", ", axis=7", ", axis=-2"))
    dtype = rng.choice(("", "", f", dtype=tf.{rng.choice(TYPES)}"))
    return Call(f"tf.one_hot(x0, {depth}{values}{axis}{dtype})", [operand])


@FAMILY.of("sequence_mask")
def masks(function: str, rng: random.Random) -> Call:
    operand = (
        rng.choice(("int32", "int64", "uint8", "float32")),
        any_shape(rng, (0, 1, 1, 2)),
        rng.choice(("index", "ordinary")),
    )
    length = rng.choice(("", "", ", 5", ", maxlen=2", ", maxlen=0", ", maxlen=tf.constant(4)", ", [3]"))
    dtype = rng.choice(("", "", f", dtype=tf.{rng.choice(TYPES)}"))
    return Call(f"tf.sequence_mask(x0{length}{dtype})", [operand])


@FAMILY.of("math.bincount")
def counts(function: str, rng: random.Random) -> Call:
    shape = any_shape(rng, (0, 1, 1, 2))
    operands = [
        (rng.choice(("int32", "int64", "int32", "uint8")), shape, rng.choice(("index", "index", "ordinary")))
    ]
    options = ""
    if rng.random() < 0.4:
        operands.append((rng.choice(("float32", "float64", "int32", "int64")), shape, "ordinary"))
        options = ", weights=x1"
    options += rng.choice(
        (
            "",
            ", minlength=5",
            ", maxlength=2",
            ", minlength=2, maxlength=3",
            ", dtype=tf.int64",
            ", axis=-1",
            ", axis=0",
            ", binary_output=True",
            ", axis=-1, binary_output=True",
        )
    )
    return Call(f"tf.math.bincount(x0{options})", operands)


@FAMILY.of("histogram_fixed_width histogram_fixed_width_bins")
def histograms(function: str, rng: random.Random) -> Call:
    dtype = rng.choice(("float32", "float64", "int32", "int64"))
    ends = rng.choice(("[-3., 3.]", "[0., 1.]", "[1., -1.]", "[0, 5]", "[0., 0.]"))
    bins = rng.choice(("", ", nbins=5", ", nbins=1", ", 0", ", nbins=-1", ", nbins=4, dtype=tf.int64"))
    return Call(
        f"tf.{function}(x0, tf.constant({ends}, tf.{dtype}){bins})",
        [(dtype, any_shape(rng), rng.choice(("ordinary", "ordinary", "special")))],
    )


@FAMILY.of("math.confusion_matrix")
def confusion(function: str, rng: random.Random) -> Call:
    count = rng.randrange(5)
    operands = [(rng.choice(("int32", "int64", "uint8")), (count,), "index") for _ in range(2)]
    options = rng.choice(
        (
            "",
            ", num_classes=4",
            ", num_classes=2",
            ", dtype=tf.float32",
            ", num_classes=4, weights=tf.ones([2])",
            ", num_classes=5, dtype=tf.int64",
        )
    )
    return Call(f"tf.math.confusion_matrix(x0, x1{options})", operands)

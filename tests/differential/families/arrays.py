"""Recipes for functions that change shapes and layouts.

Longer than 300 lines: the recipes of one family, one after the other.
"""

import math
import random
from typing import Any

from operands import TYPES
from programs import Call, Family, Tolerance, any_axis, any_shape, any_type

FAMILY = Family()


def _operand(
    rng: random.Random, ranks: tuple[int, ...] = (0, 1, 2, 2, 3, 4)
) -> tuple[str, tuple[int, ...], str]:
    return any_type(rng, ("float32", *TYPES)), any_shape(rng, ranks), "ordinary"


def _factors(size: int, rng: random.Random) -> list[int]:
    """Return a random shape with ``size`` elements."""
    made: list[int] = []
    while size > 1 and len(made) < 3:
        divisors = [each for each in range(1, size + 1) if size % each == 0]
        made.append(rng.choice(divisors))
        size //= made[-1]
    return [*made, size] if size != 1 or not made else made


@FAMILY.of("reshape")
def reshape(function: str, rng: random.Random) -> Call:
    operand = _operand(rng)
    shape = _factors(math.prod(operand[1]), rng)
    how = rng.random()
    if shape and how < 0.4:
        shape[rng.randrange(len(shape))] = -1
    elif how < 0.5:
        shape = rng.choice(([-1], [], [-1, -1], [3, -1], [0, -1], [-2, 1], [1, -1, 1], [2, 2]))
    text = repr(shape)
    if how > 0.8:
        text = rng.choice(
            (
                f"tf.constant({shape}, tf.int32)",
                f"np.array({shape}, 'int64')",
                f"tuple({shape})",
                f"tf.TensorShape({shape})",
                f"tf.constant({shape}, tf.float32)",
                "4",
                "-1",
                "'a'",
                "[[2, 2]]",
                "None",
                "[tf.shape(x0)[0], -1]",
                "tf.shape(x0)",
            )
        )
    return Call(f"tf.reshape(x0, {text})", [operand])


@FAMILY.of("transpose linalg.matrix_transpose linalg.adjoint")
def transposes(function: str, rng: random.Random) -> Call:
    operand = _operand(rng)
    rank = len(operand[1])
    argument = ""
    if function == "transpose":
        order = rng.sample(range(rank), rank)
        argument = rng.choice(
            ("", f", {order}", f", perm={order}", ", conjugate=True", f", tf.constant({order}, tf.int64)")
        )
        if rng.random() < 0.08:
            argument = rng.choice(
                (", [0, 0]", ", [1, 0]", ", [5]", ", [-1, 0]", ", [0.]", ", 0", ", [[0, 1]]", ", []")
            )
    return Call(f"tf.{function}(x0{argument})", [operand])


@FAMILY.of("expand_dims squeeze")
def axes_of_one(function: str, rng: random.Random) -> Call:
    operand = _operand(rng)
    shape = (
        tuple(1 if rng.random() < 0.4 else each for each in operand[1])
        if function == "squeeze"
        else operand[1]
    )
    axis = rng.randrange(-len(shape) - 1, len(shape) + 1)
    if function == "squeeze":
        ones = [i for i, length in enumerate(shape) if length == 1]
        text = rng.choice(
            (
                "",
                f", {axis}",
                f", axis={rng.sample(ones, rng.randrange(len(ones) + 1))}",
                ", axis=[0, 0]",
                f", axis=[{axis}]",
            )
        )
    else:
        text = rng.choice(
            (
                f", {axis}",
                f", axis={axis}",
                f", axis=[{axis}]",
                f", tf.constant({axis}, tf.int64)",
                ", axis=9",
            )
        )
    if rng.random() < 0.05:
        text = rng.choice((", axis=0.5", ", axis='a'", ", axis=[0, 1]", ", axis=None", ", axis=np.int32(0)"))
    return Call(f"tf.{function}(x0{text})", [(operand[0], shape, "ordinary")])


@FAMILY.of("tile broadcast_to")
def repeated(function: str, rng: random.Random) -> Call:
    operand = _operand(rng)
    shape = operand[1]
    if function == "tile":
        wanted = [rng.choice((0, 1, 1, 2, 3)) for _ in shape]
    else:
        wanted = [rng.randrange(1, 4) for _ in range(rng.randrange(3))] + [
            rng.randrange(1, 5) if length == 1 else length for length in shape
        ]
    if rng.random() < 0.1:
        wanted = rng.choice(([], [2], [-1, 2], [2, 2, 2, 2, 2, 2], [-1], [0]))
    text = rng.choice(
        (
            repr(wanted),
            repr(wanted),
            f"tf.constant({wanted}, tf.int64)",
            f"np.array({wanted})",
            f"tf.constant({wanted}, tf.float32)" if rng.random() < 0.2 else repr(tuple(wanted)),
        )
    )
    # Gradients are sums in another order, and TensorFlow adds up float16 without a wider type.
    return Call(f"tf.{function}(x0, {text})", [operand], Tolerance(16, 16))


@FAMILY.of("pad")
def padded(function: str, rng: random.Random) -> Call:
    operand = _operand(rng)
    pads: Any = [[rng.choice((0, 1, 2)), rng.choice((0, 1, 2))] for _ in operand[1]]
    if rng.random() < 0.1:
        pads = rng.choice(([[1, 1]], [[-1, 0]], [1, 1], [[0, 0], [1, 1]], [], [[1.5, 1]]))
    mode = rng.choice(
        (
            "",
            "",
            ", 'REFLECT'",
            ", mode='SYMMETRIC'",
            ", mode='constant'",
            ", constant_values=7",
            ", mode='reflect'",
            ", mode='edge'",
            ", constant_values=1.5",
            ", constant_values=-1",
        )
    )
    return Call(f"tf.pad(x0, {pads if pads else 'np.zeros((0, 2), int)'}{mode})", [operand])


@FAMILY.of("reverse")
def reversed_(function: str, rng: random.Random) -> Call:
    operand = _operand(rng)
    rank = len(operand[1])
    axes = [any_axis(rng, rank) for _ in range(rng.randrange(0, rank + 1))]
    text = rng.choice(
        (
            repr(axes),
            repr(axes),
            f"tf.constant({axes}, tf.int64)",
            str(any_axis(rng, rank)),
            "[0.5]",
            "[0, 0]",
        )
    )
    return Call(f"tf.reverse(x0, {text if text != '[]' else 'np.zeros(0, int)'})", [operand])


@FAMILY.of("roll")
def rolled(function: str, rng: random.Random) -> Call:
    operand = _operand(rng)
    rank = len(operand[1])
    count = rng.randrange(1, max(rank, 1) + 1)
    if rng.random() < 0.5:
        arguments = f"{rng.randrange(-9, 9)}, {any_axis(rng, rank)}"
    else:
        arguments = (
            f"{[rng.randrange(-9, 9) for _ in range(count)]}, {[any_axis(rng, rank) for _ in range(count)]}"
        )
    if rng.random() < 0.06:
        arguments = rng.choice(("1.5, 0", "[1, 2], 0", "1, [0, 1]", "1, axis=None", "[[1]], [[0]]"))
    return Call(f"tf.roll(x0, {arguments})", [operand])


#: An empty array of integers; TensorFlow converts an empty list to float32.
_NONE = "np.zeros(0, 'int32')"


@FAMILY.of("slice")
def sliced(function: str, rng: random.Random) -> Call:
    operand = _operand(rng)
    begin: Any = [rng.randrange(length + 1) for length in operand[1]]
    size: Any = [
        rng.choice((-1, rng.randrange(length - at + 1))) for at, length in zip(begin, operand[1], strict=True)
    ]
    if rng.random() < 0.1:
        begin, size = rng.choice(
            (
                ([0], [9]),
                ([-1], [1]),
                ([0, 0], [1]),
                ([5, 0], [1, 1]),
                ([0], [-2]),
                ([0.5], [1]),
                ("[]", "[]"),
            )
        )
    form = rng.choice(("{}", "{}", "tf.constant({})", "np.array({}, 'int64')"))
    return Call(
        f"tf.slice(x0, {form.format(begin) if begin else _NONE}, {form.format(size) if size else _NONE})",
        [operand],
    )


def _index(length: int, rng: random.Random) -> str:
    how = rng.random()
    low, high = -length - 2, length + 3
    if how < 0.25:
        return (
            str(rng.randrange(-length, length))
            if length and rng.random() < 0.9
            else str(rng.randrange(low, high))
        )
    if how < 0.35:
        return rng.choice(("...", "None", "tf.newaxis"))
    if how < 0.38:
        return rng.choice(
            ("1.5", "'a'", "[0, 1]", "np.int64(0)", "tf.constant(0)", "True", "-1", "np.array(0)")
        )
    ends = [str(rng.randrange(low, high)) if rng.random() < 0.6 else "" for _ in range(2)]
    step = rng.choice(("", "", "", ":", ":1", ":2", ":-1", ":-2", ":0" if rng.random() < 0.2 else ":3"))
    return ":".join(ends) + step


@FAMILY.of("Tensor.__getitem__")
def indexed(function: str, rng: random.Random) -> Call:
    operand = _operand(rng)
    count = rng.randrange(len(operand[1]) + 1) if rng.random() < 0.95 else len(operand[1]) + 1
    indices = [_index(operand[1][i] if i < len(operand[1]) else 2, rng) for i in range(count)] or ["..."]
    return Call(f"x0[{', '.join(indices)}]", [operand])


@FAMILY.of("strided_slice")
def strided(function: str, rng: random.Random) -> Call:
    operand = _operand(rng, (1, 2, 3))
    rank = rng.randrange(1, len(operand[1]) + 1)
    lists = [[rng.randrange(-4, 6) for _ in range(rank)] for _ in range(2)]
    steps = [rng.choice((1, 1, 1, 2, -1, -2)) if rng.random() < 0.97 else 0 for _ in range(rank)]
    masks = "".join(
        f", {mask}={rng.randrange(1 << rank)}"
        for mask in ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")
        if rng.random() < 0.15
    )
    step = rng.choice((f", {steps}", f", strides={steps}", ""))
    return Call(f"tf.strided_slice(x0, {lists[0]}, {lists[1]}{step}{masks})", [operand])


@FAMILY.of("shape_n identity_n")
def several(function: str, rng: random.Random) -> Call:
    operands = [_operand(rng) for _ in range(rng.randrange(1, 4))]
    names = ", ".join(f"x{i}" for i in range(len(operands)))
    more = rng.choice(("", ", tf.int64", ", out_type=tf.int32")) if function == "shape_n" else ""
    return Call(f"tf.{function}([{names}]{more})", operands)


@FAMILY.of("ensure_shape")
def ensured(function: str, rng: random.Random) -> Call:
    operand = _operand(rng)
    shape: Any = [rng.choice((length, length, None)) for length in operand[1]]
    if rng.random() < 0.15:
        shape = rng.choice((None, [], [None], [2, 2], [1, None], "x", 3))
    return Call(f"tf.ensure_shape(x0, {shape!r})", [operand])


@FAMILY.of("meshgrid")
def mesh(function: str, rng: random.Random) -> Call:
    operands = [_operand(rng, (0, 1, 1, 1, 2)) for _ in range(rng.randrange(1, 4))]
    names = ", ".join(f"x{i}" for i in range(len(operands)))
    more = rng.choice(("", ", indexing='ij'", ", indexing='xy'", ", indexing='x'", ", sparse=True"))
    return Call(f"tf.meshgrid({names}{more})", operands)


@FAMILY.of("repeat")
def repeats(function: str, rng: random.Random) -> Call:
    operand = _operand(rng)
    rank = len(operand[1])
    axis = any_axis(rng, rank)
    length = operand[1][axis] if rank and -rank <= axis < rank else 3
    counts = [rng.randrange(4) for _ in range(length)]
    text = rng.choice(
        (
            f"2, axis={axis}",
            f"{counts or 1}, axis={axis}",
            f"{counts or 1}, {axis}",
            "3",
            "[2], axis=0",
            "-1, axis=0",
            "[1, 2]",
            "1.5, axis=0",
        )
    )
    return Call(f"tf.repeat(x0, {text})", [operand])


@FAMILY.of("broadcast_static_shape broadcast_dynamic_shape")
def shapes_together(function: str, rng: random.Random) -> Call:
    a: list[int | None] = list(any_shape(rng))
    b = list(any_shape(rng))
    if function == "broadcast_static_shape":
        a = [None if rng.random() < 0.2 else each for each in a]
        return Call(f"tf.broadcast_static_shape(tf.TensorShape({a}), tf.TensorShape({b}))", modes=())
    return Call(f"tf.broadcast_dynamic_shape({a}, {b})", modes=())

"""Recipes for functions that concatenate, stack and split tensors."""

import random

from operands import TYPES
from programs import Call, Family, any_axis, any_shape, any_type

FAMILY = Family()


@FAMILY.of("concat stack")
def joined(function: str, rng: random.Random) -> Call:
    dtype, shape = any_type(rng, ("float32", *TYPES)), any_shape(rng)
    rank = len(shape)
    axis = any_axis(rng, rank) if function == "concat" else rng.randrange(-rank - 1, rank + 1)
    operands = []
    for _ in range(rng.randrange(1, 4)):
        other = list(shape)
        if function == "concat" and rank and -rank <= axis < rank:
            other[axis] = rng.randrange(4)
        if rng.random() < 0.04:
            other = list(any_shape(rng))
        operands.append((rng.choice(TYPES) if rng.random() < 0.03 else dtype, tuple(other), "ordinary"))
    names = ", ".join(f"x{i}" for i in range(len(operands)))
    text = rng.choice(
        (f", {axis}", f", axis={axis}", "" if function == "stack" else f", axis=tf.constant({axis})")
    )
    if rng.random() < 0.04:
        text = rng.choice((", axis=0.5", ", axis=[0]", ", axis=None", ", axis=11", ", axis='a'"))
    return Call(f"tf.{function}([{names}]{text})", operands)


@FAMILY.of("split")
def splits(function: str, rng: random.Random) -> Call:
    dtype, shape = any_type(rng, ("float32", *TYPES)), any_shape(rng, (1, 2, 2, 3, 4))
    axis = any_axis(rng, len(shape))
    length = shape[axis] if -len(shape) <= axis < len(shape) else 4
    if rng.random() < 0.5:
        divisors = [each for each in range(1, length + 1) if length % each == 0] or [1]
        sections = (
            str(rng.choice(divisors)) if rng.random() < 0.9 else rng.choice(("0", "-1", "7", "2.", "1.5"))
        )
    else:
        sizes: list[int] = []
        left = length
        while left > 0 and len(sizes) < 3:
            sizes.append(rng.randrange(left + 1))
            left -= sizes[-1]
        sizes.append(left)
        if rng.random() < 0.2:
            sizes[rng.randrange(len(sizes))] = -1
        if rng.random() < 0.06:
            sizes = rng.choice(([-1, -1], [9], [], [1, 1]))
        sections = rng.choice((repr(sizes), repr(sizes), f"np.array({sizes})", f"tf.constant({sizes})"))
    text = rng.choice((f", {axis}", f", axis={axis}"))
    return Call(f"tf.split(x0, {sections}{text})", [(dtype, shape, "ordinary")])


@FAMILY.of("unstack")
def unstacked(function: str, rng: random.Random) -> Call:
    dtype, shape = any_type(rng, ("float32", *TYPES)), any_shape(rng, (0, 1, 2, 2, 3, 4))
    axis = any_axis(rng, len(shape))
    length = shape[axis] if -len(shape) <= axis < len(shape) else 2
    number = rng.choice(("", "", f", num={length}", ", num=2", f", {length}", ", num=-1"))
    return Call(f"tf.unstack(x0{number}, axis={axis})", [(dtype, shape, "ordinary")])


@FAMILY.of("dynamic_partition")
def partitioned(function: str, rng: random.Random) -> Call:
    dtype, shape = any_type(rng, ("float32", *TYPES)), any_shape(rng, (1, 1, 2, 3))
    count = rng.choice((4, 4, 5, 3, 1, 0, -1))
    places = shape[: rng.randrange(1, len(shape) + 1)] if rng.random() < 0.95 else any_shape(rng)
    return Call(
        f"tf.dynamic_partition(x0, x1, {count})", [(dtype, shape, "ordinary"), ("int32", places, "index")]
    )


@FAMILY.of("dynamic_stitch")
def stitched(function: str, rng: random.Random) -> Call:
    dtype, row = any_type(rng, ("float32", *TYPES)), any_shape(rng, (0, 0, 1, 2))
    lengths = [rng.randrange(3) for _ in range(rng.randrange(1, 3))]
    operands = [("int32", (each,), "index") for each in lengths] + [
        (dtype, (each, *row), "ordinary") for each in lengths
    ]
    count = len(lengths)
    indices = ", ".join(f"x{i}" for i in range(count))
    data = ", ".join(f"x{i}" for i in range(count, 2 * count))
    return Call(f"tf.dynamic_stitch([{indices}], [{data}])", operands)

"""Recipes for reductions over segments of rows."""

import random

from operands import TYPES
from programs import Call, Family, Tolerance, any_kind, any_shape, any_type

FAMILY = Family()


def _data(rng: random.Random) -> tuple[str, tuple[int, ...], str]:
    return any_type(rng, ("float32", *TYPES[:-2])), any_shape(rng, (1, 2, 2, 3)), any_kind(rng)


@FAMILY.of("math.segment_max math.segment_mean math.segment_min math.segment_prod math.segment_sum")
def sorted_segments(function: str, rng: random.Random) -> Call:
    data = _data(rng)
    rows = data[1][0]
    numbers = sorted(rng.randrange(5) for _ in range(rows))
    if rng.random() < 0.08:
        numbers = rng.choice(([1, 0], [-1, 0], [0], numbers[::-1], []))
    index = rng.choice(("int32", "int64", "int32", "float32" if rng.random() < 0.2 else "int64"))
    return Call(f"tf.{function}(x0, tf.constant({numbers}, tf.{index}))", [data], Tolerance(32, 16))


@FAMILY.of(
    "math.unsorted_segment_max math.unsorted_segment_min math.unsorted_segment_prod",
    "math.unsorted_segment_sum",
)
def unsorted_segments(function: str, rng: random.Random) -> Call:
    data = _data(rng)
    depth = rng.randrange(1, len(data[1]) + 1)
    places = data[1][:depth] if rng.random() < 0.94 else any_shape(rng)
    kind = "index" if rng.random() < 0.9 else "ordinary"
    count = rng.choice(("4", "4", "5", "tf.constant(6)", "2", "0", "-1", "tf.constant(4, tf.int64)"))
    operands = [data, (rng.choice(("int32", "int64")), places, kind)]
    return Call(f"tf.{function}(x0, x1, {count})", operands, Tolerance(32, 16))


@FAMILY.of("reverse_sequence")
def reversed_(function: str, rng: random.Random) -> Call:
    dtype, shape = any_type(rng, ("float32", *TYPES)), any_shape(rng, (2, 2, 3, 4))
    axes = rng.sample(range(len(shape)), 2) if rng.random() < 0.93 else [0, 0]
    lengths = [rng.randrange(shape[axes[0]] + 1) for _ in range(shape[axes[1]])]
    if rng.random() < 0.06:
        lengths = rng.choice(([], [9, 9], [-1, 1], [1]))
    kind = rng.choice(("int32", "int64"))
    return Call(
        f"tf.reverse_sequence(x0, tf.constant({lengths}, tf.{kind}), seq_axis={axes[0]}, batch_axis={axes[1]})",
        [(dtype, shape, "ordinary")],
    )

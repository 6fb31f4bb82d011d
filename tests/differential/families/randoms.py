"""Recipes for random functions, compared by types, shapes, ranges and errors, as the numbers differ."""

import random

from operands import TYPES
from programs import Call, Family, any_shape

FAMILY = Family()


def _dtype(rng: random.Random) -> str:
    return rng.choice(("", "", "", f", dtype=tf.{rng.choice(TYPES)}"))


def _shape(rng: random.Random) -> str:
    shape = list(any_shape(rng))
    return rng.choice(
        (repr(shape), repr(shape), f"tf.constant({shape}, tf.int32)", f"tuple({shape})", "3", "[-1]", "[2.5]")
    )


@FAMILY.of("random.normal random.truncated_normal random.stateless_normal random.stateless_truncated_normal")
def normals(function: str, rng: random.Random) -> Call:
    seed = ", seed=[1, 2]" if "stateless" in function else rng.choice(("", ", seed=3"))
    if "stateless" in function and rng.random() < 0.08:
        seed = rng.choice((", seed=3", ", seed=[1]", ", seed=[1., 2.]", ", seed=[1, 2, 3]"))
        # One error per call.
        return Call(f"described(tf.{function}([2, 3]{seed}))", modes=())
    more = rng.choice(("", "", ", mean=2.", ", stddev=0.5", ", mean=[0., 1.]"))
    return Call(f"described(tf.{function}({_shape(rng)}{seed}{more}{_dtype(rng)}))", modes=())


@FAMILY.of("random.uniform random.stateless_uniform")
def uniforms(function: str, rng: random.Random) -> Call:
    seed = ", seed=[1, 2]" if "stateless" in function else rng.choice(("", ", seed=3"))
    ends = rng.choice(
        (
            "",
            "",
            ", minval=-1., maxval=1.",
            ", minval=0, maxval=5",
            ", maxval=5",
            ", minval=2",
            ", minval=5, maxval=1",
            ", minval=[0., 1.], maxval=2.",
            ", minval=None, maxval=None",
        )
    )
    shape = "[2, 3]" if "None" in ends else _shape(rng)  # One error per call.
    return Call(f"described(tf.{function}({shape}{seed}{ends}{_dtype(rng)}))", modes=())


@FAMILY.of("random.gamma random.poisson")
def others(function: str, rng: random.Random) -> Call:
    rate = rng.choice(("1.", "[0.5, 2.]", "tf.constant(3., tf.float64)", "2", "[]", "'a'"))
    return Call(f"described(tf.{function}({_shape(rng)}, {rate}{_dtype(rng)}))", modes=())


@FAMILY.of("random.shuffle")
def shuffled(function: str, rng: random.Random) -> Call:
    return Call(
        "tf.sort(tf.reshape(tf.random.shuffle(x0), [-1]))",
        [(rng.choice(TYPES[:-2]), any_shape(rng), "ordinary")],
        modes=(),
    )


@FAMILY.of("random.categorical")
def categorical(function: str, rng: random.Random) -> Call:
    shape = any_shape(rng, (2,)) if rng.random() < 0.9 else any_shape(rng)
    more = rng.choice(("", ", dtype=tf.int32", ", seed=1", ", dtype=tf.float32"))
    return Call(
        f"described(tf.random.categorical(x0, {rng.choice((3, 0, 1, -1))}{more}))",
        [(rng.choice(("float32", "float64", "float16", "int32")), shape, "ordinary")],
        modes=(),
    )

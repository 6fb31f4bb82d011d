"""Recipes for data sets: chains of transformations, over elements of which some cannot be made."""

import random

from programs import Call, Family

FAMILY = Family()

#: Transformations of a data set of floats; ``bad`` fails for some elements.
_TRANSFORMATIONS = (
    ".take({n})",
    ".skip({n})",
    ".shard({m}, {m} - 1)",
    ".shard({m}, 0)",
    ".repeat({m})",
    ".batch({m}).filter(lambda x: True).map(tf.reduce_sum)",
    ".take({n}).batch({m}, drop_remainder=True).filter(lambda x: True).map(tf.reduce_sum)",
    ".filter(lambda x: x > {n})",
    ".filter(lambda x: bad(x) > {n})",
    ".map(lambda x: bad(x) * 2)",
    ".enumerate({n}).map(lambda n, x: tf.cast(n, tf.float32) * 10 + x)",
    ".prefetch({m})",
    ".cache()",
    ".cache().repeat(2)",
    ".shuffle(1)",
    ".concatenate(numbers.take({m}))",
    ".repeat().take(20)",
)
_BEFORE = """
def bad(x):
    at = tf.cast(x, tf.float32)
    wrong = tf.reduce_any(tf.equal(at, {at}))
    return tf.debugging.check_numerics(at / tf.where(wrong, 0., 1.) * tf.where(wrong, 0., 1.), "bad")

numbers = tf.data.Dataset.range(8).map(bad)
"""
_FOLLOWING = (
    "next",
    "next",
    "lambda each: each.get_next()",
    "lambda each: (lambda made: made.get_value() if made.has_value() else 'none')(each.get_next_as_optional())",
)
#: Bodies of generator functions.
_GENERATORS = (
    "yield 1; yield 2; raise {error}('words')",
    "raise {error}('words'); yield 1",
    "yield 1; yield 'text'; yield 3",
    "yield 1; yield [1, 2]; yield 3",
    "yield 1; yield (1, 2); yield 3",
    "yield 1; yield 2; yield 3; yield {{}}",
)
_ERRORS = [
    "ValueError",
    "TypeError",
    "KeyError",
    "RuntimeError",
    "NotImplementedError",
    "MemoryError",
    "OSError",
    "IndexError",
]


@FAMILY.of("data.Dataset")
def elements_and_errors(function: str, rng: random.Random) -> Call:
    # Without transformations that change nothing: TensorFlow drops them, and joins those around.
    chain = "".join(
        rng.choice(_TRANSFORMATIONS).format(n=rng.randrange(1, 6), m=rng.choice((2, 3)))
        for _ in range(rng.randrange(1, 4))
    )
    before = _BEFORE.format(at=sorted(float(each) for each in rng.sample(range(10), 3)))
    made = f"numbers{chain}"
    how = rng.random()
    if how < 0.2:
        made = f"tf.data.Dataset.zip(({made}, numbers))"
    elif how < 0.3:
        made = f"tf.data.Dataset.zip({{'b': tf.data.Dataset.range(5), 'a': {made}}})"
    return Call(f"elements({made}, {rng.choice(_FOLLOWING)})", [], modes=("eager",), before=before)


@FAMILY.of("data.Dataset.from_generator")
def generators(function: str, rng: random.Random) -> Call:
    body = rng.choice(_GENERATORS).format(error=rng.choice(_ERRORS))
    before = f"{_BEFORE.format(at=[1.0])}\ndef generator():\n    {body}\n"
    made = f"tf.data.Dataset.from_generator(generator, {rng.choice(('tf.int32', 'tf.float32'))}"
    made += rng.choice((")", ", [])", ")", ").batch(2)", ").repeat(2)", ").map(lambda x: x * 2)"))
    return Call(f"elements({made}, {rng.choice(_FOLLOWING)})", [], modes=("eager",), before=before)

"""Recipes for axes, sizes, shifts and the like that only a session knows: each is a tensor that is fed."""

import random

from programs import Call, Family, Tolerance

FAMILY = Family()

#: Expressions over a matrix ``x`` of shape (2, 3), a number ``a`` and a pair of numbers ``p``.
_EXPRESSIONS = (
    *(
        "tf.roll(x, a, 0)",
        "tf.roll(x, 1, a)",
        "tf.roll(x, a, a)",
        "tf.roll(x, p, [0, 1])",
        "tf.roll(x, p, p)",
    ),
    *(
        "tf.repeat(x, a)",
        "tf.repeat(x, a, axis=1)",
        "tf.repeat(x, p, axis=0)",
        "tf.repeat(x, [a, 2], axis=0)",
    ),
    *("tf.gather(x, [1, 0], axis=a)", "tf.gather(x, [[0], [1]], axis=a, batch_dims=1)", "tf.gather(x, p)"),
    *("tf.math.bincount([1, 2], minlength=a)", "tf.math.bincount([1, 2], maxlength=a)"),
    *("tf.math.bincount([[1, 2]], axis=-1, minlength=a)", "tf.math.bincount([3], minlength=a, maxlength=2)"),
    *("tf.linalg.diag(x, k=a)", "tf.linalg.diag(x, k=p * [-1, 1])", "tf.linalg.diag(x, k=[a - 1, a])"),
    *("tf.linalg.diag(x, num_rows=a + 3, num_cols=a + 3)", "tf.linalg.diag(x[0], k=-a)"),
    *(
        "tf.linalg.diag_part(x, k=a)",
        "tf.linalg.diag_part(x, k=p * [-1, 1])",
        "tf.linalg.set_diag(x, x[0, :2], k=a)",
    ),
    *("tf.sort(x, axis=1)", "tf.sort(x, 0, 'DESCENDING')", "tf.sort(x, axis=-2)", "tf.sort(x)"),
    *("tf.concat([x, x * 2], a)", "tf.split(x, 3, a)", "tf.split(x, [1, a + 1], 1)"),
    *("tf.boolean_mask(x, [True, False], axis=a - 1)", "tf.boolean_mask(x[:, :2], [True, False], axis=a)"),
    *(
        "x[:, ::a + 1]",
        "x[a:, :-a]",
        "x[a]",
        "x[::-a - 1]",
        "tf.eye(a)",
        "tf.eye(2, a)",
        "tf.eye(2, batch_shape=p)",
    ),
    *("tf.sequence_mask(p, a + 2)", "tf.sequence_mask(p)", "tf.one_hot(p, a + 1)"),
    *(
        "tf.reduce_sum(x, a)",
        "tf.reduce_sum(x, p * 0)",
        "tf.reduce_sum(x, [a])",
        "tf.cumsum(x, a, reverse=True)",
    ),
    *(
        "tf.tile(x, p)",
        "tf.tile(x, [a, 2])",
        "tf.reverse(x, [a])",
        "tf.math.top_k(x, a)[0]",
        "tf.expand_dims(x, a)",
    ),
)
_SHAPES = ("[2, 3]", "[2, 3]", "[None, 3]", "[None, None]", "None")


@FAMILY.of("v1.Session")
def numbers_that_are_fed(function: str, rng: random.Random) -> Call:
    expression = rng.choice(_EXPRESSIONS)
    # TensorFlow takes int32 alone for diagonals and counts, and has no gradients of sums along axes of int64.
    is_int32 = any(word in expression for word in ("diag", "bincount", "reduce"))
    number = "int32" if is_int32 else rng.choice(("int32", "int64"))
    before = f"""
def built(x, a, p):
    with v1.Graph().as_default():
        fed = v1.placeholder(tf.float32, {rng.choice(_SHAPES)})
        number = v1.placeholder(tf.{number}, {rng.choice(("[]", "[]", "None"))})
        pair = v1.placeholder(tf.int32, {rng.choice(("[2]", "[2]", "[None]", "None"))})
        made = (lambda x, a, p: {expression})(fed, number, pair)
        made = made if isinstance(made, list) else [made]
        floats = [each * each for each in made if each.dtype.is_floating]
        slopes = v1.gradients(floats, fed)[0] if floats else None
        slopes = [] if slopes is None else [tf.convert_to_tensor(slopes)]
        with v1.Session() as session:
            return session.run([made, slopes], {{fed: x, number: a, pair: p}})
"""
    array = f"operand('float32', (2, 3), 'ordinary', {rng.randrange(99)})"
    numbers = f"{rng.choice((0, 1, 1, 1, 2, -1))}, {rng.choice(('[1, 0]', '[1, 1]', '[0, 1]', '[2, 1]'))}"
    return Call(f"built({array}, {numbers})", [], Tolerance(64, 16), ("eager",), before)

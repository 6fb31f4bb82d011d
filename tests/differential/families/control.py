"""Recipes for choices and loops as functions, and for functions that are called for each slice."""

import random

from operands import FLOATS
from programs import Call, Family, Tolerance, any_shape

FAMILY = Family()

_SUMS = Tolerance(64, 16)


def _condition(rng: random.Random) -> str:
    return rng.choice(("tf.constant(True)", "tf.constant(False)", "tf.constant(2) > 1"))


@FAMILY.of("case")
def cases(function: str, rng: random.Random) -> Call:
    count = rng.choice((1, 2, 2, 3, 3, 4, 0))
    pairs = [f"({_condition(rng)}, lambda: x0 * {i + 2})" for i in range(count)]
    given = f"[{', '.join(pairs)}]"
    if rng.random() < 0.1:
        given = rng.choice(("{'a': lambda: 1}", "3", "[(True, lambda: 1)]"))
    options = rng.choice(("", ", default=lambda: -x0", ", default=lambda: -x0"))
    options += rng.choice(("", ", exclusive=True", ", exclusive=True", ", exclusive=False"))
    operand = (rng.choice(FLOATS), any_shape(rng), "ordinary")
    has_graph = "default=lambda" in options and given.startswith("[(tf")
    modes = ("eager", "gradients", "in_graph") if has_graph else ("eager", "gradients")
    return Call(f"tf.case({given}{options})", [operand], modes=modes)


@FAMILY.of("cond switch_case")
def choices(function: str, rng: random.Random) -> Call:
    operand = (rng.choice(FLOATS), any_shape(rng), "ordinary")
    if function == "cond":
        return Call(f"tf.cond({_condition(rng)}, lambda: x0 * 2, lambda: (x0 + 1) * x0)", [operand])
    functions = [f"lambda: x0 * {i + 2}" for i in range(rng.randrange(1, 4))]
    given = f"[{', '.join(functions)}]"
    if rng.random() < 0.3:
        given = "{" + ", ".join(f"{i}: {each}" for i, each in enumerate(functions)) + "}"
    default = rng.choice(("", ", default=lambda: -x0"))
    return Call(f"tf.switch_case(tf.constant({rng.randrange(-1, 5)}), {given}{default})", [operand])


@FAMILY.of("while_loop")
def loops(function: str, rng: random.Random) -> Call:
    operand = (rng.choice(FLOATS), any_shape(rng), "ordinary")
    body = rng.choice(("(i + 1, x * 2)", "(i + 1, x * x0)", "[i + 2, tf.sin(x)]"))
    limit = rng.choice(("", ", maximum_iterations=2"))
    loop = f"tf.while_loop(lambda i, x: i < 3, lambda i, x: {body}, (tf.constant(0), x0){limit})"
    return Call(f"list({loop})", [operand], _SUMS, ("eager", "gradients", "second_gradients"))


@FAMILY.of("map_fn")
def mapped(function: str, rng: random.Random) -> Call:
    dtype, shape = rng.choice(FLOATS), any_shape(rng, (0, 1, 2, 2, 3))
    if rng.random() < 0.3:
        other = (shape[0] + rng.choice((0, 0, 1)), *shape[1:]) if shape else ()
        call = f"tf.map_fn(lambda row: row[0] * row[1], (x0, x1), fn_output_signature=tf.{dtype})"
        return Call(call, [(dtype, shape, "ordinary"), (dtype, other, "ordinary")], _SUMS)
    called, signature = rng.choice(
        (
            ("row * row", ""),
            ("tf.reduce_sum(row)", ""),
            ("(row, tf.reduce_sum(row))", f"(tf.{dtype}, tf.{dtype})"),
            ("tf.size(row)", "tf.int32"),
            ("tf.size(row)", ""),
            ("tf.fill([2], tf.reduce_sum(row))", f"tf.TensorSpec([2], tf.{dtype})"),
            ("tf.fill([2], tf.reduce_sum(row))", f"tf.TensorSpec([None], tf.{dtype})"),
            ("tf.fill([2], tf.reduce_sum(row))", f"tf.TensorSpec([3], tf.{dtype})"),
            ("tf.range(tf.cast(tf.reduce_sum(row) % 3, tf.int32))", "tf.int32"),
        )
    )
    if "None" in signature and shape and not shape[0]:
        # TensorFlow's graphs know the shape by the function, which is not called.
        shape = (1, *shape[1:])
    options = f", fn_output_signature={signature}" if signature else ""
    return Call(f"tf.map_fn(lambda row: {called}, x0{options})", [(dtype, shape, "ordinary")], _SUMS)


@FAMILY.of("foldl foldr scan")
def folded(function: str, rng: random.Random) -> Call:
    dtype, shape = rng.choice(FLOATS), any_shape(rng, (1, 2, 2, 3))
    body, initializer = rng.choice(
        (
            ("so_far + row", None),
            ("so_far * row", "tf.ones_like(x0[0])"),
            ("so_far + tf.reduce_sum(row)", f"tf.constant(1., tf.{dtype})"),
            ("(so_far[0] + row, so_far[1] + 1)", "(tf.zeros_like(x0[0]), 0)"),
            ("(so_far, row)", f"tf.constant(1., tf.{dtype})"),
        )
    )
    if initializer is None and shape[0] == 0:
        # TensorFlow raises another error in a graph.
        shape = (1, *shape[1:])
    options = f", initializer={initializer}" if initializer else ""
    if function == "scan" and rng.random() < 0.4:
        options += ", reverse=True"
    call = f"tf.{function}(lambda so_far, row: {body}, x0{options})"
    return Call(f"tf.nest.flatten({call})", [(dtype, shape, "ordinary")], _SUMS)

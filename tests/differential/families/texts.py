"""Recipes for functions of strings."""

import random

from operands import TYPES
from programs import Call, Family, any_kind, any_shape

FAMILY = Family()


def _text(rng: random.Random) -> tuple[str, tuple[int, ...], str]:
    return ("string" if rng.random() < 0.95 else rng.choice(TYPES)), any_shape(rng), "ordinary"


@FAMILY.of("strings.length strings.lower strings.upper strings.strip strings.to_number")
def simple(function: str, rng: random.Random) -> Call:
    more = {
        "strings.length": ("", "", ", unit='UTF8_CHAR'", ", unit='x'"),
        "strings.lower": ("", ", encoding='utf-8'", ", encoding='x'"),
        "strings.upper": ("", ", encoding='utf-8'"),
        "strings.strip": ("",),
        "strings.to_number": ("", ", tf.int32", ", out_type=tf.float64", ", tf.int64", ", tf.int8"),
    }[function]
    operand = _text(rng)
    if function == "strings.to_number" and rng.random() < 0.8:
        numbers = [
            rng.choice(
                (
                    "1",
                    "-2.5",
                    "1e3",
                    " 7",
                    "7 ",
                    "nan",
                    "inf",
                    "-0",
                    "0x10",
                    "3000000000",
                    "1.",
                    ".5",
                    "",
                    "a",
                    "1_0",
                )
            )
            for _ in range(2)
        ]
        return Call(f"tf.strings.to_number({numbers}{rng.choice(more)})", modes=())
    options = rng.choice(more)
    if options.endswith("'x'"):
        # One error per call.
        operand = ("string", *operand[1:])
    return Call(f"tf.{function}(x0{options})", [operand], modes=("in_graph",))


@FAMILY.of("strings.as_string")
def as_string(function: str, rng: random.Random) -> Call:
    more = rng.choice(
        (
            "",
            "",
            ", precision=3",
            ", scientific=True",
            ", shortest=True",
            ", width=8",
            ", width=6, fill='0'",
            ", precision=2, scientific=True",
            ", width=5, fill='-'",
            ", fill='ab'",
            ", scientific=True, shortest=True",
        )
    )
    return Call(
        f"tf.strings.as_string(x0{more})",
        [(rng.choice(TYPES), any_shape(rng), any_kind(rng))],
        modes=("in_graph",),
    )


@FAMILY.of("strings.join")
def joined(function: str, rng: random.Random) -> Call:
    shape = any_shape(rng)
    operands = [
        ("string", shape if rng.random() < 0.8 else (), "ordinary") for _ in range(rng.randrange(1, 4))
    ]
    names = ", ".join(f"x{i}" for i in range(len(operands)))
    separator = rng.choice(("", ", '-'", ", separator=' '"))
    return Call(f"tf.strings.join([{names}]{separator})", operands, modes=("in_graph",))


@FAMILY.of("strings.reduce_join")
def reduced(function: str, rng: random.Random) -> Call:
    operand = _text(rng)
    axis = rng.choice(("", ", axis=0", ", axis=-1", ", axis=[0, 1]", ", axis=[]", ", axis=1", ", axis=9"))
    more = rng.choice(("", ", separator='+'", ", keepdims=True"))
    return Call(f"tf.strings.reduce_join(x0{axis}{more})", [operand], modes=("in_graph",))


@FAMILY.of("strings.substr")
def parts(function: str, rng: random.Random) -> Call:
    operand = _text(rng)
    pos, length = rng.choice((0, 0, 1, -1, 2, -3, 9)), rng.choice((0, 1, 2, 5, 20, -1))
    unit = rng.choice(("", "", ", unit='UTF8_CHAR'", ", unit='BYTE'"))
    return Call(f"tf.strings.substr(x0, {pos}, {length}{unit})", [operand], modes=("in_graph",))


@FAMILY.of("strings.format")
def formatted(function: str, rng: random.Random) -> Call:
    operand = (rng.choice(TYPES), any_shape(rng), any_kind(rng))
    template = rng.choice(("'{}'", "'a {} b'", "'x'", "'{} {}'"))
    more = rng.choice(("", ", summarize=1", ", summarize=-1", ", placeholder='%'"))
    return Call(f"tf.strings.format({template}, x0{more})", [operand], modes=("in_graph",))

"""Recipes for functions that gather or scatter elements by index or condition."""

import random

from operands import FLOATS, INTEGERS, TYPES
from programs import Call, Family, any_kind, any_shape, any_type, broadcast_with

FAMILY = Family()


def _dtype(rng: random.Random) -> str:
    return any_type(rng, ("float32", *TYPES))


def _index_type(rng: random.Random) -> str:
    return (
        rng.choice(("int32", "int32", "int64", "int64", "int16", "uint8"))
        if rng.random() < 0.97
        else "float32"
    )


@FAMILY.of("gather nn.embedding_lookup")
def gathered(function: str, rng: random.Random) -> Call:
    shape = any_shape(rng, (1, 2, 2, 3, 4))
    if rng.random() < 0.8:
        shape = tuple(max(each, 4) for each in shape)
    indices = any_shape(rng, (0, 1, 1, 2, 3))
    kind = "index" if rng.random() < 0.93 else "ordinary"
    more = ""
    if function == "gather" and rng.random() < 0.5:
        axis = rng.randrange(-len(shape), len(shape))
        more = rng.choice(
            (
                f", axis={axis}",
                f", axis={axis}, batch_dims=1",
                ", batch_dims=1",
                f", axis={axis}, batch_dims={axis}",
                ", batch_dims=-1",
                ", axis=9",
            )
        )
        if "batch" in more:
            indices = (*shape[:1], *indices[1:])
    return Call(
        f"tf.{function}(x0, x1{more})", [(_dtype(rng), shape, "ordinary"), (_index_type(rng), indices, kind)]
    )


@FAMILY.of("gather_nd")
def gathered_nd(function: str, rng: random.Random) -> Call:
    shape = tuple(max(each, 4) for each in any_shape(rng, (1, 2, 2, 3, 4)))
    depth = rng.randrange(0, len(shape) + 1)
    indices = (*any_shape(rng, (0, 1, 1, 2)), depth if rng.random() < 0.95 else depth + 3)
    kind = "index" if rng.random() < 0.92 else "ordinary"
    more = rng.choice(("", "", ", batch_dims=1", ", batch_dims=9", ", batch_dims=0"))
    if more == ", batch_dims=1":
        indices = (shape[0], *indices[1:-1], rng.randrange(0, len(shape)))
    return Call(
        f"tf.gather_nd(x0, x1{more})", [(_dtype(rng), shape, "ordinary"), (_index_type(rng), indices, kind)]
    )


@FAMILY.of("where")
def chosen(function: str, rng: random.Random) -> Call:
    shape = any_shape(rng)
    if rng.random() < 0.25:
        return Call("tf.where(x0)", [(rng.choice(("bool", *TYPES)), shape, any_kind(rng, "whole"))])
    dtype = _dtype(rng)
    operands = [
        ("bool" if rng.random() < 0.96 else "int32", broadcast_with(shape, rng), "ordinary"),
        (dtype, broadcast_with(shape, rng), any_kind(rng)),
        (dtype if rng.random() < 0.96 else "int8", shape, any_kind(rng)),
    ]
    if rng.random() < 0.15:
        return Call(f"tf.where(x0, x1, {rng.choice(('0', '1.5', 'None', 'True'))})", operands[:2])
    return Call("tf.where(x0, x1, x2)", operands)


@FAMILY.of("boolean_mask")
def masked(function: str, rng: random.Random) -> Call:
    shape = any_shape(rng, (1, 2, 3))
    axis = rng.randrange(len(shape))
    mask = shape[axis : axis + rng.randrange(1, 3)] if rng.random() < 0.93 else any_shape(rng)
    more = rng.choice((f", axis={axis}", f", axis={axis - len(shape)}")) if axis or rng.random() < 0.3 else ""
    return Call(
        f"tf.boolean_mask(x0, x1{more})", [(_dtype(rng), shape, "ordinary"), ("bool", mask, "ordinary")]
    )


@FAMILY.of("scatter_nd")
def scattered(function: str, rng: random.Random) -> Call:
    shape = tuple(max(each, 4) for each in any_shape(rng, (1, 2, 3)))
    depth = rng.randrange(1, len(shape) + 1)
    outer = any_shape(rng, (0, 1, 1, 2))
    updates = (*outer, *shape[depth:]) if rng.random() < 0.95 else any_shape(rng)
    index_type = rng.choice(("int32", "int64", "int32", "int16"))
    kind = "index" if rng.random() < 0.93 else "ordinary"
    wanted = f"tf.constant({list(shape)}, tf.{index_type})" if rng.random() < 0.7 else repr(list(shape))
    return Call(
        f"tf.scatter_nd(x0, x1, {wanted})",
        [(index_type, (*outer, depth), kind), (_dtype(rng), updates, "ordinary")],
    )


@FAMILY.of(
    "tensor_scatter_nd_add tensor_scatter_nd_sub tensor_scatter_nd_update tensor_scatter_nd_max tensor_scatter_nd_min"
)
def updated(function: str, rng: random.Random) -> Call:
    shape = tuple(max(each, 4) for each in any_shape(rng, (1, 2, 3)))
    depth = rng.randrange(1, len(shape) + 1)
    outer = any_shape(rng, (1, 1, 2))
    updates = (*outer, *shape[depth:]) if rng.random() < 0.93 else any_shape(rng)
    dtype = _dtype(rng)
    kind = "index" if rng.random() < 0.93 else "ordinary"
    operands = [
        (dtype, shape, "ordinary"),
        (_index_type(rng), (*outer, depth), kind),
        (dtype, updates, "ordinary"),
    ]
    return Call(f"tf.{function}(x0, x1, x2)", operands)


@FAMILY.of("math.top_k")
def top(function: str, rng: random.Random) -> Call:
    shape = any_shape(rng)
    k = rng.randrange((shape[-1] if shape else 1) + 1) if rng.random() < 0.93 else rng.choice((9, -1))
    text = rng.choice(
        (
            f", {k}",
            f", k={k}",
            f", k={k}, sorted=False" if k == 1 else "",
            f", k={k}, index_type=tf.int64",
            f", tf.constant({k})",
        )
    )
    kind = any_kind(rng, "special", "index")
    return Call(f"tf.math.top_k(x0{text})", [(any_type(rng, ("float32", *TYPES[:-2])), shape, kind)])


@FAMILY.of("math.in_top_k")
def in_top(function: str, rng: random.Random) -> Call:
    rows, classes = rng.randrange(5), rng.randrange(4, 7)
    operands = [
        (rng.choice(("int32", "int64")), (rows,), "index"),
        (any_type(rng, ("float32",) * 6), (rows, classes), any_kind(rng)),
    ]
    return Call(f"tf.math.in_top_k(x0, x1, {rng.choice((1, 2, 3, 0, 9, -1))})", operands)


@FAMILY.of("sort argsort")
def ordered(function: str, rng: random.Random) -> Call:
    shape = any_shape(rng)
    axis = rng.choice(("", f", axis={rng.randrange(-len(shape), len(shape)) if shape else 0}", ", axis=9"))
    how = rng.choice(("", ", direction='DESCENDING'", ", direction='ASCENDING'", ", direction='x'"))
    if rng.random() < 0.5:
        how = ""
    kind = any_kind(rng, "special", "index")
    dtype = any_type(rng, ("float32", *TYPES[:-2]))
    if dtype not in (*FLOATS, *INTEGERS):
        axis = ""  # One error per call: the type cannot be sorted.
    return Call(f"tf.{function}(x0{axis}{how})", [(dtype, shape, kind)])


@FAMILY.of("searchsorted")
def searched(function: str, rng: random.Random) -> Call:
    rows = rng.choice(((), (), (2,), (3,)))
    dtype = any_type(rng, ("float32", "float64", "int32", "int64"))
    operands = [
        (dtype, (*rows, rng.randrange(6)), "ordinary"),
        (dtype, (*rows, rng.randrange(5)), "ordinary"),
    ]
    side = rng.choice(("", ", side='right'", ", side='left'", ", side='x'", ", out_type=tf.int64"))
    return Call(f"tf.searchsorted(tf.sort(x0), x1{side})", operands)


@FAMILY.of("unique unique_with_counts")
def uniques(function: str, rng: random.Random) -> Call:
    shape = any_shape(rng, (1,)) if rng.random() < 0.93 else any_shape(rng)
    more = rng.choice(("", "", ", tf.int64", ", out_idx=tf.int32", ", out_idx=tf.int8"))
    return Call(f"tf.{function}(x0{more})", [(_dtype(rng), shape, any_kind(rng, "index", "special"))])


@FAMILY.of("math.invert_permutation")
def inverted(function: str, rng: random.Random) -> Call:
    order = rng.sample(range(6), 6)[: rng.randrange(7)]
    order = (
        sorted(order, key=order.index) if rng.random() < 0.2 else rng.sample(range(len(order)), len(order))
    )
    dtype = rng.choice(("int32", "int64", "int32", "float32"))
    return Call(f"tf.math.invert_permutation(tf.constant({order}, tf.{dtype}))", modes=())


@FAMILY.of("unravel_index")
def unraveled(function: str, rng: random.Random) -> Call:
    dims = [rng.randrange(1, 5) for _ in range(rng.randrange(1, 4))]
    indices = rng.choice((f"{rng.randrange(12)}", f"{[rng.randrange(8) for _ in range(3)]}"))
    return Call(f"tf.unravel_index({indices}, {dims})", modes=())

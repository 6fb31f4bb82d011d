"""Recipes for functions of matrices."""

import random

from operands import COMPLEX, FLOATS, INTEGERS, TYPES
from programs import Call, Family, Tolerance, any_kind, any_shape, any_type

FAMILY = Family()

PRODUCTS = Tolerance(32, 64)
SOLUTIONS = Tolerance(4096, 4096)


@FAMILY.of("matmul")
def products(function: str, rng: random.Random) -> Call:
    dtype = any_type(rng, ("float32", *FLOATS, *COMPLEX, *INTEGERS))
    n, k, m = (rng.randrange(1, 5) if rng.random() < 0.95 else 0 for _ in range(3))
    outer = any_shape(rng, (0, 0, 0, 1, 2))
    flags = [rng.random() < 0.2 for _ in range(2)]
    left = (*outer, *((k, n) if flags[0] else (n, k)))
    right = (*outer[rng.randrange(len(outer) + 1) :], *((m, k) if flags[1] else (k, m)))
    if rng.random() < 0.06:
        left = any_shape(rng)
    how = rng.choice(("transpose", "transpose", "adjoint"))
    options = "".join(f", {how}_{name}=True" for flag, name in zip(flags, "ab", strict=True) if flag)
    text = "x0 @ x1" if not options and rng.random() < 0.3 else f"tf.matmul(x0, x1{options})"
    return Call(text, [(dtype, left, any_kind(rng, "special")), (dtype, right, "ordinary")], PRODUCTS)


@FAMILY.of("linalg.matvec")
def matvec(function: str, rng: random.Random) -> Call:
    dtype = any_type(rng)
    n, k = rng.randrange(1, 5), rng.randrange(1, 5)
    outer = any_shape(rng, (0, 0, 1))
    flag = rng.random() < 0.3
    operands = [
        (dtype, (*outer, *((k, n) if flag else (n, k))), "ordinary"),
        (dtype, (*outer, k), "ordinary"),
    ]
    return Call(f"tf.linalg.matvec(x0, x1{', transpose_a=True' if flag else ''})", operands, PRODUCTS)


@FAMILY.of("tensordot")
def tensordots(function: str, rng: random.Random) -> Call:
    dtype = any_type(rng)
    shared = tuple(rng.randrange(1, 4) for _ in range(rng.randrange(0, 3)))
    left, right = any_shape(rng, (0, 1, 2)) + shared, shared + any_shape(rng, (0, 1, 2))
    count = len(shared)
    axes = rng.choice((str(count), str([list(range(len(left) - count, len(left))), list(range(count))])))
    if rng.random() < 0.08:
        axes = rng.choice(("9", "-1", "[0, 0]", "[[0], [9]]", "[[0, 1], [0]]", "1.5", "tf.constant(1)"))
    return Call(
        f"tf.tensordot(x0, x1, {axes})", [(dtype, left, "ordinary"), (dtype, right, "ordinary")], PRODUCTS
    )


@FAMILY.of("einsum")
def einsums(function: str, rng: random.Random) -> Call:
    lengths = {letter: rng.randrange(1, 4) for letter in "abcdij"}
    equation = rng.choice(
        (
            "ij,jb->ib",
            "ij->ji",
            "ij->",
            "ii->i",
            "i,j->ij",
            "aij,ajb->aib",
            "ij,ij->i",
            "...i,ij->...j",
            "abc->cba",
            "ij,j",
            "ij,jb,bc->ic",
            "ij,ij->",
            "ijj->i",
            "i->j",
            "ij,jk->i k",
        )
    )
    operands = []
    dtype = any_type(rng)
    for term in equation.split("->")[0].split(","):
        shape = tuple(lengths.get(letter, 2) for letter in term.replace("...", "") if letter.isalpha())
        operands.append((dtype, (2, *shape) if "..." in term else shape, "ordinary"))
    names = ", ".join(f"x{i}" for i in range(len(operands)))
    return Call(f"tf.einsum({equation!r}, {names})", operands, PRODUCTS)


@FAMILY.of("linalg.cross")
def crosses(function: str, rng: random.Random) -> Call:
    dtype = any_type(rng, ("float32", *FLOATS, *INTEGERS))
    shape = (*any_shape(rng, (0, 1, 2)), 3 if rng.random() < 0.9 else 2)
    return Call("tf.linalg.cross(x0, x1)", [(dtype, shape, "ordinary"), (dtype, shape, "ordinary")], PRODUCTS)


def _square(rng: random.Random) -> tuple[str, tuple[int, ...]]:
    size = rng.randrange(1, 5)
    shape = (*any_shape(rng, (0, 0, 1)), size, size)
    if rng.random() < 0.06:
        shape = any_shape(rng)
    return any_type(rng, ("float32", "float64", *COMPLEX)), shape


@FAMILY.of("linalg.det linalg.logdet linalg.slogdet linalg.inv linalg.expm linalg.trace")
def of_squares(function: str, rng: random.Random) -> Call:
    dtype, shape = _square(rng)
    x = "x0"
    if function == "linalg.logdet":
        # Shifted, because the logarithm of a zero determinant would be that of rounding errors.
        x = "tf.matmul(x0, x0, adjoint_b=True) + tf.eye(tf.shape(x0)[-2], dtype=x0.dtype)"
    more = rng.choice(("", "", ", adjoint=True")) if function == "linalg.inv" else ""
    # The matrix exponential squares repeatedly, which multiplies rounding errors.
    ulps = 1 << (18 if dtype in ("float64", "complex128") else 15)
    tolerance = Tolerance(ulps, ulps) if function == "linalg.expm" else SOLUTIONS
    return Call(f"tf.{function}({x}{more})", [(dtype, shape, "ordinary")], tolerance)


@FAMILY.of("linalg.cholesky linalg.eigvalsh")
def of_positive(function: str, rng: random.Random) -> Call:
    dtype, shape = _square(rng)
    # Shifted, because a nearly singular product would amplify rounding errors.
    shift = "tf.eye(tf.shape(x0)[-1], dtype=x0.dtype)"
    x = (
        f"tf.matmul(x0, x0, adjoint_b=True) + {shift}"
        if rng.random() < 0.9
        else rng.choice((f"x0 + {shift}", "x0"))
    )
    return Call(f"tf.{function}({x})", [(dtype, shape, "ordinary")], SOLUTIONS)


@FAMILY.of("linalg.eigh linalg.eig linalg.eigvals linalg.svd linalg.qr")
def decompositions(function: str, rng: random.Random) -> Call:
    """Decompositions, compared by the product of their factors, as the signs of vectors are arbitrary."""
    dtype, shape = _square(rng)
    if function in ("linalg.svd", "linalg.qr") and rng.random() < 0.6 and len(shape) > 1:
        shape = (*shape[:-1], rng.randrange(1, 5))
    text = {
        "linalg.eigh": "rebuilt(*tf.linalg.eigh(x0 + tf.linalg.adjoint(x0)))",
        "linalg.eig": "[each.dtype for each in tf.linalg.eig(x0)]",
        "linalg.eigvals": "tf.sort(tf.abs(tf.linalg.eigvals(x0)))",
        "linalg.svd": rng.choice(
            (
                "tf.linalg.svd(x0, compute_uv=False)",
                "rebuilt(*tf.linalg.svd(x0))",
                "[each.shape for each in tf.linalg.svd(x0, full_matrices=True)]",
            )
        ),
        "linalg.qr": rng.choice(
            ("tf.matmul(*tf.linalg.qr(x0))", "[each.shape for each in tf.linalg.qr(x0, full_matrices=True)]")
        ),
    }[function]
    return Call(
        text, [(dtype, shape, "ordinary")], SOLUTIONS, modes=("in_graph",) if function != "linalg.eig" else ()
    )


@FAMILY.of("linalg.solve linalg.triangular_solve linalg.cholesky_solve linalg.lstsq")
def systems(function: str, rng: random.Random) -> Call:
    dtype, shape = _square(rng)
    right = (*shape[:-1], rng.randrange(1, 4)) if rng.random() < 0.95 else any_shape(rng)
    matrix = "x0 + 9 * tf.eye(tf.shape(x0)[-1], dtype=x0.dtype)" if rng.random() < 0.95 else "x0"
    more = {
        "linalg.solve": ("", ", adjoint=True"),
        "linalg.triangular_solve": ("", ", lower=False", ", adjoint=True", ", lower=False, adjoint=True"),
        "linalg.cholesky_solve": ("",),
        "linalg.lstsq": ("", ", l2_regularizer=0.5", ", fast=False"),
    }[function]
    return Call(
        f"tf.{function}({matrix}, x1{rng.choice(more)})",
        [(dtype, shape, "ordinary"), (dtype, right, "ordinary")],
        SOLUTIONS,
    )


@FAMILY.of("linalg.pinv linalg.matrix_rank")
def pseudo(function: str, rng: random.Random) -> Call:
    shape = any_shape(rng, (2, 2, 3)) if rng.random() < 0.95 else any_shape(rng)
    return Call(f"tf.{function}(x0)", [(any_type(rng, ("float32", "float64")), shape, "ordinary")], SOLUTIONS)


@FAMILY.of("linalg.diag linalg.diag_part linalg.band_part")
def diagonals(function: str, rng: random.Random) -> Call:
    operand = (any_type(rng, ("float32", *TYPES)), any_shape(rng), "ordinary")
    more = ""
    if function == "linalg.band_part":
        more = rng.choice(
            (
                ", 0, -1",
                ", -1, 0",
                ", 1, 1",
                ", 0, 0",
                ", 9, 1",
                ", tf.constant(1), tf.constant(0)",
                ", -2, 1",
            )
        )
    elif function in ("linalg.diag", "linalg.diag_part"):
        more = rng.choice(
            (
                "",
                "",
                ", k=1",
                ", k=-1",
                ", k=(-1, 1)",
                ", k=9",
                ", k=1, padding_value=7",
                ", k=(0, 1), align='LEFT_RIGHT'",
                ", k=(1, 0)",
            )
        )
    return Call(f"tf.{function}(x0{more})", [operand])


@FAMILY.of("linalg.set_diag")
def set_diagonals(function: str, rng: random.Random) -> Call:
    dtype, shape = any_type(rng, ("float32", *TYPES)), any_shape(rng, (2, 2, 3))
    diagonal = (*shape[:-2], min(shape[-2:])) if rng.random() < 0.9 else any_shape(rng)
    more = rng.choice(("", "", ", k=1", ", k=0"))
    return Call(
        f"tf.linalg.set_diag(x0, x1{more})", [(dtype, shape, "ordinary"), (dtype, diagonal, "ordinary")]
    )

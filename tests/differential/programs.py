"""Generates random programs for the judge: source texts that call one public function each."""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from operands import COMPLEX, FLOATS, TYPES

#: The modes in which a call is run; each is the name of a helper function.
MODES = ("eager", "gradients", "second_gradients", "in_graph", "graph_gradients")


@dataclass(frozen=True)
class Tolerance:
    """Tolerance for floating-point results."""

    #: Allowed difference in units of the last place (ulps) of the larger value.
    ulps: float = 8
    #: Allowed difference in ulps of the result's largest element: for sums, whose errors follow the largest term.
    of_largest: float = 0
    #: Lower bound of the terms' size, for results that are much smaller than their terms (cancellation).
    terms: float = 0


@dataclass(frozen=True)
class Program:
    """A generated program, which sets ``result``."""

    #: The public function under test, such as ``math.add``.
    function: str
    mode: str
    source: str
    tolerance: Tolerance = Tolerance()
    #: Element types of the operands.
    types: tuple[str, ...] = ()


@dataclass(frozen=True)
class Call:
    """A call of a public function: operands ``x0``, ``x1``, … and an expression over them."""

    expression: str
    #: Element type, shape and kind of each operand.
    operands: Sequence[tuple[str, tuple[int, ...], str]] = ()
    tolerance: Tolerance = Tolerance()
    modes: Sequence[str] = MODES
    #: Source text to run before the call.
    before: str = ""


#: A function from a public function's name and a random generator to a random call of it.
Recipe = Callable[[str, random.Random], Call]


@dataclass
class Family:
    """A group of public functions with their recipes."""

    recipes: dict[str, Recipe] = field(default_factory=dict)

    def of(self, *functions: str) -> Callable[[Recipe], Recipe]:
        """Register the decorated recipe for functions, whose names are given in texts separated by blanks."""

        def enter(recipe: Recipe) -> Recipe:
            for function in " ".join(functions).split():
                if function in self.recipes:
                    raise ValueError(f"{function} has a recipe already")
                self.recipes[function] = recipe
            return recipe

        return enter


def programs(function: str, recipe: Recipe, seed: int, modes: Sequence[str] = MODES) -> Iterator[Program]:
    """Yield random programs for one function without end; stop if its recipe allows none of the modes.

    Args:
        function: The function's public name.
        recipe: Creates random calls of the function.
        seed: Seed of the random numbers.
        modes: The modes to choose from.
    """
    rng = random.Random(f"{function}/{seed}")
    failures = 0
    while failures < 100:
        call = recipe(function, rng)
        allowed = [mode for mode in ("eager", *call.modes) if mode in modes]
        failures = 0 if allowed else failures + 1
        if allowed:
            yield _program(function, call, rng.choice(allowed), rng)


def _program(function: str, call: Call, mode: str, rng: random.Random) -> Program:
    types = tuple(dtype for dtype, _, _ in call.operands)
    if mode in ("gradients", "second_gradients", "graph_gradients") and not set(types) & {*FLOATS, *COMPLEX}:
        mode = "eager"
    seed = rng.randrange(1000)
    made = [f"operand{(d, s, k, seed + i)}" for i, (d, s, k) in enumerate(call.operands)]
    names = ", ".join(f"x{i}" for i in range(len(made)))
    arguments = "".join(f", {each}" for each in made)
    options = ""
    if mode in ("in_graph", "graph_gradients"):
        options = f", shapes={[_partly_known(shape, rng) for _, shape, _ in call.operands]}"
    elif mode == "gradients" and rng.random() < 0.15:
        options = ", zero=True"
    source = f"{call.before}result = {mode}(lambda {names}: {call.expression}{arguments}{options})"
    tolerance = call.tolerance
    if "gradients" in mode:
        # Gradients are sums of products: rounding errors depend on the largest term, signs of zeros on the order.
        tolerance = Tolerance(tolerance.ulps, max(tolerance.of_largest, tolerance.ulps), terms=4)
    return Program(function, mode, source, tolerance, types)


def _partly_known(shape: tuple[int, ...], rng: random.Random) -> list[int | None] | None:
    how = rng.random()
    if how < 0.1:
        return None
    if how < 0.4:
        return list(shape)
    return [None if rng.random() < 0.4 else length for length in shape]


def any_type(rng: random.Random, usual: Sequence[str] = ("float32", *FLOATS, *COMPLEX)) -> str:
    """Return a random element type, mostly one of the usual ones."""
    return rng.choice(TYPES) if rng.random() < 0.3 else rng.choice(list(usual))


def any_shape(rng: random.Random, ranks: Sequence[int] = (0, 1, 1, 2, 2, 3, 4)) -> tuple[int, ...]:
    """Return a random shape with short axes, some of length 0 or 1, rarely a longer one."""
    shape = tuple(rng.choice((1, 2, 2, 3, 3, 4, 5)) for _ in range(rng.choice(list(ranks))))
    if shape and rng.random() < 0.12:
        at = rng.randrange(len(shape))
        shape = (*shape[:at], rng.choice((0, 0, 1, 17, 130)), *shape[at + 1 :])
    return shape


def any_kind(rng: random.Random, *more: str) -> str:
    """Return a random kind of elements, mostly ordinary, or one of those given."""
    if rng.random() < 0.02:
        return "denormal"
    return rng.choice(("ordinary", "ordinary", *(more or ("special", "positive"))))


def broadcast_with(shape: tuple[int, ...], rng: random.Random) -> tuple[int, ...]:
    """Return a random shape to broadcast with another, mostly a compatible one."""
    how = rng.random()
    if how < 0.4:
        return shape
    if how < 0.5:
        return ()
    if how < 0.57:
        return any_shape(rng)
    other = tuple(1 if rng.random() < 0.35 else length for length in shape)
    return other[rng.randrange(len(other) + 1) :] if rng.random() < 0.5 else other


def any_axis(rng: random.Random, rank: int) -> int:
    """Return a random axis for a rank, rarely out of range."""
    if rng.random() < 0.06:
        return rng.choice((rank, -rank - 1, rank + 3))
    return rng.randrange(-rank, rank) if rank else rng.choice((0, -1))


def any_axes(rng: random.Random, rank: int) -> object:
    """Return random axes of a reduction: ``None``, one or several, rarely repeated or out of range."""
    how = rng.random()
    if how < 0.25:
        return None
    if how < 0.6:
        return any_axis(rng, rank)
    if how < 0.65:
        return []
    chosen = [any_axis(rng, rank) for _ in range(rng.randrange(1, max(rank, 1) + 1))]
    if rng.random() < 0.8:
        chosen = list(
            {axis % rank if rank and -rank <= axis < rank else axis: axis for axis in chosen}.values()
        )
    return chosen

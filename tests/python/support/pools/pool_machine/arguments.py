"""Hypothesis strategies for the rules' arguments, valid and invalid."""

from hypothesis import strategies as some

from support.pools.pool_model import GRANULE

MIB = 1 << 20
MAX_BYTES = (1 << 63) - GRANULE

SMALL = some.integers(0, 300_000)
SIZES = some.one_of(
    some.integers(0, 3000),
    SMALL,
    SMALL,
    some.integers(0, 1200).map(lambda granules: granules * GRANULE),
    some.integers(0, 5 * MIB),
    some.sampled_from([MIB, 2 * MIB, 2 * MIB + 1, 4 * MIB]),
    some.sampled_from([64 * MIB, MAX_BYTES - 1, MAX_BYTES]),
)
#: A list, because a range would mostly give its lower end, and a pool that refuses everything tests little.
LIMITS = some.sampled_from(
    [300, 5000, MIB - 1, 2 * MIB, 3 * MIB, 6 * MIB, 10_000_001, 16 * MIB, 64 * MIB, 64 * MIB + 77]
)
BAD_SIZES = some.one_of(
    some.integers(max_value=-1),
    some.integers(min_value=MAX_BYTES + 1),
    some.floats(),
    some.booleans(),
    some.none(),
    some.binary(max_size=3),
    some.sampled_from(["", "12 parsecs", "-3MiB", "1e30", "9000000TiB", "MiB"]),
)
#: Values that are not numbers. All other invalid addresses are numbers that the pool never returned.
NO_NUMBERS = some.one_of(some.floats(), some.booleans(), some.none(), some.text(max_size=3), some.binary())
BAD_ALIGNMENTS = some.one_of(
    some.integers().filter(lambda n: n < 1 or n & (n - 1) != 0),
    some.floats(),
    some.booleans(),
    some.none().map(lambda _: "256"),
)
PLACES = some.integers(0, 1000)
ELSEWHERE = some.integers(0, 3).map(lambda number: number == 0)

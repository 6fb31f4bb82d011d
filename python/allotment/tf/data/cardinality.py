"""How many elements a data set has, as far as that can be told without going through it."""

from typing import Final

#: There is no last element.
INFINITE: Final = -1
#: It depends on the elements.
UNKNOWN: Final = -2


def of_batches(count: int, size: int, drop_remainder: bool) -> int:
    """Of batches."""
    if count < 0:
        return count
    return count // size if drop_remainder else -(-count // size)


def of_repeats(count: int, times: int) -> int:
    """Of a data set that is gone through several times, for ever if ``times`` is negative."""
    if times == 0 or count == 0:
        return 0
    if times < 0:
        return INFINITE
    return count if count < 0 else count * times


def of_first(count: int, most: int) -> int:
    """Of the first elements, all if ``most`` is negative."""
    if most < 0 or count == UNKNOWN:
        return count
    return most if count == INFINITE else min(count, most)


def of_rest(count: int, skipped: int) -> int:
    """Of what is behind the first elements, nothing if ``skipped`` is negative."""
    if skipped < 0:
        return 0
    return count if count < 0 else max(0, count - skipped)


def of_both(one: int, other: int) -> int:
    """Of one data set behind another."""
    if INFINITE in (one, other):
        return INFINITE
    return UNKNOWN if UNKNOWN in (one, other) else one + other


def of_least(counts: list[int]) -> int:
    """Of several data sets side by side."""
    if UNKNOWN in counts:
        return UNKNOWN
    return min((count for count in counts if count != INFINITE), default=INFINITE)


__all__ = ["INFINITE", "UNKNOWN", "of_batches", "of_both", "of_first", "of_least", "of_repeats", "of_rest"]

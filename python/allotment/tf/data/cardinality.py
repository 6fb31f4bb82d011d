"""The number of elements of a data set, derived without iterating over it."""

from typing import Final

#: There is no last element.
INFINITE: Final = -1
#: The number depends on the elements.
UNKNOWN: Final = -2


def of_batches(count: int, size: int, drop_remainder: bool) -> int:
    """Return the number of batches."""
    if count < 0:
        return count
    return count // size if drop_remainder else -(-count // size)


def of_repeats(count: int, times: int) -> int:
    """Return the number of elements after ``times`` repetitions, which are endless if it is negative."""
    if times == 0 or count == 0:
        return 0
    if times < 0:
        return INFINITE
    return count if count < 0 else count * times


def of_first(count: int, most: int) -> int:
    """Return the number of the first ``most`` elements, all if it is negative."""
    if most < 0 or count == UNKNOWN:
        return count
    return most if count == INFINITE else min(count, most)


def of_rest(count: int, skipped: int) -> int:
    """Return the number of elements after the first ``skipped``, 0 if it is negative."""
    if skipped < 0:
        return 0
    return count if count < 0 else max(0, count - skipped)


def of_both(one: int, other: int) -> int:
    """Return the number of elements of two concatenated data sets."""
    if INFINITE in (one, other):
        return INFINITE
    return UNKNOWN if UNKNOWN in (one, other) else one + other


def of_least(counts: list[int]) -> int:
    """Return the number of elements of zipped data sets."""
    if UNKNOWN in counts:
        return UNKNOWN
    return min((count for count in counts if count != INFINITE), default=INFINITE)


__all__ = ["INFINITE", "UNKNOWN", "of_batches", "of_both", "of_first", "of_least", "of_repeats", "of_rest"]

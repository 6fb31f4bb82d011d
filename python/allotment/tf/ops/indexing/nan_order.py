"""The order of elements among which there are NaN: as the comparisons of TensorFlow's kernel leave them.

No element is less than a NaN and none is greater. C++'s algorithms then leave an order that depends on each of their
comparisons, so those are made here one by one. Rows without a NaN do not come here.
"""

from collections.abc import Callable

#: Up to here C++'s sort is an insertion sort. Of more elements its order is not defined, and NaN count as largest.
LONGEST = 16

Precedes = Callable[[int, int], bool]


def largest_places(row: list[float], count: int) -> list[int]:
    """The places of the ``count`` largest elements, the largest first; ``LONGEST`` elements at most if it is all."""

    def is_larger(a: int, b: int) -> bool:
        return row[b] < row[a]

    def precedes(a: int, b: int) -> bool:
        # Of equal elements the first is larger, and so it is of two that cannot be compared.
        return is_larger(a, b) or (not is_larger(b, a) and a < b)

    if count == 1:
        return [_largest_place(row)]
    if count == len(row):
        return _with_equals_in_order(row, _insertion_sort(count, is_larger))
    return _heap_of_largest(len(row), count, precedes) if count else []


def _largest_place(row: list[float]) -> int:
    largest = row[0]
    for each in row:
        largest = largest if each < largest else each
    return next((place for place, each in enumerate(row) if each == largest), 0)


def _insertion_sort(count: int, precedes: Precedes) -> list[int]:
    order = [0]
    for place in range(1, count):
        # One that precedes the first goes to the front, whatever is between.
        at = 0 if precedes(place, order[0]) else len(order)
        while at and precedes(place, order[at - 1]):
            at -= 1
        order.insert(at, place)
    return order


def _with_equals_in_order(row: list[float], order: list[int]) -> list[int]:
    start = 0
    for end in range(1, len(order) + 1):
        if end == len(order) or row[order[start]] != row[order[end]]:
            order[start:end] = sorted(order[start:end])
            start = end
    return order


def _heap_of_largest(total: int, count: int, precedes: Precedes) -> list[int]:
    """Keep a heap with the smallest of the largest on top, as ``std::push_heap`` and ``std::pop_heap`` do."""
    heap = list(range(count + 1))
    for top in range((count - 1) // 2, -1, -1):
        _sift(heap, top, count + 1, heap[top], precedes)
    _pop(heap, count + 1, precedes)
    for place in range(count + 1, total):
        if precedes(place, heap[0]):
            heap[count] = place
            _raise(heap, count, 0, place, precedes)
            _pop(heap, count + 1, precedes)
    for length in range(count, 1, -1):
        _pop(heap, length, precedes)
    return heap[:count]


def _pop(heap: list[int], length: int, precedes: Precedes) -> None:
    """Move the top of a heap behind it."""
    value, heap[length - 1] = heap[length - 1], heap[0]
    _sift(heap, 0, length - 1, value, precedes)


def _sift(heap: list[int], hole: int, length: int, value: int, precedes: Precedes) -> None:
    top, child = hole, hole
    while child < (length - 1) // 2:
        child = 2 * (child + 1)
        if precedes(heap[child], heap[child - 1]):
            child -= 1
        heap[hole] = heap[child]
        hole = child
    if length % 2 == 0 and child == (length - 2) // 2:
        child = 2 * (child + 1)
        heap[hole] = heap[child - 1]
        hole = child - 1
    _raise(heap, hole, top, value, precedes)


def _raise(heap: list[int], hole: int, top: int, value: int, precedes: Precedes) -> None:
    parent = (hole - 1) // 2
    while hole > top and precedes(heap[parent], value):
        heap[hole] = heap[parent]
        hole, parent = parent, (parent - 1) // 2
    heap[hole] = value


__all__ = ["LONGEST", "largest_places"]

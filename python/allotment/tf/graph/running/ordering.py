"""Chooses the order in which nodes run: after what they need, and with a low peak of memory."""

import heapq
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from allotment import errors
from allotment._core import Pool
from allotment.tf.graph.nodes.node import Operation, SymbolicTensor, variable_read
from allotment.tf.graph.nodes.random_sources import is_source


def needed(targets: Sequence[Operation], fed: set[SymbolicTensor]) -> list[Operation]:
    """Return the nodes that must run for targets, in the order they were made; fed tensors are not computed."""
    found: set[Operation] = set()
    waiting = list(targets)
    while waiting:
        operation = waiting.pop()
        if operation in found:
            continue
        found.add(operation)
        waiting += [tensor._op for tensor in operation._computed_with if tensor not in fed]
        waiting += operation._control_inputs
    return sorted(found, key=lambda each: each._number)


def ordered(
    operations: Sequence[Operation],
    fed: set[SymbolicTensor],
    kept: set[SymbolicTensor],
    placed: Mapping[Operation, object],
) -> list[Operation]:
    """Return the order with the lowest peak of memory among three candidates.

    The candidates are the order in which nodes were made, as in a program without a graph; depth first from the last
    node; and a greedy order, whose next node frees most or takes least. In each, constants stand before the first node
    that needs them. A candidate replaces the first one only if it is lower on one device and higher on none: with the
    same sequence of allocations a pool has the same holes. Nodes that draw random numbers or touch a variable stay in
    the order in which they were made.

    Raises:
        InvalidArgumentError: Nodes that wait for each other.
    """
    before = _before(operations, fed)
    made = _by(operations, before, lambda operation: operation._number)
    best, least = made, peaks(made, fed, kept, placed)
    for order in (made, _depth_first(made, before), _greedy(operations, before, fed, kept)):
        late = _late(order, before)
        held = peaks(late, fed, kept, placed)
        gains = any(most < least[figure] * _WORTH_IT for figure, most in held.items())
        if gains and all(most <= least[figure] for figure, most in held.items()):
            best, least = late, held
    return best


def _before(operations: Sequence[Operation], fed: set[SymbolicTensor]) -> dict[Operation, list[Operation]]:
    """Map each node to those that must run before it."""
    known = set(operations)
    last: dict[object, Operation] = {}
    found: dict[Operation, list[Operation]] = {}
    for operation in operations:
        needs = [
            tensor._op for tensor in operation._computed_with if tensor not in fed and tensor._op in known
        ]
        needs += [each for each in operation._control_inputs if each in known]
        for shared in _shared(operation):
            if (other := last.get(shared)) is not None and not _waits(other, operation):
                needs.append(other)
            last[shared] = operation
        found[operation] = list(dict.fromkeys(needs))
    return found


def _shared(operation: Operation) -> list[object]:
    """Return the shared state that a node reads or changes: a variable, a source of random numbers."""
    shared: list[object] = [each for each in operation._args if is_source(each)]
    if operation._variable is not None:
        shared.append(operation._variable)
    for tensor in operation._computed_with:
        variable = variable_read(tensor)
        if variable is not None:
            shared.append(variable)
    return list(dict.fromkeys(shared))


def _waits(operation: Operation, other: Operation) -> bool:
    """Whether a node made earlier waits for a later one; control inputs added by hand can say so."""
    return other in operation._control_inputs


def _by(
    operations: Sequence[Operation],
    before: dict[Operation, list[Operation]],
    rank: Callable[[Operation], int],
) -> list[Operation]:
    """Order nodes by rank: the next one is the node of the lowest rank among those whose inputs are there."""
    after, open_ = _after(before)
    ready = [(rank(each), each._number, each) for each in operations if open_[each] == 0]
    heapq.heapify(ready)
    order: list[Operation] = []
    while ready:
        operation = heapq.heappop(ready)[2]
        order.append(operation)
        for each in after.get(operation, ()):
            open_[each] -= 1
            if open_[each] == 0:
                heapq.heappush(ready, (rank(each), each._number, each))
    if len(order) < len(operations):
        stuck = [each._name for each in operations if open_[each] > 0]
        raise errors.InvalidArgumentError(
            None,
            None,
            f"Graph is invalid, contains a cycle with {len(stuck)} nodes, including: {', '.join(stuck[:3])}",
        )
    return order


def _after(
    before: dict[Operation, list[Operation]],
) -> tuple[dict[Operation, list[Operation]], dict[Operation, int]]:
    """Map each node to those that wait for it, and to the number of nodes that it waits for."""
    after: dict[Operation, list[Operation]] = {}
    for operation, needs in before.items():
        for each in needs:
            after.setdefault(each, []).append(operation)
    return after, {operation: len(needs) for operation, needs in before.items()}


def _late(order: Sequence[Operation], before: dict[Operation, list[Operation]]) -> list[Operation]:
    """Move each node that waits for nothing to just before the first node that needs it."""
    free = {each for each in order if not before[each] and not _shared(each)}
    moved = free & {each for needs in before.values() for each in needs}
    found: dict[Operation, None] = {}
    for operation in order:
        if operation not in moved:
            found.update(dict.fromkeys(each for each in before[operation] if each in moved))
            found[operation] = None
    return list(found)


def _depth_first(made: list[Operation], before: dict[Operation, list[Operation]]) -> list[Operation]:
    """Order nodes depth first: each right after its inputs, so that few unfinished branches hold memory."""
    order: dict[Operation, None] = {}
    inner = {each for needs in before.values() for each in needs}
    waiting = [(operation, False) for operation in reversed(made) if operation not in inner]
    while waiting:
        operation, done = waiting.pop()
        if operation in order:
            continue
        if done:
            order[operation] = None
            continue
        waiting.append((operation, True))
        waiting += [(each, False) for each in reversed(before[operation]) if each not in order]
    return list(order)


def _greedy(
    operations: Sequence[Operation],
    before: dict[Operation, list[Operation]],
    fed: set[SymbolicTensor],
    kept: set[SymbolicTensor],
) -> list[Operation]:
    """Order nodes by the memory that each leaves behind: the size of its outputs less that of the inputs it frees."""
    uses = _uses(operations, fed)
    after, open_ = _after(before)
    ready = {each for each in operations if open_[each] == 0}
    order: list[Operation] = []

    def left_behind(operation: Operation) -> int:
        freed = sum(
            size_of(tensor)
            for tensor in dict.fromkeys(operation._computed_with)
            if uses.get(tensor) == 1 and tensor not in kept
        )
        return sum(map(size_of, operation._outputs)) - freed

    # Each step looks at all ready nodes: with too many of them the order of making has to do.
    while ready:
        if len(ready) > _MANY:
            return list(_by(operations, before, lambda operation: operation._number))
        operation = min(ready, key=lambda each: (left_behind(each), each._number))
        ready.discard(operation)
        order.append(operation)
        for tensor in dict.fromkeys(operation._computed_with):
            if tensor in uses:
                uses[tensor] -= 1
        for each in after.get(operation, ()):
            open_[each] -= 1
            if open_[each] == 0:
                ready.add(each)
    return order


_MANY: Final = 64
#: A peak below this share of another order's is a gain.
_WORTH_IT: Final = 0.9
#: Bytes of a pool that no order exhausts.
_BOUNDLESS: Final = 1 << 60


def _uses(operations: Sequence[Operation], fed: set[SymbolicTensor]) -> dict[SymbolicTensor, int]:
    """Count the nodes that need each tensor."""
    uses: dict[SymbolicTensor, int] = {}
    for operation in operations:
        for tensor in dict.fromkeys(operation._computed_with):
            if tensor not in fed:
                uses[tensor] = uses.get(tensor, 0) + 1
    return uses


def size_of(tensor: SymbolicTensor) -> int:
    """Return the bytes of a tensor; unknown lengths count as 1."""
    count = 1
    for dim in tensor._shape._dims or ():
        count *= 1 if dim is None else dim
    return count * tensor._dtype.size


def peaks(
    order: Sequence[Operation],
    fed: set[SymbolicTensor],
    kept: set[SymbolicTensor],
    placed: Mapping[Operation, object],
) -> dict[tuple[object, str], int]:
    """Return the peak of each device in an order that frees each tensor after its last use.

    Pools of made-up addresses measure it, in requested bytes and in bytes of chunks, which may be larger.
    """
    pools = {device: Pool(_BOUNDLESS, source="address-space") for device in placed.values()}
    places: dict[tuple[object, SymbolicTensor], int] = {}
    for device, tensors, takes in _changes(order, fed, kept, placed):
        pool = pools[device]
        for tensor in tensors:
            if takes:
                places[device, tensor] = pool.malloc(size_of(tensor))
            else:
                pool.free(places.pop((device, tensor)))
    found: dict[tuple[object, str], int] = {}
    for device, pool in pools.items():
        stats = pool.stats()
        found[device, "requested"], found[device, "in use"] = stats.peak_requested, stats.peak_in_use
    return found


def _changes(
    order: Sequence[Operation],
    fed: set[SymbolicTensor],
    kept: set[SymbolicTensor],
    placed: Mapping[Operation, object],
) -> Iterator[tuple[object, Sequence[SymbolicTensor], bool]]:
    """Yield the tensors that a device allocates (true) and frees (false) in an order: outputs, and copies of inputs."""
    uses = _uses(order, fed)
    for operation in order:
        device = placed[operation]
        inputs = list(dict.fromkeys(operation._computed_with))
        copies = [each for each in inputs if each not in fed and placed.get(each._op) is not device]
        yield device, copies, True
        yield device, operation._outputs, True
        yield device, copies, False
        for tensor in inputs:
            if tensor in uses:
                uses[tensor] -= 1
                if uses[tensor] == 0 and tensor not in kept:
                    yield placed[tensor._op], (tensor,), False
        yield device, [each for each in operation._outputs if each not in uses and each not in kept], False


__all__ = ["needed", "ordered", "peaks", "size_of"]

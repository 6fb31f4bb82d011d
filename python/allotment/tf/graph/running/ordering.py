"""In which order nodes run: after what they need, and so that little memory is held at once."""

import heapq
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from allotment import errors
from allotment._core import Pool
from allotment.tf.graph.nodes.node import Operation, SymbolicTensor, variable_read
from allotment.tf.graph.nodes.random_sources import is_source


def needed(targets: Sequence[Operation], fed: set[SymbolicTensor]) -> list[Operation]:
    """The nodes that must run for targets, in the order they were made; what is fed is not computed."""
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
    """The order in which nodes run: the one of those that are tried which holds the least at its peak.

    Tried are the order in which they were made, which is the one of a program without a graph; depth first from
    the last; and always the node next that frees most or takes least; all with constants where they are needed.
    Another order than the first is only taken if it gains on one device and is worse on none: with the same sequence
    of allocations a pool has the same holes. What draws random numbers or touches a variable stays in the order in
    which it was made.

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
    """For each node those that must run before it."""
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
    """What a node changes that others see: the variable it touches, the random numbers it draws from."""
    shared: list[object] = [each for each in operation._args if is_source(each)]
    if operation._variable is not None:
        shared.append(operation._variable)
    for tensor in operation._computed_with:
        variable = variable_read(tensor)
        if variable is not None:
            shared.append(variable)
    return list(dict.fromkeys(shared))


def _waits(operation: Operation, other: Operation) -> bool:
    """Whether a node made earlier waits for a later one, as control inputs that are added by hand may say."""
    return other in operation._control_inputs


def _by(
    operations: Sequence[Operation],
    before: dict[Operation, list[Operation]],
    rank: Callable[[Operation], int],
) -> list[Operation]:
    """Of the nodes that may run, always the one of the lowest rank."""
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
    after: dict[Operation, list[Operation]] = {}
    for operation, needs in before.items():
        for each in needs:
            after.setdefault(each, []).append(operation)
    return after, {operation: len(needs) for operation, needs in before.items()}


def _late(order: Sequence[Operation], before: dict[Operation, list[Operation]]) -> list[Operation]:
    """The order with each node that waits for nothing moved to just before the first that needs it."""
    free = {each for each in order if not before[each] and not _shared(each)}
    moved = free & {each for needs in before.values() for each in needs}
    found: dict[Operation, None] = {}
    for operation in order:
        if operation not in moved:
            found.update(dict.fromkeys(each for each in before[operation] if each in moved))
            found[operation] = None
    return list(found)


def _depth_first(made: list[Operation], before: dict[Operation, list[Operation]]) -> list[Operation]:
    """Each node right after what it needs, so that few half-done branches are held."""
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
    """Next is what leaves the least behind: what it makes, less what it is the last to need."""
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

    # Looked at one by one: beyond this many at once the other orders have to do.
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
#: Less than this share of another order's peak is a gain.
_WORTH_IT: Final = 0.9
#: Bytes that no order runs out of.
_BOUNDLESS: Final = 1 << 60


def _uses(operations: Sequence[Operation], fed: set[SymbolicTensor]) -> dict[SymbolicTensor, int]:
    """How many nodes need each tensor."""
    uses: dict[SymbolicTensor, int] = {}
    for operation in operations:
        for tensor in dict.fromkeys(operation._computed_with):
            if tensor not in fed:
                uses[tensor] = uses.get(tensor, 0) + 1
    return uses


def size_of(tensor: SymbolicTensor) -> int:
    """Bytes that a tensor takes as far as its shape is known: unknown lengths count as 1."""
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
    """For each device the most that tensors take at once in an order, each freed after its last use.

    Told by a pool of made-up addresses: in bytes that are asked for, and in bytes of chunks, which may be larger.
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
    """What a device takes (true) and gives back (false) in an order: outputs, and copies of what is elsewhere."""
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

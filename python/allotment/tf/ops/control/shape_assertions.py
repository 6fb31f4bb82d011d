"""Assertions about shapes: what is known of them needs no kernel."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from typing import Any, Final

from allotment.tf.dispatch import thread
from allotment.tf.ops.array.array import get_static_value
from allotment.tf.ops.array.shapes import rank as rank_of
from allotment.tf.ops.array.shapes import shape as shape_of
from allotment.tf.ops.control.assert_op import Assert, no_op_named
from allotment.tf.ops.convert import to_tensor
from allotment.tf.ops.math.comparison import equal, greater_equal
from allotment.tf.ops.public import public
from allotment.tf.ops.reduction.reduce import reduce_any
from allotment.tf.tensors.dtype import int32
from allotment.tf.tensors.reference import Reference


def head_of(message: str | None) -> str:
    """The head of an error's text: the caller's message, if there is one."""
    return f"{message}.  " if message else ""


def _rank_of(rank: Any) -> tuple[Any, int | None]:
    """A wanted number of axes as a tensor, and as a number if it is known."""
    tensor = to_tensor(rank)
    if tensor._dtype is not int32:
        raise TypeError(f"{name_of(tensor, 'tensor')} must be of type {int32!r}; got {tensor._dtype!r}")
    if tensor.shape.rank:
        raise ValueError("Rank must be a scalar.")
    known = get_static_value(tensor)
    return tensor, None if known is None else int(known)


def name_of(tensor: Any, instead: str) -> str:
    """The name of a tensor of a graph; eagerly none."""
    return instead if thread.state.graph is None else str(tensor.name)


def _check_rank(
    op: str,
    words: str,
    x: Any,
    ranks: Sequence[Any],
    holds: Callable[[int, tuple[int, ...]], bool],
    record: Callable[[Any, Sequence[Any]], Any],
    data: Sequence[Any] | None,
    summarize: int | None,
    message: str | None,
    name: str | None,
    told: str | None = None,
) -> Any:
    """Check the number of axes: at once if it is known, else by a node.

    ``holds`` says whether a number of axes is right, ``record`` makes a tensor that does.
    """
    graph = thread.state.graph
    with nullcontext() if graph is None else graph.name_scope(name or op):
        tensor, wanted = to_tensor(x), [_rank_of(each) for each in ranks]
        known = [number for _, number in wanted if number is not None]
        rank = tensor.shape.rank
        if rank is None or len(known) < len(wanted):
            numbers = [each for each, _ in wanted]
            if data is None:
                what = f"Tensor {tensor.name} must have rank {words}".rstrip()
                data = [head_of(message), what, *numbers, "Received shape: ", shape_of(tensor)]
            return Assert(record(rank_of(tensor), numbers), data, summarize)
        if not holds(rank, tuple(known)):
            raise ValueError(
                f"{head_of(message)}Tensor {name_of(tensor, '')} must have rank {words}{told or known[0]}.  Received "
                f"rank {rank}, shape {tensor.shape}"
            )
        return no_op_named("static_checks_determined_all_ok")


def _assert_rank(
    x: Any,
    rank: Any,
    data: Sequence[Any] | None = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> Any:
    return _check_rank(
        "assert_rank",
        "",
        x,
        [rank],
        lambda found, wanted: found == wanted[0],
        lambda found, wanted: equal(found, wanted[0]),
        data,
        summarize,
        message,
        name,
    )


def assert_rank(x: Any, rank: Any, message: str | None = None, name: str | None = None) -> Any:
    """Check how many axes there are. As ``tf.debugging.assert_rank``.

    In a graph: return an operation that checks when it is run, if it is not known before.

    Raises:
        ValueError: Another number.
    """
    return _assert_rank(x, rank, None, None, message, name)


def _assert_rank_at_least(
    x: Any,
    rank: Any,
    data: Sequence[Any] | None = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> Any:
    return _check_rank(
        "assert_rank_at_least",
        "at least ",
        x,
        [rank],
        lambda found, wanted: found >= wanted[0],
        lambda found, wanted: greater_equal(found, wanted[0]),
        data,
        summarize,
        message,
        name,
    )


def assert_rank_at_least(x: Any, rank: Any, message: str | None = None, name: str | None = None) -> Any:
    """Check that there are so many axes or more. As ``tf.debugging.assert_rank_at_least``.

    In a graph: return an operation that checks when it is run, if it is not known before.

    Raises:
        ValueError: There are fewer.
    """
    return _assert_rank_at_least(x, rank, None, None, message, name)


def _assert_rank_in(
    x: Any,
    ranks: Iterable[Any],
    data: Sequence[Any] | None = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> Any:
    given = list(ranks)
    return _check_rank(
        "assert_rank_in",
        "in ",
        x,
        given,
        lambda found, wanted: found in wanted,
        lambda found, wanted: reduce_any([equal(found, each) for each in wanted]),
        data,
        summarize,
        message,
        name,
        str(tuple(given)),
    )


def assert_rank_in(x: Any, ranks: Iterable[Any], message: str | None = None, name: str | None = None) -> Any:
    """Check that the number of axes is one of several. As ``tf.debugging.assert_rank_in``.

    In a graph: return an operation that checks when it is run, if it is not known before.

    Raises:
        ValueError: It is none of them.
    """
    return _assert_rank_in(x, ranks, None, None, message, name)


def assert_scalar(tensor: Any, message: str | None = None, name: str | None = None) -> None:
    """Check that there are no axes. As ``tf.debugging.assert_scalar``.

    Raises:
        ValueError: It has some, or in a graph their number is not known.
    """
    made = to_tensor(tensor)
    if made.shape.rank != 0:
        of = f" for {made.name}" if thread.state.graph is not None else ""
        raise ValueError(f"{head_of(message)}Expected scalar shape{of}, saw shape: {made.shape}.")


def assert_shapes(
    shapes: Any,
    data: Any = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> Any:
    """Check shapes in which a letter stands for one length. As ``tf.debugging.assert_shapes``.

    In a graph: return an operation that checks when it is run what is not known before.

    Args:
        shapes: Pairs of a tensor and its lengths: numbers, or anything else that stands for one length everywhere;
            ``None`` and ``"."`` for any length, a first ``...`` or ``"*"`` for any number of axes.
        data: What errors of a graph show.
        summarize: How many elements of it.
        message: How the error's text begins.
        name: The scope of the nodes.

    Raises:
        ValueError: A shape is another.
    """
    pairs = shapes.items() if isinstance(shapes, dict) else shapes
    graph = thread.state.graph
    check = _Lengths(data, summarize, message)
    with nullcontext() if graph is None else graph.name_scope(name or "assert_shapes"):
        for given, symbols in pairs:
            check.add(to_tensor(given.deref() if isinstance(given, Reference) else given), symbols)
    return None if graph is None else graph.group(check.nodes, "group_deps")


class _Lengths:
    """The lengths of axes by symbol, and the nodes that check lengths which are unknown before a run."""

    def __init__(self, data: Any, summarize: int | None, message: str | None) -> None:
        self.data, self.summarize, self.message = data, summarize, message
        #: For each symbol its length, a number or a tensor, and where it is from.
        self.known: dict[Any, tuple[Any, str]] = {}
        self.nodes: list[Any] = []

    def add(self, tensor: Any, symbols: Any) -> None:
        """Check a tensor's axes."""
        wanted = list(symbols) if isinstance(symbols, Iterable) else [symbols]
        rank, check = tensor.shape.rank, None
        # Axes are counted from the end behind a first that stands for any number.
        end = bool(wanted) and wanted[0] in (..., "*")
        if end:
            wanted, check = wanted[1:], _assert_rank_at_least
        elif any(each is not None for each in wanted) or rank != 0:
            check = _assert_rank
        if check is not None:
            node = check(tensor, len(wanted), self.data, self.summarize, self.message)
            if rank is None:
                self.nodes.append(node)
        eager = thread.state.graph is None
        told = f"Tensor {f'shape={tensor.shape} dtype={tensor.dtype.name}' if eager else tensor.name}"
        for place, symbol in enumerate(wanted):
            axis = place - len(wanted) if end else place
            if symbol in (None, ".") or (rank is not None and not -rank <= axis < rank):
                continue
            number = axis + rank if end and rank is not None else axis
            self.check(tensor, axis, symbol, f"{told} dimension", number)

    def check(self, tensor: Any, axis: int, symbol: Any, told: str, number: int) -> None:
        """Check one length."""
        length = None if tensor.shape.rank is None else tensor.shape[axis]
        if length is None:
            length = shape_of(tensor)[axis]
        if isinstance(symbol, int):
            expected, source = symbol, "Specified explicitly"
        elif symbol in self.known:
            expected, source = self.known[symbol]
        else:
            start = told[0].lower() + told[1:]
            self.known[symbol] = length, f"Specified by {start} {number}"
            return
        if not isinstance(expected, int) or not isinstance(length, int):
            data = self.data
            if data is None:
                data = [head_of(self.message), source, told, number, "must have size", expected]
                data += ["Received shape: ", shape_of(tensor)]
            self.nodes.append(Assert(equal(length, expected), data, self.summarize))
        elif length != expected:
            raise ValueError(
                f"{head_of(self.message)}{source}.  {told} {number} must have size {expected}.  Received size "
                f"{length}, shape {tensor.shape}"
            )


#: The assertions in TensorFlow 1's form, which may be given what errors show, by name.
WITH_DATA: Final[dict[str, Callable[..., Any]]] = {
    name: public(check, name, doc.__doc__ or "")
    for name, check, doc in (
        ("assert_rank", _assert_rank, assert_rank),
        ("assert_rank_at_least", _assert_rank_at_least, assert_rank_at_least),
        ("assert_rank_in", _assert_rank_in, assert_rank_in),
    )
}

__all__ = [
    "WITH_DATA",
    "assert_rank",
    "assert_rank_at_least",
    "assert_rank_in",
    "assert_scalar",
    "assert_shapes",
]

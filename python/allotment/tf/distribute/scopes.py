"""Which strategy a thread is in, and whether for one replica or for all of them at once.

A thread is in one of three states: outside of all strategies, where a default one stands in; in the scope of a
strategy, which sees all replicas (*cross-replica*); or inside of ``Strategy.run``, as one replica.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from allotment.devices.placement import thread

if TYPE_CHECKING:
    from allotment.tf.distribute.replica_context import ReplicaContext
    from allotment.tf.distribute.strategy import Strategy


class Scope(NamedTuple):
    """What a thread is in. ``allotment.tf.variables.variable`` meets it in the thread's state."""

    strategy: "Strategy"
    #: The replica that runs, or ``None`` in the cross-replica scope.
    replica: "ReplicaContext | None"
    #: It was not entered by a ``with`` block that will leave it.
    for_good: bool = False

    def refuse_graph(self) -> NoReturn:
        """Say that nothing is made for graphs here.

        Raises:
            NotImplementedError: Always.
        """
        raise NotImplementedError(not_in_graphs(self.strategy))

    def new_variable(self, *args: Any, **kwargs: Any) -> Any:
        """What ``Variable.__new__`` returns here."""
        return self.strategy.extended._new_variable(self, *args, **kwargs)


def current_scope() -> Scope | None:
    """What this thread is in, or ``None`` outside of all strategies."""
    scope: Scope | None = thread.state.strategy
    return scope


@contextmanager
def entered(scope: Scope | None) -> Iterator[None]:
    """Put the thread into a scope, whatever it is in."""
    state = thread.state
    outer, state.strategy = state.strategy, scope
    try:
        yield
    finally:
        state.strategy = outer


def has_strategy() -> bool:
    """Whether there is a strategy other than the default one. As ``tf.distribute.has_strategy``."""
    return current_scope() is not None


def get_strategy() -> "Strategy":
    """Return the strategy that is in force, a default one outside of all. As ``tf.distribute.get_strategy``."""
    scope = current_scope()
    return _default() if scope is None else scope.strategy


def get_replica_context() -> "ReplicaContext | None":
    """Return the replica that runs, ``None`` in a cross-replica scope. As ``tf.distribute.get_replica_context``.

    Outside of all strategies it is the one replica of the default one.
    """
    scope = current_scope()
    return _default()._default_replica if scope is None else scope.replica


def in_cross_replica_context() -> bool:
    """Whether all replicas are seen at once. As ``tf.distribute.in_cross_replica_context``."""
    return get_replica_context() is None


def experimental_set_strategy(strategy: "Strategy | None") -> None:
    """Put this thread into the scope of a strategy for good; ``None`` ends that.

    As ``tf.distribute.experimental_set_strategy``.

    Raises:
        RuntimeError: Inside of a scope that was entered with ``with``, or of ``Strategy.run``.
    """
    scope = current_scope()
    if scope is not None and not scope.for_good:
        raise RuntimeError("Must not be called inside a `tf.distribute.Strategy` scope.")
    thread.state.strategy = None if strategy is None else Scope(strategy, None, for_good=True)


def check_same(strategy: "Strategy") -> None:
    """Check that no other strategy is in force.

    Raises:
        RuntimeError: One is.
    """
    scope = current_scope()
    if scope is not None and scope.strategy is not strategy:
        raise RuntimeError(
            f"Mixing different tf.distribute.Strategy objects: {scope.strategy} is not {strategy}"
        )


def check_cross_replica(strategy: "Strategy") -> None:
    """Check that a call that sees all replicas is not made by one of them.

    Raises:
        RuntimeError: It is, or another strategy is in force.
    """
    check_same(strategy)
    scope = current_scope()
    if scope is not None and scope.replica is not None:
        raise RuntimeError(
            "Method requires being in cross-replica context, use get_replica_context().merge_call()"
        )


def not_in_graphs(strategy: "Strategy") -> str:
    """What is said of a strategy while a graph is the default."""
    return (
        f"{type(strategy).__name__} is for eager programs: it does not record in a graph. Make variables and call run "
        "outside of `with graph.as_default():`"
    )


def _default() -> Any:
    from allotment.tf.distribute.one_device import default_strategy

    return default_strategy


__all__ = [
    "Scope",
    "check_cross_replica",
    "check_same",
    "current_scope",
    "entered",
    "experimental_set_strategy",
    "get_replica_context",
    "get_strategy",
    "has_strategy",
    "in_cross_replica_context",
    "not_in_graphs",
]

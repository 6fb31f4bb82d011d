"""The scope that a thread is in: of which strategy, and as one replica or with all replicas in view.

A thread is in one of three states: outside of all strategies, where the default strategy stands in; in the scope of a
strategy, which sees all replicas (*cross-replica*); or inside of ``Strategy.run``, as one replica.

Values, variables and data sets ask for the scope, and strategies are made of them. So a scope knows of its strategy
and replica only the protocols below, which ``strategy.py`` and ``replica_context.py`` implement.
"""

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, NoReturn, Protocol, cast

from allotment.tf.dispatch import thread
from allotment.tf.variables.variable import Variable

#: Performs a collective call: from the arguments of each replica to the result for each.
Perform = Callable[[list[Any]], Sequence[Any]]


class Channel(Protocol):
    """A replica's connection to the other replicas of a step."""

    def call_together(self, description: str, key: Hashable, perform: Perform, arguments: Any) -> Any:
        """Wait until every replica makes the same call, and return this replica's result.

        Args:
            description: The call, for messages.
            key: Equal for calls that belong together.
            perform: Performs the call once for all replicas.
            arguments: This replica's.
        """


class ScopedReplica(Protocol):
    """The part of ``ReplicaContext`` that values and variables use."""

    @property
    def _index(self) -> int:
        """The number among the replicas of this process."""

    @property
    def _channel(self) -> Channel: ...

    def all_reduce(self, reduce_op: Any, value: Any) -> Any:
        """Add the values of all replicas, or take their mean."""

    def merge_call(
        self, merge_fn: Callable[..., Any], args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Wait for all replicas, and call a function once for all of them."""


class _VariableFactory(Protocol):
    def _new_variable(self, scope: "Scope", *args: Any, **kwargs: Any) -> Variable: ...


class ScopedStrategy(Protocol):
    """The part of ``Strategy`` that scopes use."""

    @property
    def num_replicas_in_sync(self) -> int:
        """The number of replicas in all processes."""

    @property
    def extended(self) -> _VariableFactory:
        """The object that makes its variables."""


class Scope(NamedTuple):
    """The scope of a strategy. ``allotment.tf.variable`` finds it in the thread's state and calls ``new_variable``."""

    strategy: ScopedStrategy
    #: The replica that runs, or ``None`` in the cross-replica scope.
    replica: ScopedReplica | None

    def refuse_graph(self) -> NoReturn:
        """Refuse to make a variable in a graph.

        Raises:
            NotImplementedError: Always.
        """
        raise NotImplementedError(graph_refusal(self.strategy))

    def new_variable(self, *args: Any, **kwargs: Any) -> Variable:
        """Make the object that ``Variable.__new__`` returns in this scope."""
        return self.strategy.extended._new_variable(self, *args, **kwargs)


def current_scope() -> Scope | None:
    """Return the scope that this thread is in, or ``None`` outside of all strategies."""
    # Only this room registers scopes in a thread's state.
    return cast("Scope | None", thread.state.strategy)


def current_replica() -> ScopedReplica | None:
    """Return the replica that this thread runs, or ``None`` if it runs none."""
    scope = current_scope()
    return None if scope is None else scope.replica


@contextmanager
def enter_scope(scope: Scope | None) -> Iterator[None]:
    """Put the thread into a scope for a ``with`` block, whatever scope it is in."""
    state = thread.state
    outer, state.strategy = state.strategy, scope
    try:
        yield
    finally:
        state.strategy = outer


def check_same(strategy: ScopedStrategy) -> None:
    """Check that this thread is not in the scope of another strategy.

    Raises:
        RuntimeError: It is.
    """
    scope = current_scope()
    if scope is not None and scope.strategy is not strategy:
        raise RuntimeError(
            f"Mixing different tf.distribute.Strategy objects: {scope.strategy} is not {strategy}"
        )


def check_cross_replica(strategy: ScopedStrategy) -> None:
    """Check that this thread does not run a replica, and is not in the scope of another strategy.

    Raises:
        RuntimeError: It does, or is.
    """
    check_same(strategy)
    if current_replica() is not None:
        raise RuntimeError(
            "Method requires being in cross-replica context, use get_replica_context().merge_call()"
        )


def graph_refusal(strategy: ScopedStrategy) -> str:
    """Return the message of a strategy that is used while a graph is the default."""
    return (
        f"{type(strategy).__name__} is for eager programs: it does not record in a graph. Make variables and call run "
        "outside of `with graph.as_default():`"
    )


__all__ = [
    "Channel",
    "Perform",
    "Scope",
    "ScopedReplica",
    "ScopedStrategy",
    "check_cross_replica",
    "check_same",
    "current_replica",
    "current_scope",
    "enter_scope",
    "graph_refusal",
]

"""The strategy and the replica that are in force: ``tf.distribute.get_strategy`` and its neighbours."""

from allotment.tf.distribute.one_device import default_strategy
from allotment.tf.distribute.replica_context import ReplicaContext
from allotment.tf.distribute.scopes import current_scope
from allotment.tf.distribute.strategy import Strategy


def has_strategy() -> bool:
    """Whether a strategy other than the default one is in force. As ``tf.distribute.has_strategy``."""
    return current_scope() is not None


def get_strategy() -> Strategy:
    """Return the strategy in force, outside of all the default one. As ``tf.distribute.get_strategy``."""
    scope = current_scope()
    if scope is None:
        return default_strategy
    assert isinstance(scope.strategy, Strategy)
    return scope.strategy


def get_replica_context() -> ReplicaContext | None:
    """Return the replica that runs, ``None`` in a cross-replica scope. As ``tf.distribute.get_replica_context``.

    Outside of all strategies it is the one replica of the default strategy.
    """
    scope = current_scope()
    if scope is None:
        return default_strategy.replica
    assert isinstance(scope.replica, ReplicaContext | None)
    return scope.replica


def in_cross_replica_context() -> bool:
    """Whether this thread sees all replicas at once. As ``tf.distribute.in_cross_replica_context``."""
    return get_replica_context() is None


__all__ = [
    "get_replica_context",
    "get_strategy",
    "has_strategy",
    "in_cross_replica_context",
]

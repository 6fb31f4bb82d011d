"""What a replica's code finds in its thread: its device, its context, nothing of the caller's scopes."""

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

from allotment.devices.context import context
from allotment.devices.placement import device, thread
from allotment.devices.wishes import NO_WISH
from allotment.tf.distribute.blas_threads import shared_by
from allotment.tf.distribute.replica_context import ReplicaContext
from allotment.tf.distribute.scopes import Scope, entered
from allotment.tf.distribute.step import Line, Perform, Step
from allotment.tf.distribute.strategy import Strategy
from allotment.tf.distribute.values import select
from allotment.tf.ops.name_scopes import get_current_name_scope
from allotment.tf.ops.random.seeds import next_step, stream


class Alone:
    """The line of a replica that is the only one: what it waits for is done at once."""

    def __init__(self, strategy: Strategy) -> None:
        self._strategy = strategy

    def meet(self, what: str, key: Any, perform: Perform, arguments: Any) -> Any:
        """Do what a meeting is for."""
        with entered(Scope(self._strategy, None)):
            return perform([arguments])[0]


def alone(strategy: Strategy, name: str, fn: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """Call a function as the only replica of this process, on this thread."""
    replica = ReplicaContext(strategy, 0, Alone(strategy))
    several = strategy.num_replicas_in_sync > 1
    numbers = stream(next_step(), strategy.extended._first_replica) if several else nullcontext()
    with entered(Scope(strategy, replica)), device(None), device(name), numbers:
        return fn(*select(0, args), **select(0, kwargs))


def run_replicas(strategy: Strategy, fn: Callable[..., Any], args: Any, kwargs: Any) -> list[Any]:
    """Call a function as each replica, on threads of their own. Returns the results by replica."""
    extended = strategy.extended
    # A policy is each thread's own, and so are scopes: those of the caller stay behind.
    policy = context().device_policy
    number = next_step()

    def replica(index: int, line: Line) -> Any:
        thread.state.graph = None
        if context().device_policy != policy:
            context().device_policy = policy
        scope = Scope(strategy, ReplicaContext(strategy, index, line))
        with (
            entered(scope),
            device(extended._devices[index]),
            stream(number, extended._first_replica + index),
        ):
            return fn(*select(index, args), **select(index, kwargs))

    step = Step(extended._devices, extended.replica_deadline, f"{type(strategy).__name__}.run", _is_clean)
    with shared_by(len(extended._devices)):
        return step.run(replica)


def _is_clean() -> bool:
    """Whether a thread is in no scope that it was left in."""
    state = thread.state
    return state.wish is NO_WISH and state.recorder is None and get_current_name_scope() == ""


__all__ = ["Alone", "alone", "run_replicas"]

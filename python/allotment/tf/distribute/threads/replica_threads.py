"""Functions that run as replicas: in the replica's context and device, outside of the caller's scopes."""

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

from allotment.devices.context import context
from allotment.devices.device_scope import device
from allotment.devices.requested_device import NO_REQUEST
from allotment.tf.dispatch import thread
from allotment.tf.distribute.replica_context import ReplicaContext
from allotment.tf.distribute.scopes import Perform, Scope, enter_scope
from allotment.tf.distribute.strategy import Strategy
from allotment.tf.distribute.threads.blas_threads import divide_blas_threads
from allotment.tf.distribute.threads.step import Step, StepChannel
from allotment.tf.distribute.values import select
from allotment.tf.ops.name_scopes import get_current_name_scope
from allotment.tf.ops.random.seeds import next_step, stream


class DirectChannel:
    """The channel of a single replica, which performs its collective calls itself."""

    def __init__(self, strategy: Strategy) -> None:
        self._strategy = strategy

    def call_together(self, description: str, key: Any, perform: Perform, arguments: Any) -> Any:
        """Perform the call. See ``Channel``."""
        with enter_scope(Scope(self._strategy, None)):
            return perform([arguments])[0]


def run_single(strategy: Strategy, name: str, fn: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """Call a function as the only replica of this process, on this thread."""
    replica = ReplicaContext(strategy, 0, DirectChannel(strategy))
    several = strategy.num_replicas_in_sync > 1
    numbers = stream(next_step(), strategy.extended._first_replica) if several else nullcontext()
    with enter_scope(Scope(strategy, replica)), device(None), device(name), numbers:
        return fn(*select(0, args), **select(0, kwargs))


def run_replicas(strategy: Strategy, fn: Callable[..., Any], args: Any, kwargs: Any) -> list[Any]:
    """Call a function as each replica, on threads of their own, and return the results by replica."""
    extended = strategy.extended
    # Each thread has a device policy and scopes of its own: the policy is the caller's, the scopes are not.
    policy = context().device_policy
    in_function = thread.state.in_function
    number = next_step()

    def replica(index: int, channel: StepChannel) -> Any:
        thread.state.graph = None
        thread.state.in_function = in_function
        if context().device_policy != policy:
            context().device_policy = policy
        scope = Scope(strategy, ReplicaContext(strategy, index, channel))
        with (
            enter_scope(scope),
            device(extended._devices[index]),
            stream(number, extended._first_replica + index),
        ):
            return fn(*select(index, args), **select(index, kwargs))

    step = Step(extended._devices, extended.replica_deadline, f"{type(strategy).__name__}.run", _is_clean)
    with divide_blas_threads(len(extended._devices)):
        return step.run(replica)


def _is_clean() -> bool:
    """Whether the thread is outside of all scopes."""
    state = thread.state
    return state.request is NO_REQUEST and state.recorder is None and get_current_name_scope() == ""


__all__ = ["DirectChannel", "run_replicas", "run_single"]

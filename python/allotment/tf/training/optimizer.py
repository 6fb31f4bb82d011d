"""What all optimizers have in common: gradients, where variables are changed, and what is kept beside each."""

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from allotment.devices.placement import device, thread
from allotment.tf.differentiation.gradient_tape import GradientTape
from allotment.tf.graph.collections import GraphKeys
from allotment.tf.graph.default import get_default_graph, graph_of
from allotment.tf.graph.gradients import gradients_v1
from allotment.tf.graph.nodes.node import SymbolicTensor
from allotment.tf.ops.array.array import cast
from allotment.tf.ops.control.control import group
from allotment.tf.ops.convert import to_tensor
from allotment.tf.tensors.dtype import DType
from allotment.tf.training.slots import Slots, has_copies

#: Gradients and the variables they are of.
Pairs = Sequence[tuple[Any, Any]]


class Optimizer(Slots):
    """Changes variables by gradients. As ``tf.compat.v1.train.Optimizer``.

    A method of optimization says in ``_changed`` how one variable changes, and in ``_slots`` what it keeps for each.
    """

    #: How much waits for how much in graphs: no value makes a difference here.
    GATE_NONE = 0
    GATE_OP = 1
    GATE_GRAPH = 2

    def __init__(self, use_locking: bool, name: str) -> None:
        if not name:
            raise ValueError("Must specify the optimizer name")
        super().__init__(name)
        #: Has no effect: changing a variable is one step for everybody else in any case.
        self._use_locking = use_locking

    def get_name(self) -> str:
        """Return the name."""
        return self._name

    def minimize(
        self,
        loss: Any,
        global_step: Any = None,
        var_list: Any = None,
        gate_gradients: int = GATE_OP,
        aggregation_method: Any = None,
        colocate_gradients_with_ops: bool = False,
        name: str | None = None,
        grad_loss: Any = None,
    ) -> Any:
        """Compute the gradients of a loss and change variables by them, once.

        Args:
            loss: A tensor of a graph, or a function without arguments that returns the loss.
            global_step: A variable that is increased by one.
            var_list: The variables; without it the trainable ones that the function reads, or those of the graph.
            gate_gradients: Has no effect.
            aggregation_method: Has no effect.
            colocate_gradients_with_ops: In a graph, see ``tf.gradients``.
            name: Name of the operation that is returned.
            grad_loss: What the gradient of the loss is multiplied with.

        Returns:
            The operation of a graph that changes the variables; eagerly, where that is done, ``None``.

        Raises:
            ValueError: There are no variables, or the loss depends on none.
            RuntimeError: The loss is a tensor that has its value already.
        """
        pairs = self.compute_gradients(
            loss, var_list, gate_gradients, aggregation_method, colocate_gradients_with_ops, grad_loss
        )
        if all(gradient is None for gradient, _ in pairs):
            raise ValueError(
                "No gradients provided for any variable, check your graph for ops that do not support gradients, "
                f"between variables {[str(variable) for _, variable in pairs]} and loss {loss}."
            )
        return self.apply_gradients(pairs, global_step, name)

    def compute_gradients(
        self,
        loss: Any,
        var_list: Any = None,
        gate_gradients: int = GATE_OP,
        aggregation_method: Any = None,
        colocate_gradients_with_ops: bool = False,
        grad_loss: Any = None,
    ) -> list[tuple[Any, Any]]:
        """Return the gradient of a loss for each variable, ``None`` where it does not depend on one; see ``minimize``.

        Raises:
            ValueError: There are no variables, or there is no such ``gate_gradients``.
            RuntimeError: The loss is a tensor that has its value already.
        """
        if gate_gradients not in (self.GATE_NONE, self.GATE_OP, self.GATE_GRAPH):
            raise ValueError(
                "gate_gradients must be one of: Optimizer.GATE_NONE, Optimizer.GATE_OP, Optimizer.GATE_GRAPH.  Not "
                f"{gate_gradients}"
            )
        variables = None if var_list is None else _listed(var_list)
        if callable(loss):
            with GradientTape() as tape:
                if variables is not None:
                    tape.watch(variables)
                value = loss()
            if variables is None:
                variables = list(tape.watched_variables())
            return list(zip(tape.gradient(value, variables, grad_loss), variables, strict=True))
        if not isinstance(loss, SymbolicTensor):
            raise RuntimeError(
                "`loss` passed to Optimizer.compute_gradients should be a function when eager execution is enabled."
            )
        if variables is None:
            variables = loss.graph.get_collection(GraphKeys.TRAINABLE_VARIABLES)
        if not variables:
            raise ValueError("No variables to optimize.")
        with graph_of([loss]):
            found = gradients_v1(
                loss,
                variables,
                None if grad_loss is None else [grad_loss],
                colocate_gradients_with_ops=colocate_gradients_with_ops,
                aggregation_method=aggregation_method,
            )
        return list(zip(found, variables, strict=True))

    def apply_gradients(
        self, grads_and_vars: Iterable[tuple[Any, Any]], global_step: Any = None, name: str | None = None
    ) -> Any:
        """Change variables by gradients, which ``compute_gradients`` returned; see ``minimize``.

        In a replica of ``Strategy.run`` gradients are first added up over all replicas, which all have to call this.

        Raises:
            ValueError: There are no variables, or no gradient of any.
            TypeError: Something is no gradient.
            RuntimeError: Replicas give gradients of different numbers of variables.
        """
        pairs = tuple(grads_and_vars)
        if not pairs:
            raise ValueError("No variables provided.")
        known = [(_gradient(each), variable) for each, variable in pairs if each is not None]
        if not known:
            raise ValueError(
                f"No gradients provided for any variable: {[str(variable) for _, variable in pairs]}."
            )
        scope = thread.state.strategy
        if thread.state.graph is None and scope is not None and scope.replica is not None:
            self._apply_as_replica(scope.replica, known, global_step)
            return None
        with graph_of(variable for _, variable in known):
            self._make_slots([variable for _, variable in known])
            if thread.state.graph is None:
                self._apply(known)
                self._conclude(global_step)
                return None
            return self._recorded(known, global_step, name or self._name)

    def _apply_as_replica(self, replica: Any, pairs: Pairs, global_step: Any) -> None:
        """Change variables by the sums of the replicas' gradients.

        Each replica changes its own copies, all in the same way. What has no copies is changed once for all.
        """
        variables = [variable for _, variable in pairs]
        sums = replica.all_reduce("SUM", [gradient for gradient, _ in pairs])
        if any(self._lacks_slots(variable) for variable in variables):
            replica.merge_call(lambda strategy: self._make_slots(variables))  # noqa: ARG005
        summed = list(zip(sums, variables, strict=True))
        # The copy by itself: what it says of aggregation is about values that differ.
        self._apply([(each, variable._own()) for each, variable in summed if has_copies(variable)])
        whole = [pair for pair in summed if not has_copies(pair[1])]

        def once(strategy: Any) -> None:  # noqa: ARG001 - what a merge call passes
            self._apply(whole)
            self._conclude(global_step)

        replica.merge_call(once)

    def _conclude(self, global_step: Any) -> None:
        self._finished()
        if global_step is not None:
            global_step.assign_add(1, read_value=False)

    def _apply(self, pairs: Pairs) -> list[Any]:
        """Change each variable on its own device. Returns what does it in a graph."""
        done: list[Any] = []
        for gradient, variable in pairs:
            with _beside(variable):
                done += self._changed(gradient, variable)
                if variable.constraint is not None:
                    done += self._projected(variable, done)
        return done

    def _projected(self, variable: Any, before: list[Any]) -> list[Any]:
        """Move a changed variable to where its constraint allows it to be."""
        with _after(before):
            return [variable.assign(variable.constraint(variable), read_value=False)]

    def _recorded(self, pairs: Pairs, global_step: Any, name: str) -> Any:
        graph = get_default_graph()
        with graph.name_scope(name) as scope:
            done = self._apply(pairs)
            with _after(done):
                done += self._finished()
            if global_step is None:
                train = group(*done, name=scope)
            else:
                with _after(done), _beside(global_step):
                    train = global_step.assign_add(1, name=scope, read_value=False)
        graph.add_to_collection("train_op", train)
        return train

    def _changed(self, gradient: Any, variable: Any) -> list[Any]:
        """Change a variable by its gradient. Returns what does it in a graph, the variable's own change last."""
        raise NotImplementedError(
            f"{type(self).__name__} does not say how a variable changes: override `_changed`."
        )

    def _finished(self) -> list[Any]:
        """What is done after all variables have been changed."""
        return []

    def _number(self, value: Any, dtype: DType) -> Any:
        """A setting as a tensor: a number, a tensor, or a function that returns one."""
        return cast(
            to_tensor(value() if callable(value) and not hasattr(value, "_as_tensor") else value), dtype
        )


def _listed(variables: Any) -> list[Any]:
    return (
        list(variables)
        if isinstance(variables, Iterable) and not hasattr(variables, "_source")
        else [variables]
    )


def _gradient(value: Any) -> Any:
    try:
        return to_tensor(value)
    except (TypeError, ValueError) as error:
        error.__traceback__ = None
        raise TypeError(
            f"Gradient must be convertible to a Tensor or IndexedSlices, or None: {value}"
        ) from None


def _beside(variable: Any) -> AbstractContextManager[Any]:
    """The scope of a variable's device."""
    if thread.state.graph is None:
        return device(variable.device)
    return get_default_graph().colocate_with(variable.op, ignore_existing=True)


def _after(done: list[Any]) -> AbstractContextManager[Any]:
    """Let what is recorded in a ``with`` block wait; eagerly everything happens in order."""
    return nullcontext() if thread.state.graph is None else get_default_graph().control_dependencies(done)


__all__ = ["Optimizer"]

"""``tf.compat.v1.train.Optimizer``: base class that computes gradients and applies them to variables.

Longer than 300 lines: one public class with its documentation.
"""

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, ClassVar

from allotment.devices.device_scope import device
from allotment.tf.differentiation.gradient_tape import GradientTape
from allotment.tf.dispatch import thread
from allotment.tf.graph.collections import GraphKeys
from allotment.tf.graph.default import get_default_graph, graph_of
from allotment.tf.graph.gradients import gradients_v1
from allotment.tf.graph.nodes.node import SymbolicTensor
from allotment.tf.ops.array.array import cast
from allotment.tf.ops.array.shapes import size
from allotment.tf.ops.control.control import group
from allotment.tf.ops.convert import tensor_or_slices, to_tensor
from allotment.tf.ops.indexing.indexed_slices import IndexedSlices, dense
from allotment.tf.ops.indexing.searching import unique
from allotment.tf.ops.reduction.segments import unsorted_segment_sum
from allotment.tf.tensors.dtype import DType
from allotment.tf.training.elements import ALL_ELEMENTS, AllElements, Rows
from allotment.tf.training.slots import Slots, has_copies

#: Pairs of a gradient and its variable.
Pairs = Sequence[tuple[Any, Any]]


class Optimizer(Slots):
    """Base class of optimizers, which update variables by gradients. As ``tf.compat.v1.train.Optimizer``.

    A subclass updates one variable in ``_update`` and declares its state for each variable in ``_slots``.

    Args:
        use_locking: Has no effect.
        name: Prefix of the names of the operations in a graph.
    """

    #: Whether slices update the rows that they name and no others.
    _updates_rows: ClassVar = True

    #: Values of ``gate_gradients``, which has no effect.
    GATE_NONE = 0
    GATE_OP = 1
    GATE_GRAPH = 2

    def __init__(self, use_locking: bool, name: str) -> None:  # noqa: ARG002 - assignments are atomic anyway
        if not name:
            raise ValueError("Must specify the optimizer name")
        super().__init__(name)

    def get_name(self) -> str:
        """Return the optimizer's name."""
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
        """Compute the gradients of a loss and apply them to the variables: one training step.

        Args:
            loss: A tensor of a graph, or a function without arguments that returns the loss.
            global_step: A variable to increase by one.
            var_list: The variables; by default the trainable ones that the function reads, or those of the graph.
            gate_gradients: Has no effect.
            aggregation_method: Has no effect.
            colocate_gradients_with_ops: In a graph, as for ``tf.gradients``.
            name: Name of the returned operation.
            grad_loss: A tensor of the loss's shape to multiply its gradient with.

        Returns:
            In a graph the operation that updates the variables; eagerly ``None``, after the update.

        Raises:
            ValueError: There are no variables, or the loss depends on none.
            RuntimeError: The loss is an eager tensor.
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
        """Compute the gradient of a loss with respect to each variable, without an update.

        The arguments are those of ``minimize``.

        Returns:
            Pairs of a gradient and its variable; the gradient is ``None`` if the loss does not depend on the variable.

        Raises:
            ValueError: There are no variables, or ``gate_gradients`` is invalid.
            RuntimeError: The loss is an eager tensor.
        """
        if gate_gradients not in (self.GATE_NONE, self.GATE_OP, self.GATE_GRAPH):
            raise ValueError(
                "gate_gradients must be one of: Optimizer.GATE_NONE, Optimizer.GATE_OP, Optimizer.GATE_GRAPH.  Not "
                f"{gate_gradients}"
            )
        variables = None if var_list is None else _as_list(var_list)
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
        """Update variables by gradients. Returns the same as ``minimize``.

        In a replica of ``Strategy.run`` the gradients of all replicas are added up first; each replica must call this.

        Args:
            grads_and_vars: Pairs of a gradient, or ``None``, and its variable, as ``compute_gradients`` returns them.
            global_step: A variable to increase by one.
            name: Name of the returned operation.

        Raises:
            ValueError: There are no variables, or all gradients are ``None``.
            TypeError: A gradient cannot be converted to a tensor.
            RuntimeError: Replicas pass different numbers of gradients.
        """
        pairs = tuple(grads_and_vars)
        if not pairs:
            raise ValueError("No variables provided.")
        known = [(_to_gradient(each), variable) for each, variable in pairs if each is not None]
        if not known:
            raise ValueError(
                f"No gradients provided for any variable: {[str(variable) for _, variable in pairs]}."
            )
        scope = thread.state.strategy
        if thread.state.graph is None and scope is not None and scope.replica is not None:
            self._apply_as_replica(scope.replica, known, global_step)
            return None
        with graph_of(variable for _, variable in known):
            self._create_slots([variable for _, variable in known])
            if thread.state.graph is None:
                self._apply(known)
                self._finish_step(global_step)
                return None
            return self._apply_in_graph(known, global_step, name or self._name)

    def _apply_as_replica(self, replica: Any, pairs: Pairs, global_step: Any) -> None:
        """Update variables by the sums of the replicas' gradients.

        Each replica updates its own copies. Variables without copies are updated once for all replicas.
        """
        variables = [variable for _, variable in pairs]
        sums = replica.all_reduce("SUM", [gradient for gradient, _ in pairs])
        if any(self._lacks_slots(variable) for variable in variables):
            replica.merge_call(lambda strategy: self._create_slots(variables))  # noqa: ARG005
        summed = list(zip(sums, variables, strict=True))
        # `_own` is the replica's copy, whose assignments are not aggregated: the values are equal in all replicas.
        self._apply([(each, variable._own()) for each, variable in summed if has_copies(variable)])
        whole = [pair for pair in summed if not has_copies(pair[1])]

        def once(strategy: Any) -> None:  # noqa: ARG001 - the signature of a merge call
            self._apply(whole)
            self._finish_step(global_step)

        replica.merge_call(once)

    def _finish_step(self, global_step: Any) -> None:
        self._finish()
        if global_step is not None:
            global_step.assign_add(1, read_value=False)

    def _apply(self, pairs: Pairs) -> list[Any]:
        """Update each variable on its own device; return the operations of a graph that do so."""
        operations: list[Any] = []
        for gradient, variable in pairs:
            with _device_of(variable):
                if isinstance(gradient, IndexedSlices):
                    operations += self._update_by_slices(gradient, variable)
                    continue
                operations += self._update(gradient, variable, ALL_ELEMENTS)
                if variable.constraint is not None:
                    operations += self._constrain(variable, operations)
        return operations

    def _constrain(self, variable: Any, before: list[Any]) -> list[Any]:
        """Apply a variable's constraint to its updated value."""
        with _control_dependencies(before):
            return [variable.assign(variable.constraint(variable), read_value=False)]

    def _apply_in_graph(self, pairs: Pairs, global_step: Any, name: str) -> Any:
        graph = get_default_graph()
        with graph.name_scope(name) as scope:
            operations = self._apply(pairs)
            with _control_dependencies(operations):
                operations += self._finish()
            if global_step is None:
                train = group(*operations, name=scope)
            else:
                with _control_dependencies(operations), _device_of(global_step):
                    train = global_step.assign_add(1, name=scope, read_value=False)
        graph.add_to_collection("train_op", train)
        return train

    def _update_by_slices(self, gradient: IndexedSlices, variable: Any) -> list[Any]:
        """Update a variable by slices; most optimizers update their rows alone.

        Raises:
            RuntimeError: The variable has a constraint, or several copies.
        """
        if variable.constraint is not None:
            raise RuntimeError("Cannot use a constraint function on a sparse variable.")
        if has_copies(variable):
            # In a replica the variable is its copy.
            raise RuntimeError(
                "Use `Strategy.run` to apply gradients of lookups, which are IndexedSlices, to variables of a "
                "strategy: `apply_gradients()` cannot do it in a cross-replica context."
            )
        if not self._updates_rows:
            return self._update(dense(gradient), variable, ALL_ELEMENTS)
        values, indices = gradient.values, gradient.indices
        if self._slots:
            # A row that is named twice is updated once, by the sum.
            indices, places = unique(indices)
            values = unsorted_segment_sum(values, places, size(indices))
        return self._update(values, variable, Rows(indices))

    def _update(self, gradient: Any, variable: Any, elements: AllElements) -> list[Any]:
        """Update elements of a variable by their gradient.

        Returns:
            The operations of a graph that do so, the variable's last.
        """
        raise NotImplementedError(f"{type(self).__name__} does not update variables: override `_update`.")

    def _finish(self) -> list[Any]:
        """Run after all variables were updated; return the operations of a graph. Nothing by default."""
        return []

    def _number(self, value: Any, dtype: DType) -> Any:
        """Convert a hyperparameter to a tensor: a number, a tensor, or a function that returns one."""
        return cast(
            to_tensor(value() if callable(value) and not hasattr(value, "_as_tensor") else value), dtype
        )


def _as_list(variables: Any) -> list[Any]:
    return (
        list(variables)
        if isinstance(variables, Iterable) and not hasattr(variables, "_source")
        else [variables]
    )


def _to_gradient(value: Any) -> Any:
    try:
        return tensor_or_slices(value)
    except (TypeError, ValueError) as error:
        error.__traceback__ = None
        raise TypeError(
            f"Gradient must be convertible to a Tensor or IndexedSlices, or None: {value}"
        ) from None


def _device_of(variable: Any) -> AbstractContextManager[Any]:
    """Return a scope that places operations on a variable's device."""
    if thread.state.graph is None:
        return device(variable.device)
    return get_default_graph().colocate_with(variable.op, ignore_existing=True)


def _control_dependencies(before: list[Any]) -> AbstractContextManager[Any]:
    """Return a scope whose operations run after those in ``before``; without effect in eager mode."""
    return nullcontext() if thread.state.graph is None else get_default_graph().control_dependencies(before)


__all__ = ["Optimizer"]

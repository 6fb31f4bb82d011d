"""Finds the nodes and tensors of a graph by name, or by what stands for them."""

from typing import Any

from allotment.tf.graph.nodes.node import Operation, SymbolicTensor


class NodeLookup:
    """The part of a graph that keeps its nodes, in the order they were made and by name."""

    def __init__(self) -> None:
        super().__init__()
        self._operations: list[Operation] = []
        self._by_name: dict[str, Operation] = {}

    def get_operations(self) -> list[Operation]:
        """Return all nodes in the order they were made."""
        return list(self._operations)

    def get_operation_by_name(self, name: str) -> Operation:
        """Return the node of a name.

        Raises:
            TypeError: The name is no text.
            KeyError: There is none.
            ValueError: It is a name of a tensor.
        """
        if not isinstance(name, str):
            raise TypeError(f"Operation names are strings (or similar), not {type(name).__name__}.")
        found = self.as_graph_element(name, allow_tensor=False)
        assert isinstance(found, Operation)
        return found

    def get_tensor_by_name(self, name: str) -> SymbolicTensor:
        """Return the tensor of a name such as ``a:0``.

        Raises:
            TypeError: The name is no text.
            KeyError: There is none.
            ValueError: It is no name of a tensor.
        """
        if not isinstance(name, str):
            raise TypeError(f"Tensor names are strings (or similar), not {type(name).__name__}.")
        found = self.as_graph_element(name, allow_operation=False)
        assert isinstance(found, SymbolicTensor)
        return found

    def as_graph_element(
        self, obj: Any, allow_tensor: bool = True, allow_operation: bool = True
    ) -> Operation | SymbolicTensor:
        """Return the node or tensor that an object or a name stands for.

        Raises:
            KeyError: There is no such name.
            ValueError: It belongs to another graph, or is a name of the other sort.
            TypeError: It stands for none.
        """
        convert = getattr(obj, "_as_graph_element", None)
        if convert is not None:
            obj = convert()
        if isinstance(obj, str):
            return self._named(obj, allow_tensor, allow_operation)
        for kind, allowed, what in (
            (SymbolicTensor, allow_tensor, "Tensor"),
            (Operation, allow_operation, "Operation"),
        ):
            if isinstance(obj, kind) and allowed:
                graph: object = obj.graph
                if graph is not self:
                    raise ValueError(
                        f"{what} {obj if kind is SymbolicTensor else obj.name} is not an element of this graph."
                    )
                return obj
        wanted = " or ".join(
            what for what, allowed in (("Tensor", allow_tensor), ("Operation", allow_operation)) if allowed
        )
        raise TypeError(f"Can not convert a {type(obj).__name__} into a {wanted}.")

    def _named(self, name: str, allow_tensor: bool, allow_operation: bool) -> Operation | SymbolicTensor:
        if ":" in name and not allow_tensor:
            raise ValueError(f"Name {name!r} appears to refer to a Tensor, not a Operation.")
        if ":" not in name:
            if name not in self._by_name:
                if not allow_operation:
                    raise ValueError(
                        f"The name {name!r} looks like an (invalid) Operation name, not a Tensor. Tensor names must be "
                        'of the form "<op_name>:<output_index>".'
                    )
                raise KeyError(f"The name {name!r} refers to an Operation not in the graph.")
            if not allow_operation:
                raise ValueError(
                    f"The name {name!r} refers to an Operation, not a Tensor. Tensor names must be of the form "
                    '"<op_name>:<output_index>".'
                )
            return self._by_name[name]
        head, _, tail = name.partition(":")
        if not tail.isdecimal() or not head:
            raise ValueError(
                f"The name {name!r} looks a like a Tensor name, but is not a valid one. Tensor names must be of the "
                'form "<op_name>:<output_index>".'
            )
        operation = self._by_name.get(head)
        if operation is None:
            raise KeyError(
                f"The name {name!r} refers to a Tensor which does not exist. The operation, {head!r}, does not exist "
                "in the graph."
            )
        if int(tail) >= len(operation._outputs):
            raise KeyError(
                f"The name {name!r} refers to a Tensor which does not exist. The operation, {head!r}, exists but only "
                f"has {len(operation._outputs)} outputs."
            )
        return operation._outputs[int(tail)]


__all__ = ["NodeLookup"]

"""The errors of nodes in a session, in TensorFlow's words."""

from typing import TypeVar

from allotment.errors import OpError
from allotment.tf.graph.nodes.node import Operation

Error = TypeVar("Error", bound=OpError)


def graph_error(kind: type[Error], operation: Operation, text: str, place: str | None = None) -> Error:
    """Make the error of a node: its name, where the program made it, and what is wrong."""
    return kind(None, operation, framed(operation, text, place))  # type: ignore[call-arg]


def framed(operation: Operation, text: str, place: str | None = None) -> str:
    """Return the text of a node's error."""
    name = operation.name
    return (
        f"Graph execution error:\n\nDetected at node '{name}' defined at (most recent call last):\n"
        f"{operation._stack.lines(indent='    ')}Node: '{name}'\n"
        f"{text}\n\t {place or f'[[{{{{node {name}}}}}]]'}"
    )


def of_node(error: Error, operation: Operation) -> Error:
    """Make an operation's error that of the node which ran it: frame its text and keep its fields."""
    head, _, rest = error.message.partition("}} ")
    text = rest if head.startswith("{{function_node") else error.message
    text = text.rpartition(" [Op:")[0] or text
    made = type(error)(None, operation, framed(operation, text))  # type: ignore[call-arg]
    fields = {name: value for name, value in vars(error).items() if not name.startswith("_")}
    vars(made).update(fields)
    return made


__all__ = ["framed", "graph_error", "of_node"]

"""The errors of nodes in a session, in TensorFlow's words (placement, section 7.5)."""

from typing import TYPE_CHECKING, Any, TypeVar

from allotment.errors import OpError

if TYPE_CHECKING:
    from allotment.tf.graph.node import Operation

Error = TypeVar("Error", bound=OpError)


def graph_error(kind: type[Error], operation: "Operation", text: str, place: str | None = None) -> Error:
    """The error of a node: where it was made in the program, its name, and what is wrong."""
    return kind(None, operation, framed(operation, text, place))  # type: ignore[call-arg]


def framed(operation: "Operation", text: str, place: str | None = None) -> str:
    """The text of a node's error."""
    name = operation.name
    return (
        f"Graph execution error:\n\nDetected at node '{name}' defined at (most recent call last):\n"
        f"{operation._stack.lines(indent='    ')}Node: '{name}'\n"
        f"{text}\n\t {place or f'[[{{{{node {name}}}}}]]'}"
    )


def of_node(error: Any, operation: "Operation") -> Any:
    """An operation's error as that of the node which ran it: its text is framed, its fields stay."""
    head, _, rest = error.message.partition("}} ")
    text = rest if head.startswith("{{function_node") else error.message
    text = text.rpartition(" [Op:")[0] or text
    made = type(error)(None, operation, framed(operation, text))
    fields = {name: value for name, value in vars(error).items() if not name.startswith("_")}
    vars(made).update(fields)
    return made


__all__ = ["framed", "graph_error", "of_node"]

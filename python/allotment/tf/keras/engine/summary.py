"""The table of a model's layers."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from allotment.tf import nest
from allotment.tf.keras.engine.layer import Layer, elements_of
from allotment.tf.keras.engine.symbolic import Node
from allotment.tf.variables.variable import Variable

if TYPE_CHECKING:
    from allotment.tf.keras.engine.model import Model

#: How the columns share the width, without and with the one that says what a layer is connected to.
_SHARES = ((45, 33, 22), (28, 26, 18, 28))


def print_summary(model: "Model", line_length: int | None, print_fn: Callable[[str], Any] | None) -> None:
    """Print the table. See ``Model.summary``."""
    # Costs a fifth of the start-up time, and most programs print no table.
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console(width=line_length, highlight=False)
    if not console.is_terminal and line_length is None:
        # Of a file nobody knows the width.
        console = Console(width=80, highlight=False)
    nodes = _nodes(model)
    connected = nodes is not None and _has_branches(model, nodes)
    headings = ["Layer (type)", "Output Shape", "Param #", "Connected to"][: 4 if connected else 3]
    table = Table(width=console.width, show_lines=True, header_style="bold")
    for heading, share in zip(headings, _SHARES[connected], strict=True):
        table.add_column(heading, ratio=share, justify="right" if heading == "Param #" else "left")
    for layer in model.layers:
        row = [f"{layer.name} ({type(layer).__name__})", _shape(layer, nodes), _count(layer)]
        if connected:
            row.append(", ".join(_sources(layer, nodes)) or "-")
        table.add_row(*map(escape, row))
    lines = [f" {what}: {elements_of(which):,} ({size_text(which)})" for what, which in _totals(model)]
    with console.capture() as captured:
        console.print(f'[bold]Model: "{escape(model.name)}"[/bold]')
        console.print(table)
        console.print("\n".join(f"[bold]{line}[/bold]" for line in lines))
    (print_fn or print)(captured.get().rstrip("\n"))


def _totals(model: "Model") -> list[tuple[str, list[Variable]]]:
    kept = getattr(model.optimizer, "variables", None) if model.compiled else None
    kept = kept if isinstance(kept, list) else []
    totals = [
        ("Total params", [*model.weights, *kept]),
        ("Trainable params", model.trainable_weights),
        ("Non-trainable params", model.non_trainable_weights),
    ]
    return [*totals, ("Optimizer params", kept)] if kept else totals


def size_text(variables: list[Variable]) -> str:
    """The bytes of variables, for people."""
    size: float = sum((each.shape.num_elements() or 0) * each.dtype.size for each in variables)
    units = iter(("B", "KB", "MB", "GB", "TB"))
    unit = next(units)
    while size >= 1024:
        size, unit = size / 1024, next(units)
    return f"{size:.2f} {unit}"


def _nodes(model: "Model") -> frozenset[Node] | None:
    """The calls that are of this model, if that is known: a layer may be in several."""
    plan = getattr(model, "_plan", None)
    return None if plan is None else plan.nodes


def _has_branches(model: "Model", nodes: frozenset[Node]) -> bool:
    """Whether the model is more than one layer after the other."""
    own = [[node for node in layer.nodes if node in nodes] for layer in model.layers]
    takers = [tensor for calls in own for node in calls for tensor in node.inputs]
    return (
        any(len(calls) > 1 or any(len(node.inputs) > 1 for node in calls) for calls in own)
        or len({id(tensor) for tensor in takers}) < len(takers)
        or sum(not node.inputs for node in nodes) > 1
    )


def _sources(layer: Layer, nodes: frozenset[Node] | None) -> list[str]:
    """What a layer is connected to: layers, with the number of their call and of its output."""
    return [
        f"{tensor.node.layer.name}[{tensor.node.number}][{tensor.index}]"
        for node in layer.nodes
        if nodes is None or node in nodes
        for tensor in node.inputs
        if tensor.node is not None
    ]


def _shape(layer: Layer, nodes: frozenset[Node] | None) -> str:
    calls = [node for node in layer.nodes if nodes is None or node in nodes]
    if calls:
        shapes = [tensor.shape for tensor in nest.flatten(calls[0].outputs)]
    elif (
        layer._build_shape is not None and type(layer).compute_output_shape is not Layer.compute_output_shape
    ):
        shapes = [layer.compute_output_shape(layer._build_shape)]
    else:
        return "?"
    return ", ".join(map(str, shapes))


def _count(layer: Layer) -> str:
    if not layer.built:
        return "0 (unbuilt)"
    return f"{layer.count_params():,}"


__all__ = ["print_summary", "size_text"]

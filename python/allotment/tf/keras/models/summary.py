"""The table that ``Model.summary`` prints."""

import shutil
from collections.abc import Callable, Sequence
from typing import Any

from allotment.tf import nest
from allotment.tf.keras.engine.layer import Layer
from allotment.tf.keras.engine.layer_variables import elements_of
from allotment.tf.keras.engine.symbolic import Node
from allotment.tf.variables.variable import Variable

#: The ends of the columns relative to the width, without and with the column of connections.
_ENDS = ((0.45, 0.8, 1.0), (0.3, 0.56, 0.74, 1.0))
#: The largest width of the table, without and with the column of connections.
_WIDTHS = (88, 108)


def print_summary(
    name: str,
    layers: Sequence[Layer],
    nodes: frozenset[Node] | None,
    totals: Sequence[tuple[str, Sequence[Variable]]],
    line_length: int | None,
    print_fn: Callable[[str], Any] | None,
) -> None:
    """Print the table of a model's layers. See ``Model.summary``.

    Args:
        name: The name of the model.
        layers: The layers.
        nodes: The calls that belong to the model, if they are known: a layer may be in several models.
        totals: Titles and variables for the lines below the table.
        line_length: The width in characters.
        print_fn: Called with the text instead of ``print``.
    """
    # The import takes a fifth of the start-up time, and most programs print no table.
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    connected = nodes is not None and _has_branches(layers, nodes)
    headings = ["Layer (type)", "Output Shape", "Param #", "Connected to"][: 4 if connected else 3]
    # As wide as in Keras, for a terminal of 80 columns if there is none.
    columns = shutil.get_terminal_size().columns
    width = line_length or min(_WIDTHS[connected], columns - 4)
    ends = [int(end * width) for end in _ENDS[connected]]
    if width < 4 * len(ends):
        raise ValueError(f"Insufficient console width to print summary. Received: line_length={line_length}")
    console = Console(width=max(columns, width), highlight=False)
    table = Table(width=width, show_lines=True, header_style="bold")
    for heading, start, end in zip(headings, [0, *ends], ends, strict=False):
        table.add_column(heading, width=end - start, justify="right" if heading == "Param #" else "left")
    for layer in layers:
        row = [f"{layer.name} ({type(layer).__name__})", _shape(layer, nodes), _count(layer)]
        if connected:
            row.append(", ".join(_sources(layer, nodes)) or "-")
        table.add_row(*map(escape, row))
    lines = [f" {what}: {elements_of(which):,} ({size_text(which)})" for what, which in totals]
    with console.capture() as captured:
        console.print(f'[bold]Model: "{escape(name)}"[/bold]')
        console.print(table)
        console.print("\n".join(f"[bold]{line}[/bold]" for line in lines))
    (print_fn or print)(captured.get().rstrip("\n"))


def size_text(variables: Sequence[Variable]) -> str:
    """Return the size of variables as text, such as ``1.50 MB``."""
    size: float = sum((each.shape.num_elements() or 0) * each.dtype.size for each in variables)
    units = iter(("B", "KB", "MB", "GB", "TB"))
    unit = next(units)
    while size >= 1024:
        size, unit = size / 1024, next(units)
    return f"{size:.2f} {unit}"


def _has_branches(layers: Sequence[Layer], nodes: frozenset[Node]) -> bool:
    """Whether the model is other than a sequence of layers."""
    own = [[node for node in layer.nodes if node in nodes] for layer in layers]
    takers = [tensor for calls in own for node in calls for tensor in node.inputs]
    return (
        any(len(calls) > 1 or any(len(node.inputs) > 1 for node in calls) for calls in own)
        or len({id(tensor) for tensor in takers}) < len(takers)
        or sum(not node.inputs for node in nodes) > 1
    )


def _sources(layer: Layer, nodes: frozenset[Node] | None) -> list[str]:
    """Return the layers whose outputs a layer takes, with the numbers of their call and output."""
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

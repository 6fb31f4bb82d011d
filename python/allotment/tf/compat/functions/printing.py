"""``tf.compat.v1.Print``: an identity that prints other tensors when it runs."""

import sys
from typing import Any

from allotment.tf.dispatch import thread
from allotment.tf.ops.array.array import identity
from allotment.tf.ops.arrays import Array
from allotment.tf.ops.autodiff.differentiation import not_differentiable
from allotment.tf.ops.control.assert_op import shown_count, summary
from allotment.tf.ops.convert import to_tensor
from allotment.tf.ops.execute import run
from allotment.tf.ops.inference.common import no_outputs
from allotment.tf.ops.table import operation


def _write(*arrays_and_args: Any) -> tuple[()]:
    *arrays, message, shown = arrays_and_args
    texts: list[Array] = arrays
    print(message + "".join(f"[{summary(each, shown)}]" for each in texts), file=sys.stderr, flush=True)
    return ()


_print = operation("Print", _write, shape=no_outputs, reads_anywhere=True, effect_only=True)
not_differentiable("Print")


def Print(  # noqa: N802 - the name TensorFlow has
    input_: Any,
    data: Any,
    message: str | None = None,
    first_n: int | None = None,
    summarize: int | None = None,
    name: str | None = None,
) -> Any:
    """Return a tensor, and print others to ``sys.stderr``; in a graph in each run.

    Raises:
        NotImplementedError: ``first_n`` is given: runs are not counted.
    """
    if first_n is not None and first_n >= 0:
        raise NotImplementedError(f"first_n={first_n}: runs are not counted. Leave the argument out.")
    tensors = [to_tensor(each) for each in data]
    node = run(_print, tensors, message or "", shown_count(summarize), name="Print/data")
    graph = thread.state.graph
    if graph is None:
        return identity(input_)
    with graph.control_dependencies([node]):
        return identity(input_, name or "Print")


__all__ = ["Print"]

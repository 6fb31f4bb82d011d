"""Choosing and repeating, as functions: eagerly each is what Python's own statement does.

Longer than 300 lines: choices and the loop share how a graph decides.
"""

import contextlib
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from allotment.errors import InvalidArgumentError
from allotment.tf import nest
from allotment.tf.dispatch import thread
from allotment.tf.errors import OperatorNotAllowedInGraphError
from allotment.tf.ops.array.array import get_static_value, is_tensor
from allotment.tf.ops.control.assert_op import failed
from allotment.tf.ops.control.traced import after_loop, is_traced, one_of
from allotment.tf.ops.convert import to_tensor
from allotment.tf.ops.execute import run
from allotment.tf.ops.functions import across_boundary
from allotment.tf.ops.inference.shape_functions import Inference, Output
from allotment.tf.ops.table import CPU_ONLY, operation
from allotment.tf.tensors.dtype import float64
from allotment.tf.tensors.tensor import EagerTensor


def _decided(what: str, value: Any) -> Any:
    """A condition, or what a choice is made by, as a value that is known now.

    Raises:
        OperatorNotAllowedInGraphError: It is known only when the graph runs.
    """
    if thread.state.graph is None or not is_tensor(value):
        return value
    known = get_static_value(value)
    if known is None:
        raise OperatorNotAllowedInGraphError(
            f"{what} chooses what to compute, and a graph's nodes are chosen when it is built: {value!r} has no value "
            "yet. Fetch it in a session and choose in Python, or compute both and choose with tf.where."
        )
    return known


def cond(
    pred: Any,
    true_fn: Callable[[], Any] | None = None,
    false_fn: Callable[[], Any] | None = None,
    name: str | None = None,
) -> Any:
    """Call one of two functions. As ``tf.cond``; in a graph the condition must be known while it is built.

    Raises:
        OperatorNotAllowedInGraphError: In a graph: the condition is known only when that runs.
        TypeError: One is no function, or there is none.
    """
    if true_fn is None or false_fn is None:
        raise TypeError(f"cond(): '{'true_fn' if true_fn is None else 'false_fn'}' argument required")
    for what, function in (("true_fn", true_fn), ("false_fn", false_fn)):
        if not callable(function):
            raise TypeError(f"'{what}' must be callable.")
    if is_traced(pred):
        return one_of(pred, [true_fn(), false_fn()])
    return _branch(true_fn if _decided("tf.cond", pred) else false_fn)


def case(
    pred_fn_pairs: Any,
    default: Callable[[], Any] | None = None,
    exclusive: bool = False,
    strict: bool = False,
    name: str = "case",
) -> Any:
    """Call the function of the first of several conditions that is true. As ``tf.case``.

    Raises:
        TypeError: Not pairs of a tensor and a function.
        ValueError: There are no pairs, or a dictionary that is not ordered, of which the order counts.
        InvalidArgumentError: No condition is true, and there is no function for that; with ``exclusive`` several are.
    """
    if isinstance(pred_fn_pairs, dict):
        pairs = list(pred_fn_pairs.items())
        if not isinstance(pred_fn_pairs, OrderedDict):
            if thread.state.graph is None and not exclusive:
                raise ValueError(
                    "Unordered dictionaries are not supported for the 'pred_fn_pairs' argument when `exclusive=False` "
                    "and eager mode is enabled."
                )
            pairs.sort(key=lambda pair: str(getattr(pair[0], "name", "")))
    elif isinstance(pred_fn_pairs, list | tuple):
        pairs = list(pred_fn_pairs)
    else:
        raise TypeError(f"'pred_fn_pairs' must be a list, tuple, or dict. Received: {type(pred_fn_pairs)}")
    if not pairs:
        raise ValueError("'pred_fn_pairs' must have at least one pair of a condition and a function.")
    for each in pairs:
        if not isinstance(each, list | tuple) or len(each) != 2:
            raise TypeError(f"Each entry in 'pred_fn_pairs' must be a 2-tuple. Received {each}.")
        condition, function = each
        if not is_tensor(condition):
            raise TypeError(f"pred must be a Tensor, got: {condition}")
        if not callable(function):
            raise TypeError(f"fn for pred {condition} must be callable.")
    if default is not None and not callable(default):
        raise TypeError("default must be callable.")
    conditions = [condition for condition, _ in pairs]
    functions = [function for _, function in pairs]
    traced = [each for each in conditions if is_traced(each)]
    if traced:
        every = functions if default is None else [*functions, default]
        return one_of(traced[0], [function() for function in every])
    if exclusive:
        # As in TensorFlow, where the last function is the default without another one: its condition does not count.
        counted = conditions if default is not None else conditions[:-1]
        if sum(bool(_decided("tf.case", each)) for each in counted) > 1:
            names = ", ".join("?" if isinstance(each, EagerTensor) else each.name for each in counted)
            raise _no_case(f"exclusive=True: more than 1 conditions ({names}) evaluated as True:", counted)
    chosen = next((function for condition, function in pairs if _decided("tf.case", condition)), None)
    chosen = chosen or default
    if chosen is None:
        raise _no_case("None of conditions evaluated as True:", conditions)
    return _branch(chosen)


def _no_case(text: str, conditions: Sequence[Any]) -> InvalidArgumentError:
    """Make the error of conditions of which not one alone is true."""
    values = ", ".join(str(bool(_decided("tf.case", each))) for each in conditions[:3])
    return failed(
        "Expected 'tf.Tensor(False, shape=(), dtype=bool)' to be true. Summarized data: "
        f"b'Input error: {text}'\n{values}"
    )


def _branch(function: Callable[[], Any]) -> Any:
    """Call the chosen function; inside of a function of TensorFlow's, a branch is one as well."""
    made = function()
    return nest.map_structure(across_boundary, made) if thread.state.in_function else made


def switch_case(
    branch_index: Any, branch_fns: Any, default: Callable[[], Any] | None = None, name: str = "switch_case"
) -> Any:
    """Call one of several functions by number; by the last one what is no number of one. As ``tf.switch_case``.

    Raises:
        TypeError: The number is no tensor, or there are no functions.
        ValueError: The numbers of the functions leave gaps.
    """
    if not is_tensor(branch_index):
        raise TypeError(f"'branch_index' must be a Tensor, got {type(branch_index)}")
    pairs = sorted(branch_fns.items()) if isinstance(branch_fns, dict) else list(enumerate(branch_fns))
    if not pairs:
        raise ValueError("Must provide at least one item in 'branch_fns'")
    if pairs and isinstance(pairs[0][1], tuple):
        pairs = sorted(pair for _, pair in pairs)
    keys = [key for key, _ in pairs]
    if keys != list(range(len(keys))):
        found = ",".join(map(str, keys))
        raise ValueError(
            f"branch indices (keys) must form contiguous range of [0 to {len(keys)}) but found {{{found}}}"
        )
    functions = [function for _, function in pairs]
    if is_traced(branch_index):
        every = functions if default is None else [*functions, default]
        return one_of(branch_index, [function() for function in every])
    number = int(_decided("tf.switch_case", branch_index))
    if 0 <= number < len(functions):
        return _branch(functions[number])
    return _branch(functions[-1] if default is None else default)


def while_loop(
    cond: Callable[..., Any],
    body: Callable[..., Any],
    loop_vars: Any,
    shape_invariants: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    maximum_iterations: Any = None,
    name: str | None = None,
) -> Any:
    """Call ``body`` with the values it returned before for as long as ``cond`` is true of them. As ``tf.while_loop``.

    Returns:
        The last values as tensors: in a graph in the structure of ``loop_vars``, eagerly in that of what ``body``
        returns.

    Raises:
        TypeError: The first two are no functions, or ``parallel_iterations`` is not positive.
        ValueError: There are no values to begin with, or ``body`` returns another structure.
    """
    values, _ = repeat(
        cond, body, loop_vars, parallel_iterations, maximum_iterations, shape_invariants, packs=False
    )
    return values


def repeat(
    cond: Callable[..., Any],
    body: Callable[..., Any],
    loop_vars: Any,
    parallel_iterations: int,
    maximum_iterations: Any,
    shape_invariants: Any = None,
    *,
    packs: bool,
) -> tuple[Any, bool]:
    """Run the loop of ``tf.while_loop`` and of that of TensorFlow 1.

    Args:
        cond: As of ``while_loop``, like the arguments that follow.
        body: Called with the values.
        loop_vars: The values to begin with.
        parallel_iterations: Checked only.
        maximum_iterations: The largest number of calls of ``body``, or ``None``.
        shape_invariants: The shapes of the values while the loop is traced; elsewhere without effect.
        packs: Eagerly, take what ``body`` returns for one value as that value alone, where it is no sequence. In a
            graph that holds in any case.

    Returns:
        The values as tensors, in a graph in the structure of ``loop_vars``, and whether one was returned alone.
    """
    if not callable(cond):
        raise TypeError("'cond' must be callable.")
    if not callable(body):
        raise TypeError("'body' must be callable.")
    if parallel_iterations < 1:
        raise TypeError("'parallel_iterations' must be a positive integer.")
    if not loop_vars:
        raise ValueError("'loop_vars' must be provided.")
    in_graph = thread.state.graph is not None
    # Eagerly, a loop with a limit counts beside its values: those keep their structure, and one value stands alone.
    counts = maximum_iterations is not None and not in_graph
    if counts and packs and len(loop_vars) == 1:
        values, _ = repeat(
            cond, lambda value: (body(value),), tuple(loop_vars), 1, maximum_iterations, packs=False
        )
        return values, True
    packs = in_graph or (packs and len(loop_vars) == 1)
    values, alone, rounds = loop_vars, False, 0
    while True:
        condition = cond(*values)
        if is_traced(condition):
            return after_loop(values, body, shape_invariants)
        if not _decided("tf.while_loop", condition):
            break
        if maximum_iterations is not None and rounds >= maximum_iterations:
            break
        values = body(*values)
        if packs and not nest.is_nested(values):
            values, alone = [values], True
        if counts:
            nest.assert_same_structure((0, loop_vars), (0, values))
        else:
            nest.assert_same_structure(list(loop_vars), list(values))
        rounds += 1
    tensors = nest.map_structure(lambda each: across_boundary(to_tensor(each)), values)
    return nest.pack_sequence_as(loop_vars, nest.flatten(tensors)) if in_graph else tensors, alone


def no_op(name: str | None = None) -> Any:
    """Do nothing; in a graph add an operation that does nothing. As ``tf.no_op``."""
    graph = thread.state.graph
    return None if graph is None else graph.group((), name or "NoOp")


def group(*inputs: Any, **kwargs: Any) -> Any:
    """Do nothing: what is grouped has run; in a graph add an operation that waits for all. As ``tf.group``."""
    graph = thread.state.graph
    return (
        None if graph is None else graph.group(nest.flatten(list(inputs)), kwargs.get("name") or "group_deps")
    )


def tuple_of(tensors: Sequence[Any], control_inputs: Any = None, name: str | None = None) -> Sequence[Any]:
    """Return the tensors: what they wait for has run. As ``tf.tuple``."""
    return tensors


def control_dependencies(control_inputs: Any) -> contextlib.AbstractContextManager[None]:
    """Let operations run before those of a ``with`` block. As ``tf.control_dependencies``.

    Eagerly the context does nothing: operations run when they are called.
    """
    graph = thread.state.graph
    if graph is not None:
        return graph.control_dependencies(control_inputs)
    if callable(control_inputs):
        control_inputs()
    return contextlib.nullcontext()


def _now() -> Any:
    return np.array(time.time(), np.float64)


def _timestamp_shape(c: Inference) -> list[Output]:
    return [(float64, ())]


_timestamp = operation("Timestamp", _now, shape=_timestamp_shape, kinds=CPU_ONLY)


def timestamp(name: str | None = None) -> EagerTensor:
    """The seconds since 1970. As ``tf.timestamp``."""
    return run(_timestamp, (), name=name)  # type: ignore[no-any-return]


__all__ = [
    "case",
    "cond",
    "control_dependencies",
    "group",
    "no_op",
    "repeat",
    "switch_case",
    "timestamp",
    "tuple_of",
    "while_loop",
]

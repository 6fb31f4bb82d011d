"""``tf.GradientTape``: records eager operations and computes gradients of their results.

Longer than 300 lines: one public class with its documentation.
"""

import logging
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Final

from allotment.tf import nest
from allotment.tf.differentiation.targets import (
    batch_one_hot_seeds,
    check_tensor_or_variable,
    flatten_checked,
    initial_gradient,
    is_tensor_or_variable,
    one_hot_seeds,
    stack_gradients,
)
from allotment.tf.differentiation.unconnected_gradients import UnconnectedGradients, unconnected_argument
from allotment.tf.graph.default import graph_of
from allotment.tf.ops.array.creation import zeros, zeros_like
from allotment.tf.ops.array.joining import stack
from allotment.tf.ops.array.layout import reshape, transpose
from allotment.tf.ops.autodiff import all_gradients as _gradients  # noqa: F401 - enters gradients into the operation table
from allotment.tf.ops.autodiff.backward import Step, backward
from allotment.tf.ops.autodiff.differentiation import is_differentiable
from allotment.tf.ops.autodiff.tape import Tape, pop, push, source_key
from allotment.tf.ops.indexing.indexed_slices import dense

_log: Final = logging.getLogger("allotment.gradients")

_USED: Final = "A non-persistent GradientTape can only be used to compute one set of gradients (or jacobians)"


class GradientTape:
    """Context manager that records operations in order to compute gradients of their results. As ``tf.GradientTape``.

    The tape records this thread's operations in the ``with`` block whose inputs depend on a watched value. It watches
    trainable variables automatically and tensors after a call of ``watch``. It keeps the tensors that gradients need
    in memory; without ``persistent`` it releases them during the gradient computation.

    Args:
        persistent: Whether gradients can be computed more than once.
        watch_accessed_variables: Whether trainable variables are watched when they are read.

    Example::

        v = tf.Variable(3.0)
        with tf.GradientTape() as tape:
            loss = v * v
        tape.gradient(loss, v)  # 6.0
    """

    def __init__(self, persistent: bool = False, watch_accessed_variables: bool = True) -> None:
        self._persistent = persistent
        self._watch_accessed_variables = watch_accessed_variables
        self._tape: Tape | None = None
        self._recording = False
        self._watched: tuple[Any, ...] = ()

    def __enter__(self) -> "GradientTape":
        self._push()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._recording:
            self._pop()

    def _push(self) -> None:
        if self._recording:
            raise ValueError(
                "Tape is still recording, This can happen if you try to re-enter an already-active tape."
            )
        if self._tape is None:
            self._tape = Tape(watches_variables=self._watch_accessed_variables)
        push(self._tape)
        self._recording = True

    def _pop(self) -> None:
        if not self._recording or self._tape is None:
            raise ValueError("Tape is not recording.")
        pop(self._tape)
        self._recording = False

    def watch(self, tensor: Any) -> None:
        """Record the operations that depend on a tensor or variable, or on those of a nested structure.

        Raises:
            ValueError: A value is neither a tensor nor a variable.
            RuntimeError: The tape has not been entered.
        """
        for each in nest.flatten(tensor):
            if not is_tensor_or_variable(each):
                raise ValueError(
                    f"Passed in object {each} of type {type(each).__name__!r}, not tf.Tensor or tf.Variable or "
                    "ExtensionType."
                )
            if not is_differentiable(each.dtype):
                _warn(
                    "The dtype of the watched tensor must be floating (e.g. tf.float32), got %r",
                    5,
                    each.dtype,
                )
            if self._tape is None:
                raise RuntimeError("watch: the tape is not recording. Call it inside of `with tape:`.")
            self._tape.watch(each)

    @contextmanager
    def stop_recording(self) -> Iterator[None]:
        """Return a context manager that suspends the recording.

        Raises:
            RuntimeError: The tape has not been entered.
            ValueError: The tape's ``with`` block has ended.
        """
        if self._tape is None:
            raise RuntimeError("Trying to stop recording a tape which is not recording.")
        self._pop()
        try:
            yield
        finally:
            self._push()

    def reset(self) -> None:
        """Discard everything recorded and watched so far, and continue to record.

        Raises:
            ValueError: The tape is not recording.
        """
        self._pop()
        self._tape = None
        self._push()

    def watched_variables(self) -> tuple[Any, ...]:
        """Return the watched variables in the order of their first reads."""
        if self._tape is not None:
            self._watched = tuple(self._tape.variables.values())
        return self._watched

    def gradient(
        self,
        target: Any,
        sources: Any,
        output_gradients: Any = None,
        unconnected_gradients: Any = UnconnectedGradients.NONE,
    ) -> Any:
        """Compute the gradient of the sum of all targets with respect to each source.

        Args:
            target: A tensor or variable, or a nested structure of them.
            sources: Tensors or variables, in any structure.
            output_gradients: For each target a tensor of its shape to multiply its gradient with; ones by default.
            unconnected_gradients: The gradient of a source on which no target depends: ``"none"`` for ``None``,
                ``"zero"`` for zeros.

        Returns:
            Gradients in the structure of ``sources``, each of the shape of its source.

        Raises:
            RuntimeError: The tape is not persistent and was used already, or has not been entered.
            TypeError: There is no target, or a source or target is neither a tensor nor a variable.
            ValueError: ``unconnected_gradients`` is neither ``"none"`` nor ``"zero"``.
            LookupError: An operation between source and target has no gradient.
        """
        tape = self._tape_for_gradient()
        if target is None:
            raise TypeError(
                "Argument `target` should be a list or nested structure of Tensors, Variables or CompositeTensors to "
                "be differentiated, but received None."
            )
        unconnected = unconnected_argument(unconnected_gradients)
        targets, flat = flatten_checked(target, "target"), flatten_checked(sources, "source")
        given = [None] * len(targets) if output_gradients is None else nest.flatten(output_gradients)
        keys = [source_key(each) for each in flat]
        with graph_of(targets):
            seeds = [
                (source_key(each), initial_gradient(each, weight))
                for each, weight in zip(targets, [*given, *[None] * len(targets)], strict=False)
                if is_differentiable(each.dtype)
            ]
            ends = {key for key, _ in seeds}
            known = {key for key in keys if key in tape.tracked or key in ends}
            found = backward(self._steps(tape), seeds, known, keep=self._persistent)
            zero = unconnected is UnconnectedGradients.ZERO
            made = [
                zeros_like(each) if zero and key not in found else found.get(key)
                for key, each in zip(keys, flat, strict=True)
            ]
        return nest.pack_sequence_as(sources, made)

    def _steps(self, tape: Tape) -> list[Step]:
        """Return the recorded steps; clear the tape unless it is persistent, even if the gradient fails later."""
        steps = tape.steps()
        if not self._persistent:
            self.watched_variables()
            self._tape = None
            tape.clear()
        return steps

    def _tape_for_gradient(self) -> Tape:
        """Return the tape for a gradient computation; stop the recording unless the tape is persistent."""
        if self._tape is None:
            raise RuntimeError(_USED)
        tape = self._tape
        if self._recording and self._persistent:
            _warn(
                "Calling GradientTape.gradient on a persistent tape inside its context is significantly less efficient "
                "than calling it outside the context (it causes the gradient ops to be recorded on the tape, leading "
                "to increased CPU and memory usage). Only call GradientTape.gradient inside the context if you "
                "actually want to trace the gradient in order to compute higher order derivatives.",
                1,
            )
        elif self._recording:
            self._pop()
        return tape

    def jacobian(
        self,
        target: Any,
        sources: Any,
        unconnected_gradients: Any = UnconnectedGradients.NONE,
        parallel_iterations: int | None = None,  # noqa: ARG002 - TensorFlow's signature
        experimental_use_pfor: bool = True,
    ) -> Any:
        """Compute the gradient of each element of a target with respect to each source.

        Args:
            target: One tensor or variable.
            sources: Tensors or variables, in any structure.
            unconnected_gradients: As for ``gradient``.
            parallel_iterations: Has no effect.
            experimental_use_pfor: If false, the tape must be persistent, as in TensorFlow. The elements are processed
                one by one in any case.

        Returns:
            Tensors in the structure of ``sources``, each of shape ``target.shape + source.shape``.

        Raises:
            RuntimeError: The tape is not persistent and was used already, or must be persistent.
            TypeError: The target or a source is neither a tensor nor a variable.
        """
        tape = self._tape_for_gradient()
        self._check_loop("jacobian", experimental_use_pfor)
        unconnected = unconnected_argument(unconnected_gradients)
        check_tensor_or_variable(target, "jacobian", "target")
        flat = flatten_checked(sources, "source")
        made = self._gradients_for_seeds(tape, target, flat, one_hot_seeds(target))
        jacobians = [
            stack_gradients(rows, tuple(target.shape) + tuple(source.shape), source.dtype)
            if rows is not None or unconnected is UnconnectedGradients.ZERO
            else None
            for rows, source in zip(made, flat, strict=True)
        ]
        return nest.pack_sequence_as(sources, jacobians)

    def batch_jacobian(
        self,
        target: Any,
        source: Any,
        unconnected_gradients: Any = UnconnectedGradients.NONE,
        parallel_iterations: int | None = None,  # noqa: ARG002 - TensorFlow's signature
        experimental_use_pfor: bool = True,
    ) -> Any:
        """Compute the jacobian of each example of a batch, where examples do not depend on each other.

        Args:
            target: One tensor or variable of shape ``(batch, ...)``.
            source: One tensor or variable of shape ``(batch, ...)``.
            unconnected_gradients: Checked only: the result of an unconnected source is zeros.
            parallel_iterations: Has no effect.
            experimental_use_pfor: As for ``jacobian``.

        Returns:
            A tensor of shape ``target.shape + source.shape[1:]``.

        Raises:
            RuntimeError: The tape is not persistent and was used already, or must be persistent.
            TypeError: The target or the source is neither a tensor nor a variable.
            ValueError: The lengths of the first axes differ, or a shape has fewer than two axes.
        """
        tape = self._tape_for_gradient()
        self._check_loop("batch_jacobian", experimental_use_pfor)
        unconnected_argument(unconnected_gradients)
        check_tensor_or_variable(target, "batch_jacobian", "target")
        check_tensor_or_variable(source, "batch_jacobian", "source")
        if len(target.shape) < 2 or len(source.shape) < 2 or target.shape[0] != source.shape[0]:
            raise ValueError(
                f"Need first dimension of target shape ({target.shape}) and source shape ({source.shape}) to match."
            )
        rows = self._gradients_for_seeds(tape, target, [source], batch_one_hot_seeds(target))[0]
        shape = tuple(target.shape) + tuple(source.shape)[1:]
        if not rows:
            return zeros(shape, target.dtype)
        order = [1, 0, *range(2, len(source.shape) + 1)]
        return reshape(transpose(stack(rows), order), shape)

    def _check_loop(self, what: str, vectorized: bool) -> None:
        if not vectorized and not self._persistent:
            raise RuntimeError(
                f"GradientTape must be created with persistent=True to compute the {what} with eager execution enabled "
                "and with  experimental_use_pfor set to False."
            )

    def _gradients_for_seeds(
        self, tape: Tape, target: Any, sources: list[Any], seeds: Iterator[Any]
    ) -> list[list[Any] | None]:
        """Return the list of gradients of each source, one for each seed; ``None`` for an unconnected source."""
        keys = [source_key(each) for each in sources]
        own = source_key(target)
        known = {key for key in keys if key in tape.tracked or key == own}
        steps = self._steps(tape)
        made = [backward(steps, [(own, seed)], known, keep=True) for seed in seeds]
        # A target without elements has no seeds; this pass only finds the connected sources.
        connected = made[0] if made else backward(steps, [(own, zeros_like(target))], known, keep=False)
        return [[dense(each[key]) for each in made] if key in connected else None for key in keys]


#: Number of times that each warning was logged.
_given: Final[Counter[str]] = Counter()
_giving: Final = threading.Lock()


def _warn(text: str, times: int, *args: Any) -> None:
    """Log a warning, unless it was logged ``times`` times already."""
    with _giving:
        _given[text] += 1
        is_logged = _given[text] <= times
    if is_logged:
        _log.warning(text, *args)


__all__ = ["GradientTape"]

"""Learning rates that depend on the number of steps. As ``keras.optimizers.schedules``."""

import math
from collections.abc import Sequence
from typing import Any, ClassVar

from allotment.tf.names.missing_names import refuse_other_names
from allotment.tf.ops.array.array import cast
from allotment.tf.ops.convert import to_tensor
from allotment.tf.ops.math.arithmetic import add, minimum, multiply, subtract
from allotment.tf.ops.math.arithmetic import pow as power_of
from allotment.tf.ops.math.division import divide
from allotment.tf.ops.math.real import ceil, cos, floor
from allotment.tf.tensors.dtype import DType
from allotment.tf.tensors.tensor import EagerTensor


class LearningRateSchedule:
    """A learning rate as a function of the number of steps. As ``keras``'s class of this name.

    A subclass defines ``__call__(self, step)``.
    """

    #: The names of its arguments, which are attributes.
    _fields: ClassVar[tuple[str, ...]] = ()

    def __call__(self, step: Any) -> Any:
        """Return the learning rate of a step.

        Raises:
            NotImplementedError: The class does not implement it.
        """
        raise NotImplementedError(
            f"Learning rate schedule '{type(self).__name__}' must override `__call__(self, step)`."
        )

    def get_config(self) -> dict[str, Any]:
        """Return the arguments of an equal schedule."""
        return {name: getattr(self, name) for name in self._fields}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "LearningRateSchedule":
        """Make a schedule from its arguments."""
        return cls(**config)


class PiecewiseConstantDecay(LearningRateSchedule):
    """Constant learning rates between given numbers of steps. As ``keras``'s class of this name.

    Args:
        boundaries: The last step of each rate but the last one.
        values: The rates, one more than there are boundaries.
        name: The name.

    Raises:
        ValueError: Another number of rates.
    """

    _fields = ("boundaries", "values", "name")

    def __init__(
        self, boundaries: Sequence[Any], values: Sequence[Any], name: str = "PiecewiseConstant"
    ) -> None:
        if len(boundaries) != len(values) - 1:
            raise ValueError(
                "The length of boundaries should be 1 less than the length of values. Received: "
                f"boundaries={boundaries} of length {len(boundaries)}, and values={values} of length {len(values)}."
            )
        self.boundaries, self.values, self.name = boundaries, values, name

    def __call__(self, step: Any) -> EagerTensor:
        """Return the learning rate of a step."""
        now = float(step)
        passed = sum(now > float(each) for each in self.boundaries)
        return to_tensor(self.values[passed])


class _Decay(LearningRateSchedule):
    """The base of schedules that start with a rate and have a number of steps."""

    initial_learning_rate: Any
    decay_steps: Any

    def _check(self, steps: Any) -> None:
        if steps <= 0:
            raise ValueError(f"Argument `decay_steps` must be > 0. Received: decay_steps={steps}")

    def _start(self) -> tuple[EagerTensor, DType]:
        first = to_tensor(self.initial_learning_rate)
        return first, first.dtype


class _DecayByRate(_Decay):
    """The base of schedules with a decay rate for each ``decay_steps`` steps.

    Args:
        initial_learning_rate: The first learning rate.
        decay_steps: The number of steps for one application of ``decay_rate``.
        decay_rate: The decay rate.
        staircase: Whether to round ``step / decay_steps`` down.
        name: The name.

    Raises:
        ValueError: ``decay_steps`` is not above 0.
    """

    _fields = ("initial_learning_rate", "decay_steps", "decay_rate", "staircase", "name")

    def __init__(
        self,
        initial_learning_rate: Any,
        decay_steps: Any,
        decay_rate: Any,
        staircase: bool = False,
        name: str | None = None,
    ) -> None:
        self._check(decay_steps)
        self.initial_learning_rate, self.decay_steps = initial_learning_rate, decay_steps
        self.decay_rate, self.staircase, self.name = decay_rate, staircase, name or type(self).__name__

    def __call__(self, step: Any) -> EagerTensor:
        """Return the learning rate of a step."""
        first, dtype = self._start()
        share = divide(cast(step, dtype), cast(self.decay_steps, dtype))
        return self._decay(first, cast(self.decay_rate, dtype), floor(share) if self.staircase else share)

    def _decay(self, first: EagerTensor, rate: EagerTensor, share: EagerTensor) -> EagerTensor:
        raise NotImplementedError


class ExponentialDecay(_DecayByRate):
    """``initial_learning_rate * decay_rate ** (step / decay_steps)``. As ``keras``'s class of this name."""

    def _decay(self, first: EagerTensor, rate: EagerTensor, share: EagerTensor) -> EagerTensor:
        return multiply(first, power_of(rate, share))


class InverseTimeDecay(_DecayByRate):
    """``initial_learning_rate / (1 + decay_rate * step / decay_steps)``. As ``keras``'s class of this name."""

    def _decay(self, first: EagerTensor, rate: EagerTensor, share: EagerTensor) -> EagerTensor:
        return divide(first, add(cast(1.0, rate.dtype), multiply(rate, share)))


class PolynomialDecay(_Decay):
    """A power of the fraction of steps left, scaled between two learning rates. As ``keras``'s class of this name.

    Args:
        initial_learning_rate: The first rate.
        decay_steps: The number of steps.
        end_learning_rate: The last rate.
        power: The exponent.
        cycle: Whether to start again after the last step with a longer period.
        name: The name.

    Raises:
        ValueError: ``decay_steps`` is not above 0.
    """

    _fields = ("initial_learning_rate", "decay_steps", "end_learning_rate", "power", "cycle", "name")

    def __init__(
        self,
        initial_learning_rate: Any,
        decay_steps: Any,
        end_learning_rate: Any = 0.0001,
        power: Any = 1.0,
        cycle: bool = False,
        name: str = "PolynomialDecay",
    ) -> None:
        self._check(decay_steps)
        self.initial_learning_rate, self.decay_steps = initial_learning_rate, decay_steps
        self.end_learning_rate, self.power, self.cycle, self.name = end_learning_rate, power, cycle, name

    def __call__(self, step: Any) -> EagerTensor:
        """Return the learning rate of a step."""
        first, dtype = self._start()
        last, now, steps = (
            cast(self.end_learning_rate, dtype),
            cast(step, dtype),
            cast(self.decay_steps, dtype),
        )
        if self.cycle:
            rounds = 1.0 if float(step) == 0 else ceil(divide(now, steps))
            steps = multiply(steps, cast(rounds, dtype))
        else:
            now = minimum(now, steps)
        left = subtract(cast(1.0, dtype), divide(now, steps))
        return add(multiply(subtract(first, last), power_of(left, cast(self.power, dtype))), last)


class CosineDecay(_Decay):
    """Half a period of a cosine from the first learning rate to a fraction of it. As ``keras``'s class of this name.

    Args:
        initial_learning_rate: The first rate.
        decay_steps: The number of steps after the warm-up.
        alpha: The fraction of the largest rate at the end.
        name: The name.
        warmup_target: The rate at the end of a linear warm-up; ``None`` for no warm-up.
        warmup_steps: The number of steps of the warm-up.

    Raises:
        ValueError: ``decay_steps`` is not above 0.
    """

    _fields = ("initial_learning_rate", "decay_steps", "alpha", "name", "warmup_target", "warmup_steps")

    def __init__(
        self,
        initial_learning_rate: Any,
        decay_steps: Any,
        alpha: Any = 0.0,
        name: str = "CosineDecay",
        warmup_target: Any = None,
        warmup_steps: Any = 0,
    ) -> None:
        self._check(decay_steps)
        self.initial_learning_rate, self.decay_steps, self.alpha = initial_learning_rate, decay_steps, alpha
        self.name, self.warmup_target, self.warmup_steps = name, warmup_target, warmup_steps

    def __call__(self, step: Any) -> EagerTensor:
        """Return the learning rate of a step."""
        first, dtype = self._start()
        now, steps = cast(step, dtype), cast(self.decay_steps, dtype)
        if self.warmup_target is None:
            return multiply(first, self._share(minimum(now, steps), steps, dtype))
        target, warmup = cast(self.warmup_target, dtype), cast(self.warmup_steps, dtype)
        if float(step) < float(self.warmup_steps):
            return add(multiply(subtract(target, first), divide(now, warmup)), first)
        return multiply(target, self._share(subtract(minimum(now, add(steps, warmup)), warmup), steps, dtype))

    def _share(self, now: EagerTensor, steps: EagerTensor, dtype: DType) -> EagerTensor:
        one, lowest = cast(1.0, dtype), cast(self.alpha, dtype)
        angle = multiply(cast(math.pi, dtype), divide(now, steps))
        wave = multiply(cast(0.5, dtype), add(one, cos(angle)))
        return add(multiply(subtract(one, lowest), wave), lowest)


__all__ = [
    "CosineDecay",
    "ExponentialDecay",
    "InverseTimeDecay",
    "LearningRateSchedule",
    "PiecewiseConstantDecay",
    "PolynomialDecay",
]

refuse_other_names(__name__)

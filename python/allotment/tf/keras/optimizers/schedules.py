"""Learning rates that depend on the number of steps. As ``keras.optimizers.schedules``."""

import math
from collections.abc import Sequence
from typing import Any, ClassVar

from allotment.tf.names.missing_names import module_getattr
from allotment.tf.ops.array.array import cast
from allotment.tf.ops.convert import to_tensor
from allotment.tf.ops.math.arithmetic import add, minimum, multiply, subtract
from allotment.tf.ops.math.arithmetic import pow as power_of
from allotment.tf.ops.math.division import divide
from allotment.tf.ops.math.real import ceil, cos, floor, log
from allotment.tf.tensors.dtype import DType
from allotment.tf.tensors.tensor import EagerTensor


class LearningRateSchedule:
    """A function of the number of steps made that gives a learning rate. As ``keras``'s class of this name.

    One of your own defines ``__call__(self, step)``.
    """

    #: The attributes that say what it is, which are arguments.
    _fields: ClassVar[tuple[str, ...]] = ()

    def __call__(self, step: Any) -> Any:
        """Return the learning rate of a step.

        Raises:
            NotImplementedError: The class does not say.
        """
        raise NotImplementedError(
            f"Learning rate schedule '{type(self).__name__}' must override `__call__(self, step)`."
        )

    def get_config(self) -> dict[str, Any]:
        """Return the arguments that make an equal one."""
        return {name: getattr(self, name) for name in self._fields}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "LearningRateSchedule":
        """Make one of arguments."""
        return cls(**config)


class PiecewiseConstantDecay(LearningRateSchedule):
    """One rate up to each of several numbers of steps, and one behind. As ``keras``'s class of this name.

    Args:
        boundaries: The numbers of steps up to which, inclusive, the next rate holds.
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
    """What rates that decay have in common: a first rate and a length."""

    initial_learning_rate: Any
    decay_steps: Any

    def _check(self, steps: Any, name: str = "decay_steps") -> None:
        if steps <= 0:
            raise ValueError(f"Argument `{name}` must be > 0. Received: {name}={steps}")

    def _start(self) -> tuple[EagerTensor, DType]:
        first = to_tensor(self.initial_learning_rate)
        return first, first.dtype


class ExponentialDecay(_Decay):
    """``initial_learning_rate * decay_rate ** (step / decay_steps)``. As ``keras``'s class of this name.

    Args:
        initial_learning_rate: The first rate.
        decay_steps: In how many steps the rate is multiplied by ``decay_rate``.
        decay_rate: That factor.
        staircase: Whether the exponent is rounded down.
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
        name: str = "ExponentialDecay",
    ) -> None:
        self._check(decay_steps)
        self.initial_learning_rate, self.decay_steps, self.decay_rate = (
            initial_learning_rate,
            decay_steps,
            decay_rate,
        )
        self.staircase, self.name = staircase, name

    def __call__(self, step: Any) -> EagerTensor:
        """Return the learning rate of a step."""
        first, dtype = self._start()
        exponent = divide(cast(step, dtype), cast(self.decay_steps, dtype))
        if self.staircase:
            exponent = floor(exponent)
        return multiply(first, power_of(cast(self.decay_rate, dtype), exponent))


class InverseTimeDecay(_Decay):
    """``initial_learning_rate / (1 + decay_rate * step / decay_steps)``. As ``keras``'s class of this name.

    Args:
        initial_learning_rate: The first rate.
        decay_steps: In how many steps the divisor grows by ``decay_rate``.
        decay_rate: That much.
        staircase: Whether ``step / decay_steps`` is rounded down.
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
        name: str = "InverseTimeDecay",
    ) -> None:
        self._check(decay_steps)
        self.initial_learning_rate, self.decay_steps, self.decay_rate = (
            initial_learning_rate,
            decay_steps,
            decay_rate,
        )
        self.staircase, self.name = staircase, name

    def __call__(self, step: Any) -> EagerTensor:
        """Return the learning rate of a step."""
        first, dtype = self._start()
        share = divide(cast(step, dtype), cast(self.decay_steps, dtype))
        if self.staircase:
            share = floor(share)
        return divide(first, add(cast(1.0, dtype), multiply(cast(self.decay_rate, dtype), share)))


class PolynomialDecay(_Decay):
    """From a first rate to a last one by a power of the steps that are left. As ``keras``'s class of this name.

    Args:
        initial_learning_rate: The first rate.
        decay_steps: How many steps it takes.
        end_learning_rate: The last rate.
        power: The exponent.
        cycle: Whether, behind the last step, it starts again over twice as many steps, and so on.
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
    """Half a period of a cosine from a first rate to a share of it. As ``keras``'s class of this name.

    Args:
        initial_learning_rate: The first rate.
        decay_steps: How many steps it takes, behind those of the warm-up.
        alpha: The share of the largest rate that is left in the end.
        name: The name.
        warmup_target: The rate to which the first one rises first, evenly; ``None`` for no warm-up.
        warmup_steps: How many steps that takes.

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
        return _cosine(divide(now, steps), self.alpha, dtype)


class CosineDecayRestarts(_Decay):
    """``CosineDecay`` again and again, each time longer and from a lower rate. As ``keras``'s class of this name.

    Args:
        initial_learning_rate: The first rate.
        first_decay_steps: How many steps the first time takes.
        t_mul: How much longer each further time is.
        m_mul: By what its first rate is multiplied.
        alpha: The share of the first rate that is left in the end.
        name: The name.

    Raises:
        ValueError: ``first_decay_steps`` is not above 0.
    """

    _fields = ("initial_learning_rate", "first_decay_steps", "t_mul", "m_mul", "alpha", "name")

    def __init__(
        self,
        initial_learning_rate: Any,
        first_decay_steps: Any,
        t_mul: Any = 2.0,
        m_mul: Any = 1.0,
        alpha: Any = 0.0,
        name: str = "SGDRDecay",
    ) -> None:
        self._check(first_decay_steps, "first_decay_steps")
        self.initial_learning_rate, self.first_decay_steps = initial_learning_rate, first_decay_steps
        self.t_mul, self.m_mul, self.alpha, self.name = t_mul, m_mul, alpha, name

    def __call__(self, step: Any) -> EagerTensor:
        """Return the learning rate of a step."""
        first, dtype = self._start()
        one, growth = cast(1.0, dtype), cast(self.t_mul, dtype)
        done = divide(cast(step, dtype), cast(self.first_decay_steps, dtype))
        if float(self.t_mul) == 1.0:
            times = floor(done)
            done = subtract(done, times)
        else:
            times = floor(divide(log(subtract(one, multiply(done, subtract(one, growth)))), log(growth)))
            before = divide(subtract(one, power_of(growth, times)), subtract(one, growth))
            done = divide(subtract(done, before), power_of(growth, times))
        factor = power_of(cast(self.m_mul, dtype), times)
        alpha = cast(self.alpha, dtype)
        wave = multiply(multiply(cast(0.5, dtype), factor), _raised_cosine(done, dtype))
        return multiply(first, add(multiply(subtract(one, alpha), wave), alpha))


def _raised_cosine(share: EagerTensor, dtype: DType) -> EagerTensor:
    return add(cast(1.0, dtype), cos(multiply(cast(math.pi, dtype), share)))


def _cosine(share: EagerTensor, alpha: Any, dtype: DType) -> EagerTensor:
    """From 1 to ``alpha`` by half a period of a cosine."""
    wave = multiply(cast(0.5, dtype), _raised_cosine(share, dtype))
    lowest = cast(alpha, dtype)
    return add(multiply(subtract(cast(1.0, dtype), lowest), wave), lowest)


__all__ = [
    "CosineDecay",
    "CosineDecayRestarts",
    "ExponentialDecay",
    "InverseTimeDecay",
    "LearningRateSchedule",
    "PiecewiseConstantDecay",
    "PolynomialDecay",
]

__getattr__ = module_getattr(__name__, __all__)

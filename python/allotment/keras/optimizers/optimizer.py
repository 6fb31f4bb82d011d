"""What all optimizers do: take gradients, make them one over all replicas, cut them, and change variables."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Final

from allotment import restoring
from allotment.devices.placement import device
from allotment.dtypes import float32, int64
from allotment.keras.absent import lacks, refuse_unless_none
from allotment.keras.engine.names import snake_case, unique_name
from allotment.keras.engine.replicas import (
    beside,
    level,
    number_of_replicas,
    once,
    replica,
    sum_over_replicas,
)
from allotment.keras.engine.warnings import warn
from allotment.keras.optimizers.learning_rate import LearningRate, rate_argument
from allotment.keras.optimizers.schedules import LearningRateSchedule
from allotment.ops.creation import constant
from allotment.ops.math import maximum, minimum
from allotment.ops.norms import clip_by_global_norm, clip_by_norm
from allotment.tensor import EagerTensor
from allotment.training.checkpoint_values import Number
from allotment.variable import Variable

#: What Keras' optimizers take and these do not.
_NOT_OFFERED: Final = (
    "weight_decay",
    "use_ema",
    "ema_momentum",
    "ema_overwrite_frequency",
    "loss_scale_factor",
    "gradient_accumulation_steps",
)


@lacks(
    "minimize",
    "get_config",
    "from_config",
    "stateless_apply",
    "save_own_variables",
    "load_own_variables",
    "get_weights",
    "set_weights",
)
class Optimizer:
    """Changes variables by gradients. As ``keras.optimizers.Optimizer``.

    Args:
        learning_rate: How far one step goes: a number, a ``schedules.LearningRateSchedule``, or a function without
            arguments that returns a number.
        name: The name, made from the class if not given.
        clipnorm: The largest norm of the gradient of one variable; it is shrunk to it.
        clipvalue: The largest absolute value of a gradient's element; it is cut there.
        global_clipnorm: The largest norm of all gradients together; they are shrunk to it.
        **kwargs: Decay of weights, averages of them, scaled losses and gradients over several steps are not offered.

    Raises:
        ValueError: Another keyword, or more than one way to cut gradients.
    """

    def __init__(
        self,
        learning_rate: Any,
        name: str | None = None,
        clipnorm: float | None = None,
        clipvalue: float | None = None,
        global_clipnorm: float | None = None,
        **kwargs: Any,
    ) -> None:
        given = {key: kwargs.pop(key) for key in _NOT_OFFERED if key in kwargs}
        # The default of Keras, which asks for nothing without `use_ema`.
        if given.get("ema_momentum") == 0.99:
            del given["ema_momentum"]
        refuse_unless_none(type(self).__name__, **given)
        if kwargs:
            raise ValueError(f"Argument(s) not recognized: {kwargs}")
        if sum(each is not None for each in (clipnorm, clipvalue, global_clipnorm)) > 1:
            raise ValueError(
                "Only one of `clipnorm`, `clipvalue` and `global_clipnorm` can be set. Received: "
                f"clipnorm={clipnorm}, clipvalue={clipvalue}, global_clipnorm={global_clipnorm}"
            )
        self.name = unique_name(snake_case(type(self).__name__)) if name is None else name
        self.clipnorm, self.clipvalue, self.global_clipnorm = clipnorm, clipvalue, global_clipnorm
        self.built = False
        self._rate = rate_argument(learning_rate)
        #: One number for all replicas, and for all models that it trains.
        self._step = 0
        #: Whether a replica could not finish a step, so that copies of variables may differ.
        self._is_torn = False
        #: What is kept for each variable, by the variable's identity: it is on that one's devices.
        self._kept: dict[int, tuple[Variable, ...]] = {}
        self._of: list[Variable] = []

    @property
    def learning_rate(self) -> Any:
        """How far one step goes; to be read as a number, set, or changed with ``assign``.

        With a schedule or a function, what that gives for the next step: it cannot be changed.
        """
        return self._rate_now() if callable(self._rate) else LearningRate(self)

    @learning_rate.setter
    def learning_rate(self, value: Any) -> None:
        if isinstance(self._rate, LearningRateSchedule):
            raise TypeError(
                "This optimizer was created with a `LearningRateSchedule` object as its `learning_rate` constructor "
                "argument, hence its learning rate is not settable. If you need the learning rate to be settable, "
                "you should instantiate the optimizer with a float `learning_rate` argument."
            )
        self._rate = rate_argument(value)

    def _rate_now(self) -> Any:
        """The learning rate of the next step, as a number or a tensor."""
        if not callable(self._rate):
            return self._rate
        if not isinstance(self._rate, LearningRateSchedule):
            return self._rate()
        with device("CPU:0"):
            return self._rate(self.iterations)

    lr = learning_rate

    @property
    def iterations(self) -> EagerTensor:
        """Number of steps made."""
        with device("CPU:0"):
            return constant(self._step, int64)

    @property
    def variables(self) -> list[Variable]:
        """What is kept for the variables that were trained."""
        return [each for kept in self._kept.values() for each in kept]

    def build(self, variables: Iterable[Variable]) -> None:
        """Make what is kept for variables. ``apply_gradients`` does it when it is first called."""
        for variable in variables:
            if id(variable) not in self._kept:
                self._kept[id(variable)] = self._make(variable)
                self._of.append(variable)
        self.built = True
        if restoring.waiting:
            restoring.variables_made()

    def _checkpoint_parts(self) -> Iterator[tuple[str, Any]]:
        yield "iterations", Number("iterations", int64, lambda: self._step, self._set_step)
        if not callable(self._rate):
            yield "learning_rate", Number("learning_rate", float32, lambda: self._rate, self._set_rate)
        for index, variable in enumerate(self._of):
            names = [name for name, _ in self._slots()]
            for name, kept in zip(names, self._kept[id(variable)], strict=True):
                yield f"_variables/{index}/{name}", kept

    def _set_step(self, value: Any) -> None:
        self._step = int(value)

    def _set_rate(self, value: Any) -> None:
        self._rate = rate_argument(value)

    def apply_gradients(self, grads_and_vars: Iterable[tuple[Any, Variable]]) -> EagerTensor:
        """Change variables by gradients; with several replicas by the sum over them. Returns the number of steps.

        Raises:
            ValueError: There is no gradient.
            RuntimeError: The variables have several copies, and no replica says which.
        """
        pairs = [(gradient, variable) for gradient, variable in grads_and_vars if gradient is not None]
        self._check(pairs, grads_and_vars)
        variables = [variable for _, variable in pairs]
        if replica() is None and any(len(getattr(each, "values", ())) > 1 for each in variables):
            raise RuntimeError(
                "apply_gradients() cannot be called in cross-replica context. Use `tf.distribute.Strategy.run` "
                "to enter replica context."
            )
        if any(id(variable) not in self._kept for variable in variables):
            once(lambda: self.build(variables))
        # Read before all replicas meet and set behind that, it is the same for all without another meeting.
        step, is_torn = self._step + 1, self._is_torn
        rate = float(self._rate_now())
        gradients = self._cut(sum_over_replicas([gradient for gradient, _ in pairs]))
        self._step = step
        if is_torn:
            once(lambda: self._mend(variables))
        try:
            self._change(list(zip(gradients, variables, strict=True)), rate, step)
        except BaseException:
            self._is_torn = True
            raise
        return self.iterations

    def _change(self, pairs: list[tuple[Any, Variable]], rate: float, step: int) -> None:
        """Let each replica change its own copies, all in the same way. Variables without copies change once for all."""
        several = replica() is not None and number_of_replicas() > 1
        alone = [pair for pair in pairs if several and not hasattr(pair[1], "distribute_strategy")]

        def change(chosen: list[tuple[Any, Variable]]) -> None:
            for gradient, variable in chosen:
                self.update_step(gradient, variable, rate, step)
                if variable.constraint is not None:
                    variable.assign(variable.constraint(variable))

        if not alone:
            change(pairs)
            return
        change([pair for pair in pairs if hasattr(pair[1], "distribute_strategy")])
        once(lambda: change(alone))

    def _mend(self, variables: Iterable[Variable]) -> None:
        level([*variables, *self.variables])
        self._is_torn = False

    def apply(
        self, grads: Sequence[Any], trainable_variables: Iterable[Variable] | None = None
    ) -> EagerTensor:
        """Change variables by their gradients; without variables, those of ``build``."""
        wanted = self._of if trainable_variables is None else list(trainable_variables)
        return self.apply_gradients(zip(grads, wanted, strict=True))

    def update_step(self, gradient: Any, variable: Variable, learning_rate: float, step: int) -> None:
        """Change one variable by its gradient, in the step of this number."""
        raise NotImplementedError(f"{type(self).__name__} does not say how it changes a variable")

    def _check(self, pairs: Sequence[Any], given: Any) -> None:
        if not pairs:
            raise ValueError("No gradients provided for any variable.")
        missing = (
            [pair[1].name for pair in given if pair[0] is None] if isinstance(given, list | tuple) else []
        )
        # Once for all replicas.
        if missing and not replica():
            warn(
                f"Gradients do not exist for variables {missing} when minimizing the loss. If using `model.compile()`, "
                "did you forget to provide a `loss` argument?",
            )

    def _slots(self) -> Sequence[tuple[str, float]]:
        """What is kept for each variable: a name and a first value each."""
        return ()

    def _make(self, variable: Variable) -> tuple[Variable, ...]:
        with beside(variable):
            return tuple(
                Variable(
                    partial(constant, start, variable.dtype, variable.shape),
                    trainable=False,
                    name=f"{self.name}/{variable.name.removesuffix(':0')}_{name}",
                )
                for name, start in self._slots()
            )

    def _cut(self, gradients: list[Any]) -> list[Any]:
        if self.global_clipnorm is not None:
            return list(clip_by_global_norm(gradients, self.global_clipnorm)[0])
        if self.clipnorm is not None:
            return [clip_by_norm(gradient, self.clipnorm) for gradient in gradients]
        if self.clipvalue is not None:
            limit = self.clipvalue
            return [minimum(maximum(gradient, -limit), limit) for gradient in gradients]
        return gradients

    def __repr__(self) -> str:
        return f"<{type(self).__name__} name={self.name}>"


__all__ = ["Optimizer"]

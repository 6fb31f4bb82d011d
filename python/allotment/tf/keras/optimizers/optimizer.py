"""The base class of optimizers: clips gradients, sums them over replicas, and updates variables.

Longer than 300 lines: the documentation of Keras' arguments and its error messages.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from allotment.devices.device_scope import device
from allotment.tf.keras.engine.arguments import refuse
from allotment.tf.keras.engine.names import snake_case, unique_name
from allotment.tf.keras.engine.replicas import (
    colocate_with,
    replica_index,
    run_once,
    sum_over_replicas,
    synchronize_copies,
)
from allotment.tf.keras.engine.warnings import warn
from allotment.tf.keras.optimizers.gradients import (
    clip_gradients,
    constrain,
    overwrite,
    update_copies,
    warn_of_missing_gradients,
)
from allotment.tf.keras.optimizers.learning_rate import LearningRate, first_rate, rate_argument, single
from allotment.tf.keras.optimizers.schedules import LearningRateSchedule
from allotment.tf.names.absent_methods import lacks
from allotment.tf.ops.array.array import cast
from allotment.tf.ops.array.constants import constant
from allotment.tf.ops.array.creation import zeros_like
from allotment.tf.ops.convert import tensor_or_slices
from allotment.tf.ops.math.arithmetic import add
from allotment.tf.ops.math.division import divide
from allotment.tf.ops.variables import updates
from allotment.tf.ops.variables.slice_updates import apply
from allotment.tf.tensors.dtype import float32, int64
from allotment.tf.tensors.tensor import EagerTensor
from allotment.tf.training.checkpoint_values import Number
from allotment.tf.variables import restoring
from allotment.tf.variables.variable import Variable


@lacks(
    "minimize",
    "get_config",
    "from_config",
    "stateless_apply",
    "save_own_variables",
    "load_own_variables",
    "get_weights",
    "set_weights",
    "scale_loss",
    "finalize_variable_values",
    "exclude_from_weight_decay",
)
class Optimizer:
    """Updates variables by gradients. As ``keras.optimizers.Optimizer``.

    Args:
        learning_rate: The learning rate: a float, a ``schedules.LearningRateSchedule``, or a function without
            arguments that returns a number.
        weight_decay: The factor, times the learning rate, by which each step shrinks variables.
        clipnorm: The largest norm of the gradient of one variable.
        clipvalue: The largest absolute value of an element of a gradient.
        global_clipnorm: The largest norm of all gradients together.
        gradient_accumulation_steps: The number of steps whose mean gradient updates the variables.
        name: The name, made from the class if not given.
        **kwargs: Not offered: averages of variables (``use_ema``) and ``loss_scale_factor``.

    Raises:
        ValueError: Another keyword, a value out of range, or more than one clip argument.
        NotImplementedError: An argument that is not offered.
    """

    def __init__(
        self,
        learning_rate: Any,
        weight_decay: float | None = None,
        clipnorm: float | None = None,
        clipvalue: float | None = None,
        global_clipnorm: float | None = None,
        gradient_accumulation_steps: int | None = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        refuse(self, kwargs, "use_ema", "ema_momentum", "ema_overwrite_frequency", "loss_scale_factor")
        if kwargs.pop("decay", None) is not None:
            warn(
                "An optimizer takes `decay` no more, and ignores it: pass a schedule of "
                "`keras.optimizers.schedules` as the learning rate."
            )
        if kwargs:
            raise ValueError(f"Argument(s) not recognized: {kwargs}")
        if gradient_accumulation_steps and not gradient_accumulation_steps >= 2:
            raise ValueError(
                "`gradient_accumulation_steps` must be an integer >= 2. Received: "
                f"gradient_accumulation_steps={gradient_accumulation_steps}"
            )
        if sum(each is not None for each in (clipnorm, clipvalue, global_clipnorm)) > 1:
            raise ValueError(
                "Only one of `clipnorm`, `clipvalue` and `global_clipnorm` can be set. Received: "
                f"clipnorm={clipnorm}, clipvalue={clipvalue}, global_clipnorm={global_clipnorm}"
            )
        self.name = unique_name(snake_case(type(self).__name__)) if name is None else name
        self.weight_decay = weight_decay
        self.clipnorm, self.clipvalue, self.global_clipnorm = clipnorm, clipvalue, global_clipnorm
        self.gradient_accumulation_steps = gradient_accumulation_steps
        self.built = False
        self._rate = first_rate(learning_rate)
        #: The number of steps, over all replicas and all models that it trains.
        self._step = 0
        #: Whether a replica failed in a step, so that copies of variables may differ.
        self._is_inconsistent = False
        #: The slot variables of each variable, by its identity, on the variable's devices.
        self._slots: dict[int, tuple[Variable, ...]] = {}
        #: The sums of gradients, in the same way.
        self._sums: dict[int, Variable] = {}
        #: The variables that it was built with.
        self._trained: list[Variable] = []

    @property
    def learning_rate(self) -> Any:
        """The learning rate, which can be read as a number, set, or changed with ``assign``.

        With a schedule or a function, its value for the next step, which cannot be set.
        """
        return self._rate_now() if callable(self._rate) else LearningRate(self)

    @learning_rate.setter
    def learning_rate(self, value: Any) -> None:
        if isinstance(self._rate, LearningRateSchedule) and not callable(value):
            raise TypeError(
                "This optimizer was created with a `LearningRateSchedule` object as its `learning_rate` constructor "
                "argument, hence its learning rate is not settable. If you need the learning rate to be settable, "
                "you should instantiate the optimizer with a float `learning_rate` argument."
            )
        self._rate = rate_argument(value)

    def _rate_now(self) -> Any:
        """Return the learning rate of the next step, as a number or a tensor."""
        if not callable(self._rate):
            return self._rate
        if not isinstance(self._rate, LearningRateSchedule):
            return self._rate()
        with device("CPU:0"):
            return self._rate(constant(self._step, int64))

    lr = learning_rate

    @property
    def iterations(self) -> EagerTensor:
        """The number of updates of the variables."""
        with device("CPU:0"):
            return constant(self._step // self._steps_per_update, int64)

    @property
    def _steps_per_update(self) -> int:
        return self.gradient_accumulation_steps or 1

    @property
    def variables(self) -> list[Variable]:
        """The slot variables."""
        kept = [each for kept in self._slots.values() for each in kept]
        return [*self._sums.values(), *kept]

    def build(self, variables: Iterable[Variable]) -> None:
        """Make slot variables. The first ``apply`` calls it; a second call does nothing."""
        if self.built:
            return
        self._trained = list(variables)
        for variable in self._trained:
            if self.gradient_accumulation_steps:
                self._sums[id(variable)] = self._slot(variable, "gradient_accumulator")
            self._slots[id(variable)] = tuple(
                self._slot(variable, name, start) for name, start in self._slot_specs()
            )
        self.built = True
        if restoring.pending:
            restoring.restore_pending()

    def _checkpoint_parts(self) -> Iterator[tuple[str, Any]]:
        yield "iterations", Number("iterations", int64, lambda: self._step, self._set_step)
        if not callable(self._rate):
            yield "learning_rate", Number("learning_rate", float32, lambda: self._rate, self._set_rate)
        for index, variable in enumerate(self._trained):
            names = [name for name, _ in self._slot_specs()]
            named = dict(zip(names, self._slots[id(variable)], strict=True))
            if id(variable) in self._sums:
                named["gradient_accumulator"] = self._sums[id(variable)]
            for name, storage in named.items():
                yield f"_variables/{index}/{name}", storage

    def _set_step(self, value: Any) -> None:
        self._step = int(value)

    def _set_rate(self, value: Any) -> None:
        self._rate = rate_argument(value)

    def apply_gradients(self, grads_and_vars: Iterable[tuple[Any, Variable]]) -> EagerTensor:
        """Update variables by gradients, summed over replicas; return the number of steps.

        Raises:
            ValueError: There is no gradient, or a variable that the optimizer was not built with.
            RuntimeError: The variables have several copies, and no replica runs.
        """
        pairs = list(grads_and_vars)
        if not pairs:
            raise ValueError("No gradients provided for any variable.")
        self.apply([gradient for gradient, _ in pairs], [variable for _, variable in pairs])
        with device("CPU:0"):
            return constant(self._step, int64)

    def apply(self, grads: Sequence[Any], trainable_variables: Iterable[Variable] | None = None) -> None:
        """Update variables, unless given those of ``build``, by their gradients. See ``apply_gradients``."""
        given = list(grads)
        if not given:
            return
        wanted = self._trained if trainable_variables is None else list(trainable_variables)
        if trainable_variables is None and (not self.built or len(given) != len(wanted)):
            raise ValueError(
                "Gradients without variables are those of the variables that the optimizer was built with: it has "
                f"{len(wanted)}, and there are {len(given)} gradients. Pass the variables, too, or call `build` first."
            )
        if replica_index() is None and any(len(getattr(each, "values", ())) > 1 for each in wanted):
            raise RuntimeError(
                "apply_gradients() cannot be called in cross-replica context. Use `tf.distribute.Strategy.run` "
                "to enter replica context."
            )
        if not self.built:
            run_once(lambda: self.build(wanted))
        unknown = [each for each in wanted if id(each) not in self._slots]
        if unknown:
            raise ValueError(
                f"Unknown variable: {unknown[0]}. This optimizer can only be called for the variables it was "
                "originally built with. When working with a new set of variables, you should recreate a new "
                "optimizer instance."
            )
        pairs = list(zip(given, wanted, strict=False))
        warn_of_missing_gradients(pairs)
        self._take_step([pair for pair in pairs if pair[0] is not None])

    def _take_step(self, pairs: list[tuple[Any, Variable]]) -> None:
        variables = [variable for _, variable in pairs]
        # Read before the replicas wait for each other and set afterwards, it is equal on all of them.
        step, is_inconsistent = self._step + 1, self._is_inconsistent
        found = self._rate_now()
        # A Python number of a function is rounded to single precision.
        rate = single(found) if type(found) is float else float(found)
        given = [cast(tensor_or_slices(gradient), variable.dtype) for gradient, variable in pairs]
        # As with Keras each replica clips its own gradients. What is accumulated are sums, which are clipped later.
        gradients = sum_over_replicas(given if self.gradient_accumulation_steps else self._clipped(given))
        self._step = step
        if is_inconsistent:
            run_once(lambda: self._synchronize(variables))
        try:
            self._change(list(zip(gradients, variables, strict=True)), rate)
        except BaseException:
            self._is_inconsistent = True
            raise

    def _change(self, pairs: list[tuple[Any, Variable]], rate: float) -> None:
        if self._step % self._steps_per_update:
            update_copies(pairs, self._accumulate)
        else:
            self._update(self._with_accumulated(pairs), rate)
        update_copies([pair for pair in pairs if pair[1].constraint is not None], constrain)

    def _update(self, pairs: list[tuple[Any, Variable]], rate: float) -> None:
        def update(gradient: Any, variable: Variable) -> None:
            if self.weight_decay is not None:
                updates.decay(variable, single(self.weight_decay), rate)
            self.update_step(gradient, variable, rate)

        update_copies(pairs, update)
        if self.gradient_accumulation_steps:
            update_copies(
                [(zeros_like(gradient), self._sums[id(variable)]) for gradient, variable in pairs], overwrite
            )

    def _clipped(self, gradients: list[Any]) -> list[Any]:
        return clip_gradients(gradients, self.clipnorm, self.global_clipnorm, self.clipvalue)

    def _accumulate(self, gradient: Any, variable: Variable) -> None:
        apply(updates.DESCENT, self._sums[id(variable)], gradient, (), -1.0)

    def _with_accumulated(self, pairs: list[tuple[Any, Variable]]) -> list[tuple[Any, Variable]]:
        """Return the clipped means of the gradients and those of the previous steps."""
        count = self.gradient_accumulation_steps
        if not count:
            return pairs
        means = [
            divide(add(gradient, self._sums[id(variable)].value()), float(count))
            for gradient, variable in pairs
        ]
        return [(each, variable) for each, (_, variable) in zip(self._clipped(means), pairs, strict=True)]

    def _synchronize(self, variables: Iterable[Variable]) -> None:
        synchronize_copies([*variables, *self.variables])
        self._is_inconsistent = False

    def update_step(self, gradient: Any, variable: Variable, learning_rate: float) -> None:
        """Update one variable by its gradient."""
        raise NotImplementedError(f"{type(self).__name__} does not implement update_step")

    def _slot_specs(self) -> Sequence[tuple[str, float]]:
        """Return the names and initial values of the slot variables of each variable."""
        return ()

    def _slot(self, variable: Variable, name: str, start: float = 0.0) -> Variable:
        with colocate_with(variable):
            return Variable(
                partial(constant, single(start), variable.dtype, variable.shape),
                trainable=False,
                name=f"{self.name}/{variable.name.removesuffix(':0')}_{name}",
            )

    def __repr__(self) -> str:
        return f"<{type(self).__name__} name={self.name}>"


__all__ = ["Optimizer"]

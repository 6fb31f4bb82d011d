"""The base of all optimizers: sum up gradients over replicas, limit them, and change variables."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from allotment.devices.placement import device
from allotment.tf.keras.absent import lacks
from allotment.tf.keras.engine.names import snake_case, unique_name
from allotment.tf.keras.engine.replicas import (
    beside,
    level,
    number_of_replicas,
    once,
    replica,
    sum_over_replicas,
)
from allotment.tf.keras.engine.warnings import warn
from allotment.tf.keras.optimizers.learning_rate import LearningRate, first_rate, rate_argument, single
from allotment.tf.keras.optimizers.schedules import LearningRateSchedule
from allotment.tf.ops.array.array import cast
from allotment.tf.ops.array.constants import constant
from allotment.tf.ops.array.creation import zeros_like
from allotment.tf.ops.convert import to_tensor
from allotment.tf.ops.math.arithmetic import add, clip_by_value, multiply
from allotment.tf.ops.math.division import divide
from allotment.tf.ops.reduction.norms import clip_by_global_norm, clip_by_norm
from allotment.tf.ops.variables import updates
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
)
class Optimizer:
    """Changes variables by gradients. As ``keras.optimizers.Optimizer``.

    Args:
        learning_rate: How far one step goes: a float, a ``schedules.LearningRateSchedule``, or a function without
            arguments that returns a number.
        weight_decay: The share of a variable, times the learning rate, that each step takes off it.
        clipnorm: The largest norm of the gradient of one variable; it is shrunk to it.
        clipvalue: The largest absolute value of a gradient's element; it is cut there.
        global_clipnorm: The largest norm of all gradients together; they are shrunk to it.
        use_ema: Whether averages of the variables over the steps are kept, which they get at the end of ``fit``.
        ema_momentum: The share of such an average that the next step keeps.
        ema_overwrite_frequency: After each so many steps, too, the variables get the averages.
        loss_scale_factor: A factor of the losses, by which the gradients are divided.
        gradient_accumulation_steps: Variables change by the mean of the gradients of so many steps.
        name: The name, made from the class if not given.
        **kwargs: No other.

    Raises:
        ValueError: Another keyword, a value out of range, or more than one limit of gradients.
    """

    def __init__(
        self,
        learning_rate: Any,
        weight_decay: float | None = None,
        clipnorm: float | None = None,
        clipvalue: float | None = None,
        global_clipnorm: float | None = None,
        use_ema: bool = False,
        ema_momentum: float = 0.99,
        ema_overwrite_frequency: int | None = None,
        loss_scale_factor: float | None = None,
        gradient_accumulation_steps: int | None = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        if kwargs:
            raise ValueError(f"Argument(s) not recognized: {kwargs}")
        _check_numbers(use_ema, ema_momentum, ema_overwrite_frequency, gradient_accumulation_steps)
        if sum(each is not None for each in (clipnorm, clipvalue, global_clipnorm)) > 1:
            raise ValueError(
                "Only one of `clipnorm`, `clipvalue` and `global_clipnorm` can be set. Received: "
                f"clipnorm={clipnorm}, clipvalue={clipvalue}, global_clipnorm={global_clipnorm}"
            )
        self.name = unique_name(snake_case(type(self).__name__)) if name is None else name
        self.weight_decay, self.loss_scale_factor = weight_decay, loss_scale_factor
        self.clipnorm, self.clipvalue, self.global_clipnorm = clipnorm, clipvalue, global_clipnorm
        self.use_ema, self.ema_momentum = use_ema, ema_momentum
        self.ema_overwrite_frequency = ema_overwrite_frequency
        self.gradient_accumulation_steps = gradient_accumulation_steps
        self.built = False
        self._rate = first_rate(learning_rate)
        #: The number of steps: one for all replicas, and for all models that it trains.
        self._step = 0
        #: Whether a replica could not finish a step, so that copies of variables may differ.
        self._is_torn = False
        #: The storages of a rule for each variable, by the variable's identity: on the variable's devices.
        self._kept: dict[int, tuple[Variable, ...]] = {}
        #: The averages and the sums of gradients, in the same way.
        self._averages: dict[int, Variable] = {}
        self._sums: dict[int, Variable] = {}
        self._of: list[Variable] = []
        self._undecayed: Callable[[Variable], bool] = lambda variable: False  # noqa: ARG005

    @property
    def learning_rate(self) -> Any:
        """How far one step goes; to be read as a number, set, or changed with ``assign``.

        With a schedule or a function, what that gives for the next step: it cannot be changed.
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
        """The learning rate of the next step, as a number or a tensor."""
        if not callable(self._rate):
            return self._rate
        if not isinstance(self._rate, LearningRateSchedule):
            return self._rate()
        with device("CPU:0"):
            return self._rate(constant(self._step, int64))

    lr = learning_rate

    @property
    def iterations(self) -> EagerTensor:
        """Number of changes of the variables made."""
        with device("CPU:0"):
            return constant(self._step // self._steps_to_a_change, int64)

    @property
    def _steps_to_a_change(self) -> int:
        return self.gradient_accumulation_steps or 1

    @property
    def variables(self) -> list[Variable]:
        """The storages for the variables that were trained."""
        kept = [each for kept in self._kept.values() for each in kept]
        return [*self._averages.values(), *self._sums.values(), *kept]

    def build(self, variables: Iterable[Variable]) -> None:
        """Make the storages for variables. The first ``apply`` does it; a second call changes nothing."""
        if self.built:
            return
        self._of = list(variables)
        for variable in self._of:
            if self.use_ema:
                self._averages[id(variable)] = self._storage(variable, "average")
            if self.gradient_accumulation_steps:
                self._sums[id(variable)] = self._storage(variable, "gradient_accumulator")
            self._kept[id(variable)] = tuple(
                self._storage(variable, name, start) for name, start in self._slots()
            )
        self.built = True
        if restoring.pending:
            restoring.restore_pending()

    def _checkpoint_parts(self) -> Iterator[tuple[str, Any]]:
        yield "iterations", Number("iterations", int64, lambda: self._step, self._set_step)
        if not callable(self._rate):
            yield "learning_rate", Number("learning_rate", float32, lambda: self._rate, self._set_rate)
        for index, variable in enumerate(self._of):
            names = [name for name, _ in self._slots()]
            named = dict(zip(names, self._kept[id(variable)], strict=True))
            for name, storages in (("average", self._averages), ("gradient_accumulator", self._sums)):
                if id(variable) in storages:
                    named[name] = storages[id(variable)]
            for name, storage in named.items():
                yield f"_variables/{index}/{name}", storage

    def _set_step(self, value: Any) -> None:
        self._step = int(value)

    def _set_rate(self, value: Any) -> None:
        self._rate = rate_argument(value)

    def apply_gradients(self, grads_and_vars: Iterable[tuple[Any, Variable]]) -> EagerTensor:
        """Change variables by gradients; with several replicas by the sum over them. Returns the number of steps.

        Raises:
            ValueError: There is no gradient, or a variable that the optimizer was not built with.
            RuntimeError: The variables have several copies, and no replica says which.
        """
        pairs = list(grads_and_vars)
        if not pairs:
            raise ValueError("No gradients provided for any variable.")
        self.apply([gradient for gradient, _ in pairs], [variable for _, variable in pairs])
        with device("CPU:0"):
            return constant(self._step, int64)

    def apply(self, grads: Sequence[Any], trainable_variables: Iterable[Variable] | None = None) -> None:
        """Change variables by their gradients; without variables, those of ``build``. As ``apply_gradients``."""
        given = list(grads)
        if not given:
            return
        wanted = self._of if trainable_variables is None else list(trainable_variables)
        if trainable_variables is None and (not self.built or len(given) != len(wanted)):
            raise ValueError(
                "Gradients without variables are those of the variables that the optimizer was built with: it has "
                f"{len(wanted)}, and there are {len(given)} gradients. Pass the variables, too, or call `build` first."
            )
        if replica() is None and any(len(getattr(each, "values", ())) > 1 for each in wanted):
            raise RuntimeError(
                "apply_gradients() cannot be called in cross-replica context. Use `tf.distribute.Strategy.run` "
                "to enter replica context."
            )
        if not self.built:
            once(lambda: self.build(wanted))
        unknown = [each for each in wanted if id(each) not in self._kept]
        if unknown:
            raise ValueError(
                f"Unknown variable: {unknown[0]}. This optimizer can only be called for the variables it was "
                "originally built with. When working with a new set of variables, you should recreate a new "
                "optimizer instance."
            )
        pairs = list(zip(given, wanted, strict=False))
        self._check(pairs)
        self._take_step([pair for pair in pairs if pair[0] is not None])

    def _take_step(self, pairs: list[tuple[Any, Variable]]) -> None:
        variables = [variable for _, variable in pairs]
        # Read before all replicas meet and set behind that, it is the same for all without another meeting.
        step, is_torn = self._step + 1, self._is_torn
        found = self._rate_now()
        # What a function gives may be a Python number, which is one of single precision.
        rate = single(found) if type(found) is float else float(found)
        gradients = sum_over_replicas([to_tensor(gradient) for gradient, _ in pairs])
        self._step = step
        if is_torn:
            once(lambda: self._mend(variables))
        try:
            self._change(list(zip(gradients, variables, strict=True)), rate)
        except BaseException:
            self._is_torn = True
            raise

    def _change(self, pairs: list[tuple[Any, Variable]], rate: float) -> None:
        if self.loss_scale_factor is not None:
            pairs = [(divide(gradient, self.loss_scale_factor), variable) for gradient, variable in pairs]
        pairs = [(cast(gradient, variable.dtype), variable) for gradient, variable in pairs]
        if self._step % self._steps_to_a_change:
            self._on_copies(pairs, self._accumulate)
        else:
            self._update(self._with_sums(pairs), rate)
        if self.use_ema:
            self._average()
        self._on_copies([pair for pair in pairs if pair[1].constraint is not None], _constrain)

    def _update(self, pairs: list[tuple[Any, Variable]], rate: float) -> None:
        gradients = self._cut([gradient for gradient, _ in pairs])

        def update(gradient: Any, variable: Variable) -> None:
            if self.weight_decay is not None and not self._undecayed(variable):
                updates.apply(updates.DECAY, variable, gradient, (), single(self.weight_decay), rate)
            self.update_step(gradient, variable, rate)

        self._on_copies(
            [(each, variable) for each, (_, variable) in zip(gradients, pairs, strict=True)], update
        )
        if self.gradient_accumulation_steps:
            self._on_copies(
                [(zeros_like(gradient), self._sums[id(variable)]) for gradient, variable in pairs], _overwrite
            )

    def _accumulate(self, gradient: Any, variable: Variable) -> None:
        updates.apply(updates.DESCENT, self._sums[id(variable)], gradient, (), -1.0)

    def _with_sums(self, pairs: list[tuple[Any, Variable]]) -> list[tuple[Any, Variable]]:
        """The means of the gradients and those of the steps before."""
        count = self.gradient_accumulation_steps
        if not count:
            return pairs
        return [
            (divide(add(gradient, self._sums[id(variable)].value()), float(count)), variable)
            for gradient, variable in pairs
        ]

    def _average(self) -> None:
        """Let the averages follow the variables, and give the variables the averages where that is wanted."""
        done = (self._step - 1) // self._steps_to_a_change
        momentum = self.ema_momentum if done else 0.0

        def follow(value: Any, average: Variable) -> None:
            updates.apply(updates.AVERAGE, average, value, (), momentum)

        averages = [(variable, self._averages[id(variable)]) for variable in self._of]
        self._on_copies([(variable.value(), average) for variable, average in averages], follow)
        if self.ema_overwrite_frequency and (done + 1) % self.ema_overwrite_frequency == 0:
            self._on_copies([(average.value(), variable) for variable, average in averages], _overwrite)

    def finalize_variable_values(self, var_list: Iterable[Variable]) -> None:
        """Give variables their averages, if there are any. ``fit`` does it at its end."""
        if self.use_ema:
            for variable in var_list:
                variable.assign(self._averages[id(variable)].value())

    def scale_loss(self, loss: Any) -> Any:
        """Multiply a loss by ``loss_scale_factor``: its gradients are divided by that."""
        return loss if self.loss_scale_factor is None else multiply(loss, self.loss_scale_factor)

    def exclude_from_weight_decay(
        self, var_list: Iterable[Variable] | None = None, var_names: Iterable[str] | None = None
    ) -> None:
        """Let variables have no weight decay: those of a list, and those with one of some texts in their names.

        Raises:
            ValueError: The optimizer is built.
        """
        if self.built:
            raise ValueError(
                "`exclude_from_weight_decay()` can only be configured before the optimizer is built."
            )
        these, texts = {id(variable) for variable in var_list or ()}, tuple(var_names or ())
        self._undecayed = lambda variable: (
            id(variable) in these or any(re.search(text, variable.name) for text in texts)
        )

    def _on_copies(self, pairs: list[tuple[Any, Variable]], change: Callable[[Any, Variable], None]) -> None:
        """Let each replica change its own copies, all in the same way. Variables without copies change once for all."""
        several = replica() is not None and number_of_replicas() > 1
        alone = [pair for pair in pairs if several and not hasattr(pair[1], "distribute_strategy")]
        _each([pair for pair in pairs if not several or hasattr(pair[1], "distribute_strategy")], change)
        if alone:
            once(lambda: _each(alone, change))

    def _mend(self, variables: Iterable[Variable]) -> None:
        level([*variables, *self.variables])
        self._is_torn = False

    def update_step(self, gradient: Any, variable: Variable, learning_rate: float) -> None:
        """Change one variable by its gradient."""
        raise NotImplementedError(f"{type(self).__name__} does not say how it changes a variable")

    def _check(self, pairs: Sequence[tuple[Any, Variable]]) -> None:
        missing = [variable.name for gradient, variable in pairs if gradient is None]
        if len(missing) == len(pairs):
            raise ValueError("No gradients provided for any variable.")
        # Once for all replicas.
        if missing and not replica():
            warn(
                f"Gradients do not exist for variables {missing} when minimizing the loss. If using `model.compile()`, "
                "did you forget to provide a `loss` argument?",
            )

    def _slots(self) -> Sequence[tuple[str, float]]:
        """The storages of the rule for each variable: a name and a first value each."""
        return ()

    def _storage(self, variable: Variable, name: str, start: float = 0.0) -> Variable:
        with beside(variable):
            return Variable(
                partial(constant, single(start), variable.dtype, variable.shape),
                trainable=False,
                name=f"{self.name}/{variable.name.removesuffix(':0')}_{name}",
            )

    def _cut(self, gradients: list[Any]) -> list[Any]:
        if self.clipnorm and self.clipnorm > 0:
            return [clip_by_norm(gradient, self.clipnorm) for gradient in gradients]
        if self.global_clipnorm and self.global_clipnorm > 0:
            return list(clip_by_global_norm(gradients, self.global_clipnorm)[0])
        if self.clipvalue and self.clipvalue > 0:
            return [clip_by_value(gradient, -self.clipvalue, self.clipvalue) for gradient in gradients]
        return gradients

    def __repr__(self) -> str:
        return f"<{type(self).__name__} name={self.name}>"


def _each(pairs: list[tuple[Any, Variable]], change: Callable[[Any, Variable], None]) -> None:
    for pair in pairs:
        change(*pair)


def _constrain(_: Any, variable: Variable) -> None:
    constraint = variable.constraint
    assert constraint is not None, "only variables with a constraint are projected"
    variable.assign(constraint(variable))


def _overwrite(value: Any, variable: Variable) -> None:
    updates.apply(updates.OVERWRITE, variable, value, ())


def _check_numbers(use_ema: bool, momentum: float, frequency: Any, steps: int | None) -> None:
    if steps and not steps >= 2:
        raise ValueError(
            f"`gradient_accumulation_steps` must be an integer >= 2. Received: gradient_accumulation_steps={steps}"
        )
    if use_ema and not 0 <= momentum <= 1:
        raise ValueError(f"`ema_momentum` must be in the range [0, 1]. Received: ema_momentum={momentum}")
    if use_ema and frequency and (not isinstance(frequency, int) or frequency < 1):
        raise ValueError(
            f"`ema_overwrite_frequency` must be an integer >= 1 or None. Received: ema_overwrite_frequency={frequency}"
        )


__all__ = ["Optimizer"]

"""``tf.Module``: base class of objects that collect the variables in their attributes."""

import re
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any

from allotment.tf.ops.name_scopes import name_scope
from allotment.tf.training.checkpoint_values import attributes
from allotment.tf.variables import restoring
from allotment.tf.variables.variable import Variable


class Module:
    """Base class of objects that collect the variables and modules in their attributes. As ``tf.Module``.

    The search includes lists, tuples and dictionaries. As with Keras 3, it does not include layers and models of Keras,
    nor their variables: ask those for them.

    Args:
        name: A Python identifier; by default the class's name in snake case.

    Raises:
        ValueError: The name is not an identifier.

    Example::

        class Linear(tf.Module):
            def __init__(self):
                super().__init__()
                self.w = tf.Variable([[1.0, 2.0]])

        Linear().trainable_variables  # a tuple with w
    """

    def __init__(self, name: str | None = None) -> None:
        if name is None:
            name = _snake_case(type(self).__name__)
        if not name.isidentifier():
            raise ValueError(
                f"{name!r} is not a valid module name. Module names must be valid Python identifiers."
            )
        self._name = name
        with name_scope(name) as scope:
            self._scope_name = scope

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if restoring.pending:
            restoring.restore_pending()

    def _checkpoint_parts(self) -> Iterator[tuple[str, Any]]:
        return attributes(self)

    @property
    def name(self) -> str:
        """The module's name."""
        return self._name

    @property
    def name_scope(self) -> name_scope:
        """The name scope of the module: its name inside of the scope in which it was made."""
        return name_scope(self._scope_name)

    @classmethod
    def with_name_scope(cls, method: Callable[..., Any]) -> Callable[..., Any]:
        """Decorate a method so that it runs in the module's ``name_scope``."""

        @wraps(method)
        def scoped(self: "Module", *args: Any, **kwargs: Any) -> Any:
            with self.name_scope:
                return method(self, *args, **kwargs)

        return scoped

    @property
    def variables(self) -> tuple[Any, ...]:
        """The variables of this module, then those of its submodules, each in the order of the attributes' names."""
        return tuple(_unique(_variables(self, set())))

    @property
    def trainable_variables(self) -> tuple[Any, ...]:
        """The variables whose ``trainable`` is true."""
        return tuple(each for each in self.variables if each.trainable)

    @property
    def non_trainable_variables(self) -> tuple[Any, ...]:
        """The variables whose ``trainable`` is false."""
        return tuple(each for each in self.variables if not each.trainable)

    @property
    def submodules(self) -> tuple["Module", ...]:
        """All modules inside this one, at any depth."""
        found = _unique(_modules(self, {id(self)}))
        return tuple(found)


def _attribute_values(owner: Any) -> Iterator[Any]:
    """Yield the values of an object's attributes, flattening lists, tuples and dictionaries."""
    for _, value in sorted(vars(owner).items()):
        yield from _leaves(value)


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, list | tuple):
        for each in value:
            yield from _leaves(each)
    elif isinstance(value, dict):
        for key in sorted(value, key=str):
            yield from _leaves(value[key])
    else:
        yield value


def _variables(owner: Any, seen: set[int]) -> Iterator[Any]:
    own: list[Any] = []
    inner: list[Any] = []
    seen.add(id(owner))
    for part in _attribute_values(owner):
        (own if _is_variable(part) else inner).append(part)
    # First the module's own variables, then those of its submodules, as TensorFlow orders them.
    yield from own
    for part in inner:
        if id(part) in seen:
            continue
        if isinstance(part, Module):
            yield from _variables(part, seen)


def _modules(owner: Module, seen: set[int]) -> Iterator[Module]:
    for part in _attribute_values(owner):
        if isinstance(part, Module) and id(part) not in seen:
            seen.add(id(part))
            yield part
            yield from _modules(part, seen)


def _is_variable(value: Any) -> bool:
    if isinstance(value, Variable):
        return not value._is_weight
    return hasattr(value, "_as_tensor") and hasattr(value, "trainable")


def _unique(values: Iterator[Any]) -> Iterator[Any]:
    seen: set[int] = set()
    for value in values:
        if id(value) not in seen:
            seen.add(id(value))
            yield value


def _snake_case(name: str) -> str:
    """Convert a class name to a module name by TensorFlow's rule: ``MyNet2D`` gives ``my_net2_d``."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=.)(?=[A-Z][a-z])", "_", name).lower()


__all__ = ["Module"]

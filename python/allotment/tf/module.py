"""``tf.Module``: an object that finds the variables of its parts."""

import re
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any

from allotment.tf.ops.name_scopes import name_scope
from allotment.tf.training.checkpoint_values import attributes
from allotment.tf.variables import restoring
from allotment.tf.variables.variable import Variable


class Module:
    """Something made of variables and other modules, which are its attributes. As ``tf.Module``.

    Lists, tuples and dictionaries of them count, too, and so do Keras' layers and models.

    Args:
        name: A Python identifier; made of the class's name unless given.

    Raises:
        ValueError: The name is none.
    """

    def __init__(self, name: str | None = None) -> None:
        if name is None:
            name = _snake_case(type(self).__name__)
        if not name.isidentifier():
            raise ValueError(
                f"{name!r} is not a valid module name. Module names must be valid Python identifiers."
            )
        self._name = name

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if restoring.waiting:
            restoring.variables_made()

    def _checkpoint_parts(self) -> Iterator[tuple[str, Any]]:
        return attributes(self)

    @property
    def name(self) -> str:
        """The name."""
        return self._name

    @property
    def name_scope(self) -> name_scope:
        """A scope of the module's name, for what it makes."""
        return name_scope(self._name)

    @classmethod
    def with_name_scope(cls, method: Callable[..., Any]) -> Callable[..., Any]:
        """Let a method run in the module's ``name_scope``: a decorator."""

        @wraps(method)
        def scoped(self: "Module", *args: Any, **kwargs: Any) -> Any:
            with self.name_scope:
                return method(self, *args, **kwargs)

        return scoped

    @property
    def variables(self) -> tuple[Any, ...]:
        """The variables of this module and of all in it, attribute by attribute in the order of their names."""
        return tuple(_once(_variables(self, set())))

    @property
    def trainable_variables(self) -> tuple[Any, ...]:
        """Those of ``variables`` that are trained."""
        return tuple(each for each in self.variables if each.trainable)

    @property
    def non_trainable_variables(self) -> tuple[Any, ...]:
        """Those of ``variables`` that are not."""
        return tuple(each for each in self.variables if not each.trainable)

    @property
    def submodules(self) -> tuple["Module", ...]:
        """All modules in this one, at any depth."""
        found = _once(_modules(self, {id(self)}))
        return tuple(found)


def _parts(owner: Any) -> Iterator[Any]:
    """What an object's attributes hold, through lists, tuples and dictionaries."""
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
    for part in _parts(owner):
        (own if _is_variable(part) else inner).append(part)
    # First the module's own, then those of its parts.
    yield from own
    for part in inner:
        if id(part) in seen:
            continue
        if isinstance(part, Module):
            yield from _variables(part, seen)
        elif _has_variables(part):
            seen.add(id(part))
            yield from part.variables


def _modules(owner: Module, seen: set[int]) -> Iterator[Module]:
    for part in _parts(owner):
        if isinstance(part, Module) and id(part) not in seen:
            seen.add(id(part))
            yield part
            yield from _modules(part, seen)


def _is_variable(value: Any) -> bool:
    return isinstance(value, Variable) or (hasattr(value, "_as_tensor") and hasattr(value, "trainable"))


def _has_variables(value: Any) -> bool:
    """Whether something is a layer or model, which are no modules here."""
    return not isinstance(value, type) and isinstance(getattr(value, "variables", None), list | tuple)


def _once(values: Iterator[Any]) -> Iterator[Any]:
    seen: set[int] = set()
    for value in values:
        if id(value) not in seen:
            seen.add(id(value))
            yield value


def _snake_case(name: str) -> str:
    """``MyNet2D`` as ``my_net2_d``, as TensorFlow names modules."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=.)(?=[A-Z][a-z])", "_", name).lower()


__all__ = ["Module"]

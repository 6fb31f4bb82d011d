"""Variable scopes of TensorFlow 1: prefixes of names, reuse, and defaults of ``get_variable``."""

import threading
from collections.abc import Callable
from contextlib import ExitStack
from enum import Enum
from types import TracebackType
from typing import Any, Final

from allotment.tf.dispatch import thread
from allotment.tf.graph.collections import GraphKeys
from allotment.tf.graph.default import get_default_graph
from allotment.tf.ops.name_scopes import get_current_name_scope, name_scope
from allotment.tf.tensors.dtype import DType, as_dtype, float32


class _ReuseMode(Enum):
    """A value of ``reuse`` other than true and false."""

    #: Make a variable, or return the existing one.
    AUTO_REUSE = 1


AUTO_REUSE: Final = _ReuseMode.AUTO_REUSE
#: The settings that an inner scope inherits from the outer one.
_INHERITED: Final = ("initializer", "regularizer", "caching_device", "dtype", "use_resource", "constraint")


class VariableScope:
    """A variable scope, as in ``with tf.variable_scope(...) as scope:``. It can be entered again."""

    #: Not offered.
    partitioner = custom_getter = None

    def __init__(
        self,
        reuse: Any,
        name: str = "",
        initializer: Any = None,
        regularizer: Callable[..., Any] | None = None,
        caching_device: Any = None,
        name_scope: str = "",
        dtype: Any = float32,
        use_resource: bool | None = None,
        constraint: Any = None,
    ) -> None:
        self._name = name
        self._reuse = reuse
        self._name_scope = name_scope
        self._dtype: DType = as_dtype(dtype)
        self.initializer = initializer
        self.regularizer = regularizer
        self.caching_device = caching_device
        self.use_resource = use_resource
        self.constraint = constraint

    @property
    def name(self) -> str:
        """The prefix of the names of its variables."""
        return self._name

    @property
    def original_name_scope(self) -> str:
        """The name scope that was entered with it at first, with a slash at its end."""
        return self._name_scope

    @property
    def reuse(self) -> Any:
        """Whether variables must exist already: true, false or ``AUTO_REUSE``."""
        return self._reuse

    @property
    def dtype(self) -> DType:
        """The default element type of variables."""
        return self._dtype

    def reuse_variables(self) -> None:
        """Reuse the variables of this scope from now on."""
        self._reuse = True

    def get_collection(self, name: Any) -> list[Any]:
        """Return the part of a collection that is in this scope."""
        return get_default_graph().get_collection(name, f"{self._name}/" if self._name else None)

    def trainable_variables(self) -> list[Any]:
        """Return its trainable variables."""
        return self.get_collection(GraphKeys.TRAINABLE_VARIABLES)

    def global_variables(self) -> list[Any]:
        """Return its variables."""
        return self.get_collection(GraphKeys.GLOBAL_VARIABLES)

    def local_variables(self) -> list[Any]:
        """Return its local variables."""
        return self.get_collection(GraphKeys.LOCAL_VARIABLES)


class Scopes(threading.local):
    """The variable scopes of a graph in one thread."""

    def __init__(self) -> None:
        self.current = VariableScope(reuse=False)
        #: How often each name was entered, to make names unique.
        self.entered: dict[str, int] = {}

    def unique(self, prefix: str) -> str:
        """Make a name unique by a number if it was entered before."""
        outer = self.current.name
        name, count = prefix, 0
        while self.entered.get(f"{outer}/{name}" if outer else name):
            count += 1
            name = f"{prefix}_{count}"
        return name

    def open(self, name: str) -> None:
        """Count a scope that is entered."""
        self.entered[name] = self.entered.get(name, 0) + 1

    def close(self, name: str) -> None:
        """Reset the counts of the scopes inside a scope that is left."""
        for inner in [each for each in self.entered if not name or each.startswith(f"{name}/")]:
            self.entered[inner] = 0


_KEY: Final = ("allotment", "variable scopes")


def scopes_of_graph() -> Scopes:
    """Return the variable scopes of the default graph."""
    kept = get_default_graph().get_collection_ref(_KEY)
    if not kept:
        kept.append(Scopes())
    return kept[0]  # type: ignore[no-any-return]


def get_variable_scope() -> VariableScope:
    """Return the innermost variable scope. As ``tf.compat.v1.get_variable_scope``."""
    return scopes_of_graph().current


class variable_scope:  # noqa: N801 - the name TensorFlow has
    """A variable scope, and a name scope with it. As ``tf.compat.v1.variable_scope``.

    Args:
        name_or_scope: A name, or a scope that is entered again.
        default_name: A name that is made unique, if ``name_or_scope`` is ``None``.
        values: Has no effect.
        initializer: The default initializer of variables inside.
        regularizer: The default regularizer: a function of a variable that returns a loss.
        caching_device: Has no effect.
        partitioner: Not offered.
        custom_getter: Not offered.
        reuse: ``True`` if variables must exist already, ``AUTO_REUSE`` if they may; ``None`` inherits.
        dtype: The default element type.
        use_resource: Whether variables are resource variables.
        constraint: The default constraint.
        auxiliary_name_scope: Whether to enter a name scope, too.

    Raises:
        TypeError: Neither a name nor a default name is given, or it is no string.
        ValueError: Another ``reuse``, or ``reuse`` together with a default name.
        NotImplementedError: A partitioner or a custom getter is given.
    """

    def __init__(
        self,
        name_or_scope: Any,
        default_name: str | None = None,
        values: Any = None,
        initializer: Any = None,
        regularizer: Any = None,
        caching_device: Any = None,
        partitioner: Any = None,
        custom_getter: Any = None,
        reuse: Any = None,
        dtype: Any = None,
        use_resource: bool | None = None,
        constraint: Any = None,
        auxiliary_name_scope: bool = True,
    ) -> None:
        del values
        refuse_partitioning(partitioner=partitioner, custom_getter=custom_getter)
        if name_or_scope is None and default_name is None:
            raise TypeError("If default_name is None then name_or_scope is required")
        if reuse not in (None, True, False, AUTO_REUSE):
            raise ValueError("The reuse parameter must be True or False or None.")
        if name_or_scope is None and reuse:
            raise ValueError("reuse=True cannot be used without a name_or_scope")
        if not isinstance(default_name if name_or_scope is None else name_or_scope, str | VariableScope):
            raise TypeError("VariableScope: name_or_scope must be a string or VariableScope.")
        if not isinstance(auxiliary_name_scope, bool):
            raise TypeError(
                f"The auxiliary_name_scope must be `True` or `False`, while get {auxiliary_name_scope}"
            )
        self._given = name_or_scope
        self._default = default_name
        self._reuse = reuse or None
        self._named = auxiliary_name_scope
        self._settings = {
            "initializer": initializer,
            "regularizer": regularizer,
            "caching_device": caching_device,
            "dtype": dtype,
            "use_resource": use_resource,
            "constraint": constraint,
        }
        self._exits: list[ExitStack] = []
        #: The graph of ``allotment.tf.v1``, which is the default only inside calls of that module.
        self._graph = thread.state.graph

    def __enter__(self) -> VariableScope:
        with ExitStack() as stack:
            scopes = scopes_of_graph()
            outer = scopes.current
            inner = self._inner(scopes, self._name_scope(stack))
            scopes.current = inner
            stack.callback(setattr, scopes, "current", outer)
            if isinstance(self._given, VariableScope):
                # Restore the counts of names that are entered inside.
                stack.callback(setattr, scopes, "entered", dict(scopes.entered))
            else:
                stack.callback(scopes.close, inner.name)
            scopes.open(inner.name)
            self._exits.append(stack.pop_all())
        return inner

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._exits.pop().close()

    def _name_scope(self, stack: ExitStack) -> str:
        """Enter the name scope and return its name."""
        if isinstance(self._given, VariableScope):
            name: Any = self._given.name.rpartition("/")[2]
        else:
            name = self._default if self._given is None else self._given
        graph = thread.state.graph or self._graph
        if self._named and name:
            entered: str = stack.enter_context(name_scope(name) if graph is None else graph.name_scope(name))
            return entered
        current = get_current_name_scope() if graph is None else graph._names.scope
        return f"{current}/" if current else ""

    def _inner(self, scopes: Scopes, entered: str) -> VariableScope:
        outer = scopes.current
        if isinstance(self._given, VariableScope):
            source, name, entered = self._given, self._given.name, self._given.original_name_scope
            reuse = self._reuse or source.reuse
        else:
            source = outer
            part: str = scopes.unique(self._default or "") if self._given is None else self._given
            name = f"{outer.name}/{part}" if outer.name and part else part or outer.name
            reuse = self._reuse or outer.reuse
        settings = {
            each: getattr(source, each) if self._settings[each] is None else self._settings[each]
            for each in _INHERITED
        }
        return VariableScope(reuse, name, name_scope=entered, **settings)


def refuse_partitioning(**given: Any) -> None:
    """Refuse partitioners and custom getters.

    Raises:
        NotImplementedError: One is given.
    """
    for name, value in given.items():
        if value is not None:
            raise NotImplementedError(
                f"{name}={value!r}: partitioned variables and custom getters are not offered. "
                "Leave the argument out."
            )


__all__ = [
    "AUTO_REUSE",
    "VariableScope",
    "get_variable_scope",
    "refuse_partitioning",
    "scopes_of_graph",
    "variable_scope",
]

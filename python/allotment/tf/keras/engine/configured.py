"""The configuration of layers and models of a program: the arguments that make an equal one."""

import inspect
from typing import Any, ClassVar

from allotment.tf.keras.engine.tracking import Tracker
from allotment.tf.keras.regularizers import Regularizer
from allotment.tf.names.absent_methods import lacks

#: Arguments of these types are part of a configuration that no ``get_config`` of the program makes.
_PLAIN = (str, int, float, bool, type(None))


def _is_plain(value: Any) -> bool:
    if isinstance(value, dict):
        return all(map(_is_plain, value.values()))
    if isinstance(value, list | tuple):
        return all(map(_is_plain, value))
    return isinstance(value, _PLAIN)


def _serialized(regularizer: Any) -> Any:
    """Return a regularizer as a configuration, which ``regularizers.get`` reads; other functions as they are."""
    if not isinstance(regularizer, Regularizer):
        return regularizer
    kind = type(regularizer)
    is_ours = kind.__module__.startswith("allotment.")
    return {
        "module": "keras.regularizers" if is_ours else kind.__module__,
        "class_name": kind.__name__,
        "config": regularizer.get_config(),
        "registered_name": None,
    }


class Configured:
    """The part of ``Layer`` with ``get_config`` and ``from_config``.

    The layers of the package have none: their configurations would need names for functions and initializers.
    """

    #: Whether the class has ``get_config``; not inherited by classes of the package.
    _has_config: ClassVar[bool] = True

    name: str
    dtype: str
    trainable: bool
    activity_regularizer: Any
    #: The arguments of the constructor, ``None`` if one is not plain.
    _plain_arguments: dict[str, Any] | None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if cls.__module__.startswith("allotment.") and "_has_config" not in vars(cls):
            lacks("get_config", "from_config")(cls)

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """Make an object, and keep its plain arguments."""
        made = object.__new__(cls)
        # Before the program's constructor, which may set attributes before it calls this package's.
        object.__setattr__(made, "_tracker", Tracker())
        try:
            given = inspect.signature(cls.__init__).bind(made, *args, **kwargs)
        except TypeError:
            # The constructor says what is wrong.
            made._plain_arguments = None
            return made
        given.apply_defaults()
        _, *names = given.arguments
        values = {name: given.arguments[name] for name in names}
        for parameter in given.signature.parameters.values():
            if parameter.kind is parameter.VAR_KEYWORD:
                values |= values.pop(parameter.name)
        made._plain_arguments = values if _is_plain(values) else None
        return made

    def get_config(self) -> dict[str, Any]:
        """Return the arguments of an equal layer: the name, ``trainable`` and the type.

        A subclass that does not override it adds the arguments of its constructor.

        Raises:
            NotImplementedError: It does not override it, and an argument is no number, text or truth value.
        """
        policy = {
            "module": "keras",
            "class_name": "DTypePolicy",
            "config": {"name": self.dtype},
            "registered_name": None,
        }
        config: dict[str, Any] = {"name": self.name, "trainable": self.trainable, "dtype": policy}
        if self.activity_regularizer is not None:
            config["activity_regularizer"] = _serialized(self.activity_regularizer)
        if type(self).get_config is not Configured.get_config:
            return config
        if self._plain_arguments is None:
            raise NotImplementedError(
                f"Object {type(self).__name__} was created by passing non-serializable argument values in "
                "`__init__()`, and therefore the object must override `get_config()` in order to be serializable."
            )
        specification = inspect.getfullargspec(type(self).__init__)
        if specification.varkw != "kwargs":
            config = {name: each for name, each in config.items() if name in specification.args}
        given = self._plain_arguments
        return {"name": config["name"], **given, **config} if "name" in config else {**given, **config}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Any:
        """Make a layer from a configuration.

        Raises:
            TypeError: The constructor does not take it.
        """
        try:
            return cls(**config)
        except Exception as error:
            error.__traceback__ = None
            raise TypeError(
                f"Error when deserializing class {cls.__name__!r} using config={config}.\n\nException encountered: "
                f"{error}"
            ) from error


__all__ = ["Configured"]

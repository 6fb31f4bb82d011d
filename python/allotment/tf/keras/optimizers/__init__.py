"""Optimizers. As ``keras.optimizers``."""

from collections.abc import Callable
from typing import Any, Final

from allotment.tf.keras.absent import not_interpreted
from allotment.tf.keras.optimizers import schedules
from allotment.tf.keras.optimizers.optimizer import Optimizer
from allotment.tf.keras.optimizers.rules import SGD, Adagrad, Adam, RMSprop
from allotment.tf.names.missing_names import refuse_other_names

_BY_NAME: Final[dict[str, Callable[..., Optimizer]]] = {
    "adagrad": Adagrad,
    "adam": Adam,
    "rmsprop": RMSprop,
    "sgd": SGD,
}


def get(identifier: Any) -> Any:
    """Return the optimizer of a name, or the object itself if it applies gradients. As ``keras.optimizers.get``.

    Raises:
        ValueError: Unknown.
    """
    if identifier is None:
        return None
    if isinstance(identifier, dict) and str(identifier.get("class_name")).lower() in _BY_NAME:
        return _BY_NAME[identifier["class_name"].lower()](**identifier.get("config", {}))
    if isinstance(identifier, str) and identifier.lower() in _BY_NAME:
        return _BY_NAME[identifier.lower()]()
    if hasattr(identifier, "apply_gradients") and not isinstance(identifier, type):
        return identifier
    raise not_interpreted("optimizer", identifier, _BY_NAME)


__all__ = ["SGD", "Adagrad", "Adam", "Optimizer", "RMSprop", "get", "schedules"]

refuse_other_names(__name__)

"""The state of Keras in a process. As ``keras.backend``."""

from allotment.tf.keras.engine.names import forget_names
from allotment.tf.names.missing_names import module_getattr


def clear_session() -> None:
    """Let layers and models that get no name be called as the first of their kind again."""
    forget_names()


__all__ = ["clear_session"]

__getattr__ = module_getattr(__name__, __all__)

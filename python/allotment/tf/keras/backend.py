"""The state of Keras in a process. As ``keras.backend``."""

from allotment.tf.keras.engine.names import forget_names
from allotment.tf.names.missing_names import refuse_other_names


def clear_session() -> None:
    """Let layers and models that get no name be called as the first of their kind again."""
    forget_names()


__all__ = ["clear_session"]

refuse_other_names(__name__)

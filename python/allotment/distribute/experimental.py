"""As ``tf.distribute.experimental``."""

from allotment.distribute.strategy import ValueContext

__all__ = ["ValueContext"]

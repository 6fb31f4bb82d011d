"""The kind of variables that graphs make by default: resources or reference variables."""

#: Whether variables are resources unless they say so.
_resources = True


def resources_by_default() -> bool:
    """Whether variables of graphs are resources unless they say so."""
    return _resources


def enable_resource_variables() -> None:
    """Make resource variables from now on. As ``tf.compat.v1.enable_resource_variables``."""
    global _resources
    _resources = True


def disable_resource_variables() -> None:
    """Make reference variables from now on, in graphs. As ``tf.compat.v1.disable_resource_variables``."""
    global _resources
    _resources = False


__all__ = ["disable_resource_variables", "enable_resource_variables", "resources_by_default"]

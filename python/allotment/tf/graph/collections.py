"""Collections of a graph: lists of objects under names, such as its variables."""

from typing import Any


class GraphKeys:
    """Names of collections. As ``tf.compat.v1.GraphKeys``."""

    GLOBAL_VARIABLES = "variables"
    LOCAL_VARIABLES = "local_variables"
    MODEL_VARIABLES = "model_variables"
    TRAINABLE_VARIABLES = "trainable_variables"
    GLOBAL_STEP = "global_step"
    INIT_OP = "init_op"
    LOSSES = "losses"
    REGULARIZATION_LOSSES = "regularization_losses"
    SUMMARIES = "summaries"
    UPDATE_OPS = "update_ops"


class Collections:
    """The part of a graph that keeps lists of objects under names."""

    def __init__(self) -> None:
        super().__init__()
        self._collections: dict[Any, list[Any]] = {}

    def add_to_collection(self, name: Any, value: Any) -> None:
        """Keep a value under a name."""
        self._collections.setdefault(name, []).append(value)

    def add_to_collections(self, names: Any, value: Any) -> None:
        """Keep a value under each of several names."""
        for name in [names] if isinstance(names, str) else dict.fromkeys(names):
            self.add_to_collection(name, value)

    def get_collection(self, name: Any, scope: str | None = None) -> list[Any]:
        """Return the values under a name; with ``scope`` those whose own name starts so."""
        values = self._collections.get(name, [])
        if scope is None:
            return list(values)
        return [value for value in values if str(getattr(value, "name", "")).startswith(scope)]

    def get_collection_ref(self, name: Any) -> list[Any]:
        """Return the list itself of the values under a name."""
        return self._collections.setdefault(name, [])

    def get_all_collection_keys(self) -> list[Any]:
        """Return the names that have values; those of this package's own are no texts."""
        return [name for name, values in self._collections.items() if values and isinstance(name, str)]

    def clear_collection(self, name: Any) -> None:
        """Forget the values under a name."""
        self._collections.pop(name, None)


__all__ = ["Collections", "GraphKeys"]

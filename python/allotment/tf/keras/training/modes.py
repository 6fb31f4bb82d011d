"""The check that models run eagerly."""

from allotment.tf.ops.array.array import executing_eagerly


def check_eager() -> None:
    """Check that operations run eagerly.

    Raises:
        NotImplementedError: A graph is the default.
    """
    if not executing_eagerly():
        raise NotImplementedError(
            "Keras is for eager programs: a graph does not record what models do. Call the model outside of `with "
            "graph.as_default():` and without `disable_eager_execution()`."
        )


__all__ = ["check_eager"]

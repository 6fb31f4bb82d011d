"""Where models can be trained and used."""

from allotment.tf.ops.array.array import executing_eagerly


def check_eager() -> None:
    """Check that operations run when they are called.

    Raises:
        NotImplementedError: They are recorded in a graph.
    """
    if not executing_eagerly():
        raise NotImplementedError(
            "Keras is for eager programs: a graph does not record what models do. Call the model outside of `with "
            "graph.as_default():` and without `disable_eager_execution()`."
        )


__all__ = ["check_eager"]

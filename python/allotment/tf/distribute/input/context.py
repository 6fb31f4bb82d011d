"""The argument of functions that make a data set for one process."""


class InputContext:
    """The part of the input that a data set is for. As ``tf.distribute.InputContext``.

    Args:
        num_input_pipelines: The number of data sets in all processes.
        input_pipeline_id: The number of this data set among them.
        num_replicas_in_sync: The number of replicas.
    """

    def __init__(
        self, num_input_pipelines: int = 1, input_pipeline_id: int = 0, num_replicas_in_sync: int = 1
    ) -> None:
        self._num_input_pipelines = num_input_pipelines
        self._input_pipeline_id = input_pipeline_id
        self._num_replicas_in_sync = num_replicas_in_sync

    @property
    def num_input_pipelines(self) -> int:
        """The number of data sets in all processes."""
        return self._num_input_pipelines

    @property
    def input_pipeline_id(self) -> int:
        """The number of this data set among them."""
        return self._input_pipeline_id

    @property
    def num_replicas_in_sync(self) -> int:
        """The number of replicas."""
        return self._num_replicas_in_sync

    def get_per_replica_batch_size(self, global_batch_size: int) -> int:
        """Return the batch size of each replica.

        Raises:
            ValueError: It does not divide evenly.
        """
        if global_batch_size % self._num_replicas_in_sync:
            raise ValueError(
                f"The `global_batch_size` {global_batch_size!r} is not divisible by `num_replicas_in_sync` "
                f"{self._num_replicas_in_sync!r} "
            )
        return global_batch_size // self._num_replicas_in_sync

    def __str__(self) -> str:
        return (
            f"tf.distribute.InputContext(input pipeline id {self._input_pipeline_id}, "
            f"total: {self._num_input_pipelines})"
        )


__all__ = ["InputContext"]

"""Data sets divided among replicas."""

from typing import Any

import numpy as np

import allotment.tf as tf
from allotment.testing import runtime
from support.tf.replicas import MIB, in_use, raised

D = tf.data.Dataset


def parts(strategy: Any, dataset: Any) -> list[Any]:
    """The values of each element, by replica."""
    return [
        [each.numpy().tolist() for each in strategy.experimental_local_results(element)]
        for element in strategy.experimental_distribute_dataset(dataset)
    ]


GPUS = "3:16MiB"


@runtime(GPUS)
def test_batches_are_cut_into_consecutive_parts() -> None:
    # What is expected here was observed on TensorFlow.
    two = tf.distribute.MirroredStrategy(["gpu:0", "gpu:1"])
    three = tf.distribute.MirroredStrategy(["gpu:0", "gpu:1", "gpu:2"])
    assert parts(two, D.range(8).batch(4)) == [[[0, 1], [2, 3]], [[4, 5], [6, 7]]]
    assert parts(two, D.range(7).batch(4)) == [[[0, 1], [2, 3]], [[4, 5], [6]]]
    assert parts(two, D.range(5).batch(4)) == [[[0, 1], [2, 3]], [[4], []]]
    assert parts(two, D.range(6).batch(4)) == [[[0, 1], [2, 3]], [[4], [5]]]
    assert parts(two, D.range(3).batch(3)) == [[[0, 1], [2]]]
    assert parts(two, D.range(7).batch(4, drop_remainder=True)) == [[[0, 1], [2, 3]]]
    assert parts(three, D.range(9).batch(7)) == [[[0, 1, 2], [3, 4, 5], [6]], [[7], [8], []]]
    assert parts(three, D.range(4).batch(4)) == [[[0, 1], [2, 3], []]]
    assert parts(two, D.range(4).batch(2).batch(2)) == [[[[0, 1]], [[2, 3]]]]


@runtime(GPUS)
def test_parts_are_on_their_devices_and_nowhere_else() -> None:
    two = tf.distribute.MirroredStrategy(["gpu:0", "gpu:1"])
    before = in_use()
    x, y = np.ones((512, 1024), np.float32), np.arange(512, dtype=np.int64)
    elements = two.experimental_distribute_dataset(D.from_tensor_slices({"x": x, "y": y}).batch(512))
    for element in elements:
        assert [each.device[-5:] for each in element["x"].values] == ["GPU:0", "GPU:1"]
        assert [each.backing_device[-5:] for each in element["y"].values] == ["GPU:0", "GPU:1"]
        assert [used - was for used, was in zip(in_use(), before, strict=False)] == [
            MIB + 2048,
            MIB + 2048,
            0,
        ]
    del element
    assert in_use() == before
    total = [two.run(lambda b: tf.reduce_sum(b["x"]), args=(element,)) for element in elements]
    assert two.reduce("SUM", total[0], axis=None).numpy() == 512 * 1024


@runtime(GPUS)
def test_what_can_be_iterated_over_is_input_too() -> None:
    two = tf.distribute.MirroredStrategy(["gpu:0", "gpu:1"])
    assert parts(two, [np.arange(3), tf.constant([1.0, 2.0])]) == [[[0, 1], [2]], [[1.0], [2.0]]]
    assert parts(two, (np.ones(2) for _ in range(2))) == [[[1.0], [1.0]]] * 2
    batch = (np.zeros((4, 2), np.float32), {"label": [1, 2, 3, 4]})
    (element,) = two.experimental_distribute_dataset([batch])
    assert element[0].values[1].shape == (2, 2)
    assert element[1]["label"].values[1].numpy().tolist() == [3, 4]
    batch[0][:] = 5  # a change of the array comes too late
    assert element[0].values[0].numpy().sum() == 0
    elements = two.experimental_distribute_dataset([np.arange(2)] * 2)
    assert len(list(elements)) == len(list(elements)) == 2
    iterator = iter(elements)
    assert [each.numpy().tolist() for each in iterator.get_next().values] == [[0], [1]]
    next(iterator)
    assert type(raised(iterator.get_next)) is tf.errors.OutOfRangeError
    assert next(iterator, None) is None


@runtime(GPUS)
def test_what_cannot_be_divided_is_refused() -> None:
    two = tf.distribute.MirroredStrategy(["gpu:0", "gpu:1"])
    for bad in (D.range(3), [3.0], [(np.ones(2), np.ones(3))]):
        error = raised(lambda: list(two.experimental_distribute_dataset(bad)))
        assert type(error) is ValueError
        assert "Dataset.batch makes batches" in str(error)
    error = raised(lambda: two.experimental_distribute_dataset(3))
    assert type(error) is TypeError
    assert "tf.data.Dataset" in str(error)
    assert type(raised(lambda: two.run(lambda: two.experimental_distribute_dataset([])))) is RuntimeError


@runtime(GPUS)
def test_a_function_makes_the_data_set_of_all_replicas() -> None:
    two = tf.distribute.MirroredStrategy(["gpu:0", "gpu:1"])
    told = []

    def make(c):
        told.append((str(c), c.num_input_pipelines, c.input_pipeline_id, c.num_replicas_in_sync))
        return D.range(5).batch(c.get_per_replica_batch_size(4))

    elements = two.distribute_datasets_from_function(make)
    found = [[each.numpy().tolist() for each in element.values] for element in elements]
    assert found == [[[0, 1], [2, 3]], [[4], []]]
    assert len(told) == 1
    assert told[0] == ("tf.distribute.InputContext(input pipeline id 0, total: 1)", 1, 0, 2)
    error = raised(lambda: two.distribute_datasets_from_function(lambda c: c.get_per_replica_batch_size(7)))
    assert type(error) is ValueError
    assert "is not divisible by `num_replicas_in_sync` 2" in str(error)
    assert type(raised(lambda: two.distribute_datasets_from_function(lambda c: None))) is TypeError


@runtime(GPUS)
def test_one_replica_gets_the_elements_themselves() -> None:
    for one in (tf.distribute.MirroredStrategy(["gpu:1"]), tf.distribute.OneDeviceStrategy("gpu:1")):
        elements = list(one.experimental_distribute_dataset(D.range(3)))
        assert [each.numpy() for each in elements] == [0, 1, 2]
        assert elements[0].backing_device.endswith("GPU:1")
        (batch,) = one.distribute_datasets_from_function(lambda c: [np.ones(3)])
        assert batch.shape == (3,)
    dataset = D.range(3)
    assert tf.distribute.get_strategy().experimental_distribute_dataset(dataset) is dataset

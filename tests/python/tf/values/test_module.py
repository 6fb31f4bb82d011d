"""``tf.Module``, and losses of a replica's samples."""

import pickle

import numpy as np
import pytest

import allotment.tf as tf
from support.devices import run_on_gpus


class Inner(tf.Module):
    def __init__(self) -> None:
        super().__init__("inner")
        self.v = tf.Variable(2.0, name="v")


class OuterNet(tf.Module):
    def __init__(self) -> None:
        super().__init__()
        self.w = tf.Variable(1.0, name="w")
        self.b = tf.Variable(0.0, name="b", trainable=False)
        self.parts = [{"one": Inner()}, tf.keras.layers.Dense(2, name="dense")]
        self.again = self.parts[0]
        self.parts[1].build((None, 3))  # type: ignore[attr-defined]


def test_a_module_finds_variables_in_the_order_of_names_and_each_once() -> None:
    net = OuterNet()
    assert net.name == "outer_net"
    names = [each.name.split("/")[-1] for each in net.variables]
    # Layers of Keras are no modules.
    assert names == ["b:0", "w:0", "v:0"]
    assert len(net.trainable_variables) == 2
    assert [each.name for each in net.non_trainable_variables] == ["b:0"]
    assert [each.name for each in net.submodules] == ["inner"]
    with pytest.raises(ValueError, match="'1st' is not a valid module name"):
        tf.Module("1st")


def test_an_average_is_over_the_samples_of_all_replicas() -> None:
    assert float(tf.nn.compute_average_loss([1.0, 2.0, 3.0])) == 2
    assert float(tf.nn.compute_average_loss([1.0, 2.0], [1.0, 0.0], global_batch_size=4)) == 0.25
    assert float(tf.nn.scale_regularization_loss([1.0, 2.0])) == 3
    with pytest.raises(ValueError, match="rank of at least 1"):
        tf.nn.compute_average_loss(1.0)
    # Weights stand for whole rows; whole numbers stay whole; no sample is no loss.
    assert float(tf.nn.compute_average_loss([[1.0, 2.0], [3.0, 4.0]], [1.0, 0.5])) == 3.25
    assert float(tf.nn.compute_average_loss([[1, 2], [3, 4]], [1.0, 0.5])) == 3
    assert float(tf.nn.compute_average_loss([1.0, 2.0], [[1.0], [0.5]])) == 1
    assert float(tf.nn.compute_average_loss([1.0, 2.0], global_batch_size=0)) == 0
    for bad, error in ((-1, ValueError), (1.5, TypeError)):
        with pytest.raises(error, match="global_batch_size"):
            tf.nn.compute_average_loss([1.0], global_batch_size=bad)
    done = run_on_gpus(
        "2:16MiB",
        """
        import allotment.tf as tf
        strategy = tf.distribute.MirroredStrategy()
        def step():
            index = tf.distribute.get_replica_context().replica_id_in_sync_group
            loss = tf.nn.compute_average_loss(tf.cast(index, tf.float32) + tf.constant([1.0, 3.0]))
            return loss + tf.nn.scale_regularization_loss(4.0)
        # (1 + 3 + 2 + 4) / 4, and 4.
        assert float(strategy.reduce("SUM", strategy.run(step), axis=None)) == 6.5
        with strategy.scope():
            try:
                tf.nn.scale_regularization_loss(1.0)
            except RuntimeError as error:
                assert "cross replica context" in str(error)
            else:
                raise AssertionError
        """,
    )
    assert done.returncode == 0, done.stderr


def test_the_error_of_a_function_in_a_data_set_is_its_own() -> None:
    def missing(x: tf.Tensor) -> tf.Tensor:
        return tf.no_such_operation(x)  # type: ignore[attr-defined, no-any-return]

    for ask in (repr, lambda data: data.element_spec, lambda data: list(data.batch(2))):
        with pytest.raises(AttributeError, match="no_such_operation"):
            ask(tf.data.Dataset.from_tensor_slices(np.arange(3)).map(missing))


def test_names_of_variables_begin_with_the_scopes_they_are_made_in() -> None:
    """The names are those of TensorFlow 2.21."""

    class Layer(tf.Module):
        @tf.Module.with_name_scope
        def __call__(self) -> str:
            return tf.Variable(1.0, name="w").name

    with tf.name_scope("a"):
        assert tf.Variable(1.0, name="w").name == "a/w:0"
        assert tf.Variable(1.0).name == "a/Variable:0"
        assert tf.compat.v1.get_variable("g", [1]).name == "g:0"
        with tf.compat.v1.variable_scope("s"):
            assert tf.compat.v1.get_variable("g", [1]).name == "s/g:0"
            assert tf.Variable(1.0, name="t").name == "a/s/t:0"
        inner = tf.Module(name="mod")
        assert Layer()() == "a/layer/w:0"
        copied = pickle.loads(pickle.dumps(tf.Variable(1.0, name="w")))
        assert copied.name == "a/w:0"
    assert inner.name_scope.name == "a/mod/"
    with inner.name_scope:
        assert tf.Variable(1.0, name="k").name == "a/mod/k:0"
    assert Layer(name="lay")() == "lay/w:0"

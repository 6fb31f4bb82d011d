"""A strategy with one copy of each variable, and names of the distribution guides. Values are TensorFlow's."""

import numpy as np

import allotment.tf as tf
from allotment.testing import runtime
from support.tf.replicas import own, raised, rid, run


@runtime("2:64MiB")
def test_variables_are_on_one_device_and_replicas_on_all() -> None:
    experimental = tf.distribute.experimental
    s = experimental.CentralStorageStrategy()
    assert [each[-5:] for each in s.extended.worker_devices] == ["GPU:0", "GPU:1"]
    assert [each[-5:] for each in s.extended.parameter_devices] == ["CPU:0"]
    with s.scope():
        plain = tf.Variable(3.0)
        summed = tf.Variable(3.0, aggregation=tf.VariableAggregation.SUM)
        mean = tf.Variable([3.0], aggregation=tf.VariableAggregation.MEAN)
        first = tf.Variable(3.0, aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA)
    assert plain.device.endswith("CPU:0")
    assert s.extended.variable_created_in_scope(plain)
    assert repr(plain) == "<tf.Variable 'Variable:0' shape=() dtype=float32, numpy=3.0>"

    def step():
        summed.assign_add(own())
        mean.assign([own()])
        mean[0].assign(mean[0] + own())
        first.assign_sub(own())
        return plain + own()

    assert [float(each) for each in s.run(step).values] == [4.0, 5.0]
    assert (summed.numpy(), mean.numpy().tolist(), first.numpy()) == (6.0, [3.0], 2.0)
    error = raised(lambda: s.run(lambda: plain.assign_add(own())))
    assert type(error) is ValueError
    assert "aggregation" in str(error)
    assert type(raised(lambda: s.run(lambda: summed.assign_add(1.0)))) is ValueError
    plain.assign(7.0)
    assert plain.numpy() == 7.0
    assert summed.numpy() == 6.0
    made = s.run(lambda: tf.Variable(own(), name="made"))
    assert made.name == "made:0"
    assert made.numpy() == 1.0
    one = experimental.CentralStorageStrategy(["gpu:1"], "gpu:0")
    assert one.num_replicas_in_sync == 1
    assert one.extended.parameter_devices[0].endswith("GPU:0")


@runtime("1:16MiB")
def test_one_gpu_holds_variables_too() -> None:
    s = tf.distribute.experimental.CentralStorageStrategy()
    assert [each[-5:] for each in (*s.extended.worker_devices, *s.extended.parameter_devices)] == [
        "GPU:0",
        "GPU:0",
    ]


@runtime("2:64MiB")
def test_training_gives_what_mirrored_variables_give() -> None:
    x, y = np.arange(16.0).reshape(8, 2), np.arange(8.0)[:, None]

    def trained(strategy):
        with strategy.scope():
            layers = [
                tf.keras.layers.Dense(3, kernel_initializer="ones"),
                tf.keras.layers.BatchNormalization(),
                tf.keras.layers.Dense(1, kernel_initializer="ones"),
            ]
            model = tf.keras.Sequential([tf.keras.Input((2,)), *layers])
            model.compile("adam", "mse", metrics=["mae"])
        history = model.fit(x, y, batch_size=4, epochs=2, shuffle=False, verbose=0).history
        return [
            *history["loss"],
            *history["mae"],
            *(each for v in model.variables for each in v.numpy().ravel()),
        ]

    central = trained(tf.distribute.experimental.CentralStorageStrategy())
    assert np.allclose(central, trained(tf.distribute.MirroredStrategy()), 1e-6)

    def descend(make):
        s = tf.distribute.experimental.CentralStorageStrategy()
        with s.scope():
            v, optimizer = tf.Variable(3.0), make(1.0)

        def step():
            with tf.GradientTape() as tape:
                loss = v * 2.0
            optimizer.apply_gradients([(tape.gradient(loss, v), v)])

        s.run(step)
        return v.numpy()

    assert descend(tf.keras.optimizers.SGD) == -1.0
    assert descend(tf.compat.v1.train.GradientDescentOptimizer) == -1.0


@runtime("2:64MiB")
def test_logical_devices_stand_for_their_names() -> None:
    devices = tf.config.list_logical_devices("GPU")
    names = tuple("/job:localhost/replica:0/task:0" + each.name for each in devices)
    assert tf.distribute.MirroredStrategy(devices).extended.worker_devices == names
    assert tf.distribute.MirroredStrategy([devices[1], "gpu:0"]).extended.worker_devices == names[::-1]
    assert tf.distribute.OneDeviceStrategy(devices[1]).extended.worker_devices == names[1:]
    s = tf.distribute.MirroredStrategy(devices)
    assert s.extended.reduce_to("SUM", s.run(own), devices[1]).device == names[1]


@runtime("2:64MiB")
def test_functions_return_the_values_of_replicas() -> None:
    s = tf.distribute.MirroredStrategy()
    batches = s.experimental_distribute_dataset(tf.data.Dataset.range(8).batch(4))
    spec = batches.element_spec
    part = tf.TensorSpec([None], tf.int64)
    assert repr(spec) == f"PerReplicaSpec({part!r}, {part!r})", spec

    @tf.function(input_signature=[spec])
    def double(values):
        return s.run(lambda x: {"twice": x * 2, "number": 2}, args=(values,))

    made = double(next(iter(batches)))
    assert [each.numpy().tolist() for each in made["twice"].values] == [[0, 2], [4, 6]]
    assert made["number"].numpy() == 2
    assert [each.dtype for each in tf.function(lambda: s.run(rid))().values] == [tf.int32] * 2
    wrong = tf.data.Dataset.range(8).map(lambda x: tf.cast(x, tf.float32)).batch(4)
    assert type(raised(lambda: double(next(iter(s.experimental_distribute_dataset(wrong)))))) is TypeError


@runtime("2:64MiB")
def test_what_is_known_of_distributed_data_sets() -> None:
    s = tf.distribute.MirroredStrategy()
    rows = tf.data.Dataset.from_tensors(([1.0], 2)).repeat(10)

    def specs(dataset):
        return [each._value_specs for each in s.experimental_distribute_dataset(dataset).element_spec]

    T = tf.TensorSpec
    assert specs(rows.batch(4)) == [(T([None, 1]), T([None, 1])), (T([None], tf.int32), T([None], tf.int32))]
    assert specs(rows.batch(4, drop_remainder=True)) == [
        (T([2, 1]), T([2, 1])),
        (T([2], tf.int32), T([2], tf.int32)),
    ]
    assert s.experimental_distribute_dataset(rows.batch(4)).cardinality.numpy() == 3
    own_batches = s.distribute_datasets_from_function(lambda context: rows.batch(4))
    assert own_batches.element_spec[0]._value_specs == (T([None, 1]), T([None, 1]))
    assert own_batches.cardinality.numpy() == 2
    one = tf.distribute.OneDeviceStrategy("gpu:0").experimental_distribute_dataset(rows.batch(4))
    assert one.element_spec == (T([None, 1]), T([None], tf.int32))
    iterator = iter(s.experimental_distribute_dataset(tf.data.Dataset.range(9).batch(8)))
    assert (
        iterator.element_spec
        == s.experimental_distribute_dataset(tf.data.Dataset.range(9).batch(8)).element_spec
    )
    first = iterator.get_next_as_optional()
    assert first.has_value()
    assert [each.numpy().tolist() for each in first.get_value().values] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert first.element_spec._value_specs == (T([4], tf.int64),) * 2
    assert iterator.get_next_as_optional().has_value()
    last = iterator.get_next_as_optional()
    assert not last.has_value()
    assert type(raised(last.get_value)) is tf.errors.InvalidArgumentError


@runtime("2:64MiB")
def test_augmented_assignment_gives_a_tensor() -> None:
    s = tf.distribute.MirroredStrategy()
    with s.scope():
        w = tf.Variable(2.0)
    kept = w
    w += 1.0  # type: ignore[assignment]
    assert tf.is_tensor(w)
    assert not isinstance(w, tf.Variable)
    assert float(w) == 3.0
    assert kept.numpy() == 2.0
    w = kept
    w -= 1.0
    assert float(w) == 1.0
    w = kept
    w *= 3.0
    assert float(w) == 6.0
    w = kept
    w /= 4.0
    assert float(w) == 0.5
    w = kept
    w **= 3.0
    assert float(w) == 8.0


def test_values_of_replicas_are_printed_as_python_does() -> None:
    printed = run("""
s = tf.distribute.MirroredStrategy()
values = s.run(own)
tf.print("a", values, 3, output_stream=sys.stdout)
tf.print({"k": values}, tf.constant(1), output_stream=sys.stdout)
""")
    parts = [f"  {number}: <tf.Tensor: shape=(), dtype=float32, numpy={number + 1}.0>" for number in range(2)]
    shown = "PerReplica:{\n" + ",\n".join(parts) + "\n}"
    assert printed == f"a {shown} 3\n{{'k': {shown}}} 1\n"

"""Optimizers of Keras and of TensorFlow 1 with gradients of lookups: the values of TensorFlow 2.21, step by step.

Keras updates by the rows as they are, so that a number that occurs twice counts differently from its sum. The
optimizers of TensorFlow 1 add such rows up first, and most of them change the named rows alone.

Longer than 300 lines: TensorFlow's values are half of it.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import allotment.tf as tf
from allotment.testing import runtime
from support.tf.replicas import ctx, rid

K, V1 = tf.keras.optimizers, tf.compat.v1.train
FIRST = np.arange(1, 9, dtype=np.float32).reshape(4, 2) / 4
#: The rows that each step looks up.
ROWS = [[0, 0, 2], [2, 1, 2], [0, 3, 3, 3], [1, 1]]
#: The same for each of two replicas.
REPLICA_ROWS = [[[0, 0, 2], [2, 1, 2]], [[0, 3, 3, 3], [1, 1]], [[0], [0, 1]], [[3], [2, 2]]]

#: An optimizer, and TensorFlow's table and vector after four steps.
ALONE: list[tuple[Callable[[], Any], Any, Any]] = [
    (
        lambda: K.SGD(0.5),
        [[-0.14864, 3.27361], [2.65321, 14.09416], [0.5508, 6.4153], [2.61781, 13.70611]],
        [-3.51752, -13.56302],
    ),
    (
        lambda: K.SGD(0.5, clipvalue=0.6),
        [[-0.19, 1.4], [0.43467, 1.9], [0.58, 2.4], [1.18429, 2.9]],
        [-0.2, -3.2],
    ),
    (
        lambda: K.SGD(0.5, clipnorm=1.0),
        [[0.1253, 0.95494], [0.66269, 1.91188], [0.97816, 2.39277], [1.62389, 2.81177]],
        [0.09411, -3.76894],
    ),
    (
        lambda: K.SGD(0.5, global_clipnorm=1.0),
        [[0.15621, 0.82248], [0.65621, 1.74083], [1.04217, 2.12163], [1.65798, 2.43217]],
        [0.34391, -3.18939],
    ),
    (
        lambda: K.SGD(0.5, momentum=0.9),
        [[-1.06317, 8.47575], [3.9356, 23.28229], [-1.09681, 15.91396], [5.55123, 28.54036]],
        [-9.03295, -28.54834],
    ),
    (
        lambda: K.SGD(0.5, momentum=0.9, nesterov=True),
        [[-1.08541, 14.26536], [10.56556, 65.93945], [0.42201, 23.89217], [9.5051, 71.06718]],
        [-11.90233, -50.9053],
    ),
    (
        lambda: K.Adam(0.5),
        [[-1.35834, 2.43709], [0.22633, 2.1026], [-0.43302, 3.3781], [0.79293, 2.97191]],
        [-0.83782, -3.95183],
    ),
    (
        lambda: K.Adam(0.5, global_clipnorm=1.0),
        [[-1.05693, 1.90998], [0.22463, 2.00779], [-0.34816, 3.20303], [1.16949, 2.58104]],
        [-0.88536, -3.99526],
    ),
    (
        lambda: K.Adam(0.5, weight_decay=0.1),
        [[-1.25001, 2.17642], [0.18137, 1.86792], [-0.5043, 2.94959], [2.35708, 2.57421]],
        [-0.88145, -3.4444],
    ),
    (
        lambda: K.Adam(0.5, gradient_accumulation_steps=2),
        [[-0.62328, 1.43585], [-0.2473, 1.96476], [0.41498, 2.33502], [1.37794, 2.37206]],
        [0.00038, -2.99532],
    ),
    (
        lambda: K.Adam(0.5, amsgrad=True),
        [[-1.35742, 2.43668], [0.22647, 2.10246], [-0.43252, 3.37752], [0.79315, 2.97169]],
        [-0.83772, -3.95183],
    ),
    (
        lambda: K.RMSprop(0.5),
        [[-1.40091, 3.72078], [4.15265, 4.55856], [0.62461, 4.8432], [4.35707, 4.64479]],
        [-2.98374, -6.97093],
    ),
    (
        lambda: K.RMSprop(0.5, clipnorm=1.0),
        [[-1.58246, 3.16415], [4.10924, 4.44652], [0.29663, 4.58509], [4.35695, 4.64478]],
        [-2.70796, -6.5515],
    ),
    (
        lambda: K.RMSprop(0.5, centered=True),
        [[-1.56955, 4.12842], [4.41179, 4.92632], [0.63516, 5.19385], [4.80526, 5.11647]],
        [-3.22768, -7.53692],
    ),
    (
        lambda: K.RMSprop(0.5, momentum=0.9),
        [[-4.87337, 10.10073], [6.87566, 7.32061], [-1.59746, 11.71273], [6.70343, 7.02509]],
        [-8.5799, -14.70481],
    ),
    (
        lambda: K.RMSprop(0.5, momentum=0.9, centered=True),
        [[-5.40884, 11.21727], [7.26493, 7.81033], [-1.63123, 12.72533], [7.555, 7.92129]],
        [-8.99447, -15.9368],
    ),
    (
        lambda: K.Adagrad(0.5),
        [[-0.33803, 1.38716], [0.67905, 2.09169], [0.50984, 2.49216], [1.18843, 2.83516]],
        [-0.31869, -3.47907],
    ),
    (
        lambda: K.Adagrad(0.5, clipvalue=0.6),
        [[-0.34763, 1.43876], [0.41855, 1.99467], [0.41774, 2.49467], [1.11071, 2.82852]],
        [-0.24204, -3.29154],
    ),
    (
        lambda: V1.GradientDescentOptimizer(0.5),
        [[-0.14864, 3.27361], [2.65321, 14.09416], [0.5508, 6.4153], [2.61781, 13.70611]],
        [-3.51752, -13.56302],
    ),
    (
        lambda: V1.MomentumOptimizer(0.5, 0.9),
        [[-0.48254, 4.82736], [3.9939, 21.63249], [-0.0072, 7.7653], [3.75065, 15.96861]],
        [-9.13419, -26.4341],
    ),
    (
        lambda: V1.MomentumOptimizer(0.5, 0.9, use_nesterov=True),
        [[-0.61215, 9.919], [10.4694, 63.35096], [0.51509, 14.54263], [7.18715, 50.42348]],
        [-11.76084, -46.41735],
    ),
    (
        lambda: V1.AdagradOptimizer(0.5),
        [[-0.24047, 1.17839], [0.66494, 1.96795], [0.51748, 2.42289], [1.33113, 2.49975]],
        [-0.3189, -3.47853],
    ),
    (
        lambda: V1.AdamOptimizer(0.5),
        [[-1.05637, 1.98858], [0.21237, 2.00942], [-0.39677, 3.18441], [1.16899, 2.58104]],
        [-0.83661, -3.95351],
    ),
    (
        lambda: V1.RMSPropOptimizer(0.5),
        [[-0.16592, 2.22397], [1.64563, 3.62403], [0.50377, 3.93779], [2.36615, 3.55049]],
        [-1.9799, -6.26303],
    ),
    (
        lambda: V1.RMSPropOptimizer(0.5, momentum=0.5, centered=True),
        [[-0.35375, 2.93541], [1.92362, 4.38525], [0.20157, 4.65183], [2.78817, 3.63987]],
        [-4.08237, -9.42587],
    ),
]
WITH_REPLICAS: list[tuple[Callable[[], Any], Any, Any]] = [
    (
        lambda: K.SGD(0.5),
        [[0.6482, 15.06142], [3.0672, 16.27564], [2.63729, 26.66379], [3.67977, 26.47809]],
        [-4.57416, -34.05118],
    ),
    (
        lambda: K.SGD(0.5, clipvalue=0.6),
        [[-0.153, 2.0], [0.29533, 2.2], [0.70953, 3.0], [1.20947, 3.2]],
        [-0.67032, -4.4],
    ),
    (
        lambda: K.SGD(0.5, weight_decay=0.1),
        [[0.59469, 13.43732], [2.7641, 14.43973], [2.37717, 24.32402], [3.23817, 23.95307]],
        [-3.97389, -30.36901],
    ),
    (
        lambda: K.Adam(0.5),
        [[-1.46818, 2.75142], [-1.02297, 3.07707], [-0.65361, 3.75166], [0.2991, 3.58627]],
        [-0.62705, -3.97804],
    ),
    (
        lambda: K.Adam(0.5, clipnorm=1.0),
        [[-1.44813, 2.72912], [-1.02664, 3.09038], [-0.68614, 3.75031], [0.29557, 3.58629]],
        [-0.56307, -4.00465],
    ),
    (
        lambda: K.Adam(0.5, gradient_accumulation_steps=2),
        [[-0.64523, 1.49625], [-0.17006, 1.97898], [0.33836, 2.4925], [0.90204, 2.97337]],
        [0.11796, -2.99278],
    ),
    (
        lambda: K.RMSprop(0.5),
        [[-0.17978, 5.47595], [1.83357, 5.80511], [0.24489, 5.96228], [4.88977, 5.9341]],
        [-1.41194, -7.12807],
    ),
    (
        lambda: K.Adagrad(0.5),
        [[-0.40473, 1.9448], [-0.09989, 2.4298], [0.45941, 2.79328], [0.9628, 3.17469]],
        [0.06115, -3.40895],
    ),
    (
        lambda: K.Adagrad(0.5, global_clipnorm=1.0),
        [[-0.03151, 1.45262], [0.32961, 2.08948], [0.80182, 2.29258], [1.52473, 2.79667]],
        [0.09221, -3.33554],
    ),
    (
        lambda: V1.GradientDescentOptimizer(0.5),
        [[0.6482, 15.06142], [3.0672, 16.27564], [2.63729, 26.66379], [3.67977, 26.47809]],
        [-4.57416, -34.05118],
    ),
    (
        lambda: V1.MomentumOptimizer(0.5, 0.9),
        [[0.3278, 21.77612], [4.0446, 25.50402], [5.03996, 43.87861], [5.59879, 44.68858]],
        [-14.22229, -64.50522],
    ),
    (
        lambda: V1.AdamOptimizer(0.5),
        [[-1.1483, 2.22364], [-0.94687, 2.83782], [-0.00431, 2.95122], [0.86983, 3.01276]],
        [-0.67289, -3.97024],
    ),
    (
        lambda: V1.RMSPropOptimizer(0.5),
        [[0.13509, 3.57505], [1.33728, 4.37949], [0.93015, 4.31527], [2.31976, 4.48122]],
        [-1.74124, -6.69616],
    ),
]


def step(optimizer: Any, table: Any, vector: Any, rows: list[int]) -> None:
    weights = tf.constant(np.linspace(0.2, 1.5, len(rows) * 2).reshape(-1, 2).astype(np.float32))
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.gather(table, rows) * vector * weights)
    optimizer.apply_gradients(zip(tape.gradient(loss, [table, vector]), [table, vector], strict=True))


@pytest.mark.parametrize(("make", "table", "vector"), ALONE)
def test_steps_are_those_of_tensorflow(make: Callable[[], Any], table: Any, vector: Any) -> None:
    optimizer, one, other = make(), tf.Variable(FIRST), tf.Variable([1.0, -2.0])
    for rows in ROWS:
        step(optimizer, one, other, rows)
    np.testing.assert_allclose(one.numpy(), table, rtol=2e-5, atol=2e-5)
    np.testing.assert_allclose(other.numpy(), vector, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize(("make", "table", "vector"), WITH_REPLICAS)
def test_steps_of_two_replicas_are_those_of_tensorflow(
    make: Callable[[], Any], table: Any, vector: Any
) -> None:
    with runtime("2:16MiB"):
        strategy = tf.distribute.MirroredStrategy()
        with strategy.scope():
            optimizer: Any = make()
            one: Any = tf.Variable(FIRST)
            other: Any = tf.Variable([1.0, -2.0])
        for rows in REPLICA_ROWS:
            strategy.run(lambda rows=rows: step(optimizer, one, other, rows[rid()]))
        for copy in one.values:
            np.testing.assert_allclose(copy.numpy(), table, rtol=2e-5, atol=2e-5)
        np.testing.assert_allclose(other.values[0].numpy(), vector, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize(
    ("optimizer", "first"),
    [
        (K.Adam(1.0), -0.4142136),
        (K.Adagrad(1.0), -0.3801),
        (K.RMSprop(1.0), -3.47214),
        (K.SGD(1.0, clipvalue=1.0), -1.0),
        (K.SGD(1.0), -1.0),
    ],
)
def test_a_row_that_is_looked_up_twice(optimizer: Any, first: float) -> None:
    table = tf.Variable([[1.0], [1.0]])
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.gather(table, [0, 0]))
    optimizer.apply_gradients([(tape.gradient(loss, table), table)])
    assert table.numpy().tolist() == [[pytest.approx(first, abs=2e-4)], [1.0]]


def test_a_model_with_an_embedding_of_padded_rows_trains_as_in_tensorflow() -> None:
    k = tf.keras
    ones: dict[str, Any] = {"embeddings_initializer": "ones"}
    model = k.Sequential(
        [
            k.Input((4,)),
            k.layers.Embedding(5, 2, **ones),
            k.layers.Flatten(),
            k.layers.Dense(1, kernel_initializer="ones"),
        ]
    )
    model.compile(k.optimizers.Adam(0.1), "mse")
    x = np.array([[1, 2, 0, 0], [3, 1, 1, 0], [4, 4, 2, 0]])
    y = np.array([[1.0], [2.0], [3.0]])
    losses = model.fit(x, y, epochs=10, batch_size=2, shuffle=False, verbose=0).history["loss"]
    expected = [32.675, 6.4361, 0.7853, 1.4597, 2.9228, 3.7695, 3.9001, 3.4931, 2.7536, 1.8813]
    np.testing.assert_allclose(losses, expected, rtol=2e-4)


def test_a_divisor_of_zero_makes_no_numbers_of_rows_that_were_not_looked_up() -> None:
    table = tf.Variable([[1.0], [1.0]])
    slices = tf.IndexedSlices(tf.constant([[1.0]]), tf.constant([1]), tf.constant([2, 1]))
    K.RMSprop(1.0, epsilon=0.0).apply_gradients([(slices, table)])
    np.testing.assert_allclose(table.numpy(), [[np.nan], [1 - 10**0.5]], rtol=1e-6)


@pytest.mark.parametrize(
    "make", [lambda: K.SGD(0.1), lambda: K.Adam(0.1), lambda: K.RMSprop(0.1), lambda: K.Adagrad(0.1)]
)
def test_rows_that_do_not_fit_change_nothing(make: Callable[[], Any]) -> None:
    table, optimizer = tf.Variable(FIRST), make()
    for values, numbers, text in (
        (tf.ones([1, 2]), [4], r"indices\[0\] = 4 is not in \[0, 4\)"),
        (tf.ones([1, 3]), [0], "Must have updates.shape"),
    ):
        slices = tf.IndexedSlices(values, tf.constant(numbers), tf.constant([4, 2]))
        with pytest.raises(tf.errors.InvalidArgumentError, match=text):
            optimizer.apply_gradients([(slices, table)])
    assert table.numpy().tolist() == FIRST.tolist()


def test_what_optimizers_of_tensorflow_1_refuse() -> None:
    table = tf.Variable(FIRST, constraint=tf.nn.relu)
    slices = tf.IndexedSlices(tf.ones([1, 2]), tf.constant([1]), tf.constant([4, 2]))
    with pytest.raises(RuntimeError, match="Cannot use a constraint function on a sparse variable"):
        V1.MomentumOptimizer(0.1, 0.9).apply_gradients([(slices, table)])
    with runtime("2:16MiB"):
        with tf.distribute.MirroredStrategy().scope():
            mirrored: Any = tf.Variable(FIRST)
        with pytest.raises(RuntimeError, match=r"Use `Strategy\.run` to apply gradients of lookups"):
            V1.MomentumOptimizer(0.1, 0.9).apply_gradients([(slices, mirrored)])
        assert [each.numpy().tolist() for each in mirrored.values] == [FIRST.tolist()] * 2


def test_all_reduce_joins_the_rows_of_replicas() -> None:
    with runtime("2:16MiB"):
        strategy = tf.distribute.MirroredStrategy()

        def reduced(op: str) -> Any:
            own = rid()
            slices = tf.IndexedSlices(
                tf.constant([[1.0 + own], [2.0]]), tf.constant([0, own]), tf.constant([3, 1])
            )
            context = ctx()
            found, total = context.all_reduce(op, [slices, tf.constant(1.0 + own)])
            return found.values, found.indices, found.dense_shape, total

        for op, values, total in (("SUM", [1, 2, 2, 2], 3), ("MEAN", [0.5, 1, 1, 1], 1.5)):
            for made in zip(*(each.values for each in strategy.run(reduced, (op,))), strict=True):
                rows, numbers, shape, other = (each.numpy() for each in made)
                assert rows[:, 0].tolist() == values
                assert (numbers.tolist(), shape.tolist(), other) == ([0, 0, 0, 1], [3, 1], total)

        def gathered() -> None:
            slices = tf.IndexedSlices(tf.ones([1, 1]), tf.constant([0]), tf.constant([3, 1]))
            ctx().all_gather(slices, 0)

        with pytest.raises(NotImplementedError, match="all_gather does not support IndexedSlices"):
            strategy.run(gathered)

        def mixed() -> Any:
            slices = tf.IndexedSlices(tf.ones([1, 1]), tf.constant([0]), tf.constant([3, 1]))
            given = slices if rid() else tf.ones([3, 1])
            return ctx().all_reduce("SUM", given)

        with pytest.raises(RuntimeError, match="all_reduce"):
            strategy.run(mixed)

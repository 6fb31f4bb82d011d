"""Regularizers and learning rates by schedule. Values are those of TensorFlow's Keras."""

from typing import Any

import numpy as np
import pytest

import allotment.tf as tf
from support.tf.replicas import run

keras = tf.keras
R, S = keras.regularizers, keras.optimizers.schedules
X = np.array([[1.0, -2.0], [3.0, 4.0]], np.float32)


@pytest.mark.parametrize(
    ("made", "loss"),
    [
        (R.L1(), 0.1),
        (R.L2(), 0.3),
        (R.L1L2(), 0.0),
        (R.L1L2(0.1, 0.2), 7.0),
        (R.l1(0.5), 5.0),
        (R.l2(0.3), 9.0),
        (R.l1_l2(0.1), 1.0),
        (R.get("l2"), 0.3),
        (R.get("L1L2"), 0.0),
        (R.get(R.L1), 0.1),
        (R.L1L2.from_config(R.L1L2(0.1, 0.2).get_config()), 7.0),
        (R.Regularizer(), 0.0),
    ],
)
def test_losses_of_regularizers(made: Any, loss: float) -> None:
    assert float(made(tf.constant(X))) == pytest.approx(loss, rel=1e-6)
    for dtype in (tf.float16, tf.float64):
        assert type(made) is R.Regularizer or made(tf.constant(X, dtype)).dtype is dtype


@pytest.mark.parametrize("wrong", ["a", float("nan"), -1.0, float("inf"), np.float32(0.5)])
def test_factors_that_are_none(wrong: Any) -> None:
    for make in (R.L1, R.L2, R.L1L2):
        with pytest.raises(ValueError, match="expected a non-negative float"):
            make(wrong)
    for identifier in ("l3", 3):
        with pytest.raises(ValueError, match=rf"Could not interpret regularizer identifier: {identifier}"):
            R.get(identifier)
    assert R.get(None) is None


def model(strategy: Any = None) -> Any:
    made = keras.Sequential(
        [
            keras.Input((2,)),
            keras.layers.Dense(
                *(2, None, True, "ones", "ones"), kernel_regularizer="l2", bias_regularizer=R.L1(0.1)
            ),
            keras.layers.Dense(1, kernel_regularizer=tf.reduce_sum, kernel_initializer="ones"),
        ]
    )
    made.compile("sgd", "mse", metrics=["mae"])
    return made


def test_a_model_trains_with_its_losses() -> None:
    made = model()
    assert [float(each) for each in made.losses] == pytest.approx([0.04, 0.2, 2.0])
    history = made.fit(X, np.ones((2, 1)), epochs=2, verbose=0, shuffle=False).history
    assert history["loss"] == pytest.approx([115.24, 4.8094165], 1e-6)
    assert history["mae"] == pytest.approx([8.0, 2.1305275], 1e-6)
    loss, error = made.evaluate(X, np.ones((2, 1)), verbose=0)
    assert loss - sum(map(float, made.losses)) == pytest.approx(
        float(np.mean((made.predict(X, verbose=0) - 1) ** 2)), 1e-5
    )
    assert error > 0
    made.layers[0].trainable = False
    assert len(made.losses) == 1
    with tf.GradientTape() as tape:
        total = tf.add_n(made.losses)
    assert tape.gradient(total, made.trainable_variables)[0].numpy().tolist() == [[1.0], [1.0]]


@pytest.mark.parametrize(
    ("layer", "shape", "losses"),
    [
        (
            lambda: keras.layers.Conv2D(2, 2, kernel_initializer="ones", kernel_regularizer="l2"),
            (3, 3, 1),
            [0.08],
        ),
        (lambda: keras.layers.Embedding(3, 2, "ones", "l1"), (2,), [0.06]),
        (
            lambda: keras.layers.BatchNormalization(beta_regularizer="l2", gamma_regularizer="l2"),
            (3,),
            [0.03, 0.0],
        ),
        (lambda: keras.layers.LayerNormalization(gamma_regularizer=R.L1(1.0)), (3,), [3.0]),
        (lambda: keras.layers.Dense(2, kernel_initializer="ones", kernel_regularizer="l1"), (3,), [0.06]),
    ],
)
def test_layers_with_regularizers(layer: Any, shape: tuple[int, ...], losses: list[float]) -> None:
    made = layer()
    made.build((None, *shape))
    assert [float(each) for each in made.losses] == pytest.approx(losses)


def test_weights_of_ones_own_layer() -> None:
    class Own(keras.layers.Layer):
        def build(self, input_shape: Any) -> None:
            self.w = self.add_weight(shape=(2,), initializer="ones", regularizer=R.L2(0.5), name="e")

        def call(self, x: Any) -> Any:
            return x * self.w

    made = keras.Sequential([Own()])
    made.build((None, 2))
    assert [float(each) for each in made.losses] == [1.0]


def test_replicas_add_regularizers_once() -> None:
    run("""
def trained(strategy):
    with strategy.scope():
        layer = tf.keras.layers.Dense(1, kernel_initializer="ones", kernel_regularizer=tf.keras.regularizers.L2(0.5))
        model = tf.keras.Sequential([tf.keras.Input((2,)), layer])
        model.compile(tf.keras.optimizers.SGD(0.01), "mse")
    x = np.arange(10.0).reshape(5, 2)
    loss = model.fit(x, np.ones((5, 1)), batch_size=3, epochs=2, verbose=0, shuffle=False).history["loss"]
    return loss + [model.evaluate(x, np.ones((5, 1)), verbose=0)] + layer.kernel.numpy().ravel().tolist()
alone, together = trained(tf.distribute.get_strategy()), trained(tf.distribute.MirroredStrategy())
assert np.allclose(alone, together, 1e-5), (alone, together)
""")


@pytest.mark.parametrize(
    ("schedule", "step", "rate"),
    [
        (S.PiecewiseConstantDecay([3, 6], [1.0, 0.5, 0.25]), 3, 1.0),
        (S.PiecewiseConstantDecay([3, 6], [1.0, 0.5, 0.25]), 4, 0.5),
        (S.PiecewiseConstantDecay([3, 6], [1.0, 0.5, 0.25]), 7, 0.25),
        (S.ExponentialDecay(0.1, 10, 0.5), 5, 0.07071068),
        (S.ExponentialDecay(0.1, 10, 0.5, staircase=True), 15, 0.05),
        (S.InverseTimeDecay(0.1, 10, 0.5), 5, 0.08),
        (S.InverseTimeDecay(0.1, 10, 0.5, staircase=True), 15, 0.06666667),
        (S.PolynomialDecay(0.1, 10), 5, 0.05005),
        (S.PolynomialDecay(0.1, 10), 15, 1e-4),
        (S.PolynomialDecay(0.1, 10, power=2.0, cycle=True), 15, 0.00634375),
        (S.PolynomialDecay(0.1, 10, power=2.0, cycle=True), 0, 0.1),
        (S.CosineDecay(0.1, 10), 5, 0.049999997),
        (S.CosineDecay(0.1, 10, alpha=0.1), 15, 0.010000001),
        (S.CosineDecay(0.0, 10, warmup_target=0.1, warmup_steps=4), 2, 0.05),
        (S.CosineDecay(0.0, 10, warmup_target=0.1, warmup_steps=4), 8, 0.06545085),
    ],
)
def test_rates_of_schedules(schedule: Any, step: int, rate: float) -> None:
    again = type(schedule).from_config(schedule.get_config())
    for made in (schedule(step), schedule(tf.constant(step, tf.int64)), again(step)):
        assert made.dtype is tf.float32
        assert made.numpy() == pytest.approx(rate, rel=2e-7)


def test_optimizers_follow_their_schedule() -> None:
    optimizer, variable = keras.optimizers.SGD(S.ExponentialDecay(1.0, 1, 0.5)), tf.Variable(0.0)
    for rate, value in ((1.0, -1.0), (0.5, -1.5), (0.25, -1.75)):
        assert optimizer.learning_rate.numpy() == rate
        optimizer.apply_gradients([(tf.constant(1.0), variable)])
        assert variable.numpy() == value
    with pytest.raises(TypeError, match="hence its learning rate is not settable"):
        optimizer.learning_rate = 0.1
    by_function = keras.optimizers.SGD(lambda: 0.25)
    by_function.apply_gradients([(tf.constant(1.0), variable)])
    assert (by_function.learning_rate, variable.numpy()) == (0.25, -2.0)


def test_schedules_that_there_are_not() -> None:
    with pytest.raises(
        ValueError, match="The length of boundaries should be 1 less than the length of values"
    ):
        S.PiecewiseConstantDecay([1], [1.0])
    for make in (S.CosineDecay, S.PolynomialDecay):
        with pytest.raises(ValueError, match=r"`decay_steps` must be > 0. Received: decay_steps=0"):
            make(0.1, 0)
    with pytest.raises(NotImplementedError, match="'LearningRateSchedule' must override `__call__"):
        S.LearningRateSchedule()(1)
    with pytest.raises(
        ValueError, match="should be float, or an instance of LearningRateSchedule, or a callable"
    ):
        keras.optimizers.SGD("a")


def test_names_of_reductions() -> None:
    names = keras.losses.Reduction
    for reduction in (names.NONE, names.SUM, names.SUM_OVER_BATCH_SIZE):
        assert keras.losses.MeanSquaredError(reduction).reduction == reduction


class Adding(keras.Model):
    """A model that adds losses of its inputs and of the outputs of a layer."""

    def __init__(self) -> None:
        super().__init__()
        self.first = keras.layers.Dense(
            4, "tanh", activity_regularizer="l2", kernel_initializer="ones", kernel_regularizer="l1"
        )
        self.last = keras.layers.Dense(1, kernel_initializer="ones")

    def call(self, x: Any) -> Any:
        self.add_loss(tf.reduce_mean(tf.square(x)))
        hidden = self.first(x)
        self.add_loss(hidden)
        return self.last(hidden)


def test_losses_that_layers_add() -> None:
    x = np.arange(24, dtype=np.float32).reshape(8, 3) / 24
    model = Adding()
    model(x)
    model(x)
    # Those of the model, of its layer's outputs and of its layer's kernel; those of the call before are gone.
    assert [tuple(loss.shape) for loss in model.losses] == [(), (8, 4), (), ()]
    model.compile("sgd", "mse")
    history = model.fit(x, x[:, :1], batch_size=3, epochs=2, shuffle=False, verbose=0)
    np.testing.assert_allclose(history.history["loss"], [14.956418, 12.076889], rtol=1e-5)
    np.testing.assert_allclose(model.evaluate(x, x[:, :1], verbose=0), 25.575716, rtol=1e-5)
    np.testing.assert_allclose(model.get_weights()[0][0], [0.9719379] * 4, rtol=1e-5)


def test_an_activity_regularizer_is_the_only_loss_of_a_model() -> None:
    x = np.arange(24, dtype=np.float32).reshape(8, 3) / 24
    start = keras.Input((3,))
    layer = keras.layers.Dense(2, activity_regularizer="l2", kernel_initializer="ones")
    model = keras.Model(start, layer(start))
    assert model.losses == []
    model(x)
    np.testing.assert_allclose(model.losses, [0.05609375], rtol=1e-5)
    model.compile("sgd")
    np.testing.assert_allclose(
        model.fit(x, epochs=2, verbose=0).history["loss"], [0.05609375, 0.0560562], rtol=1e-5
    )
    with pytest.raises(ValueError, match="on a tensor input"):
        layer.add_loss(1.0)


def test_factors_have_single_precision_in_any_type() -> None:
    x = tf.constant(np.array([3.0, 1.7]))
    assert float(R.L2(0.01)(x)) == pytest.approx(11.89 * float(np.float32(0.01)), rel=1e-12)
    assert R.L2(0.01).get_config() == {"l2": 0.01}

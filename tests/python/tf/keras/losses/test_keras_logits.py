"""Cross entropies of probabilities are computed from the logits behind them, where Keras does so."""

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

import allotment.tf as tf
from allotment.testing import runtime

keras: Any = tf.keras

#: A sample with the label that the logits rule out: the probability of the class is 0 in single precision.
LOGITS = [[0.0, 30.0, -25.0]]
#: The loss of the class from the logits, and from its probability, which is clipped to 1e-7.
EXACT, CLIPPED = 55.0, 16.118095


def sparse(p: Any) -> Any:
    return keras.losses.sparse_categorical_crossentropy([2], p)


def classifier(*layers: Any) -> Any:
    model = keras.Sequential([keras.Input((3,)), *layers])
    model.set_weights([np.eye(3, dtype="float32") if w.ndim == 2 else w for w in model.get_weights()])
    return model


def test_the_gradient_passes_through_the_logits() -> None:
    x: Any = tf.Variable(LOGITS)
    with tf.GradientTape() as tape:
        loss = sparse(keras.activations.softmax(x))
    assert loss.numpy() == pytest.approx([EXACT])
    np.testing.assert_allclose(tape.gradient(loss, x), [[0, 1, -1]], atol=1e-6)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_all_cross_entropies_and_their_metrics_find_the_logits(smoothing: float) -> None:
    x = tf.constant(LOGITS)
    labels = np.array([[0.0, 0.0, 1.0]], "float32")
    smooth = labels * (1 - smoothing) + smoothing / 3
    categorical = float(np.sum(smooth * (30 - np.array(LOGITS))))
    halves = labels * (1 - smoothing) + smoothing / 2
    binary = float(np.mean(np.logaddexp(0, LOGITS) - halves * np.array(LOGITS)))
    for namespace in (keras.losses, keras.metrics):
        of_classes = namespace.CategoricalCrossentropy(label_smoothing=smoothing)
        of_bits = namespace.BinaryCrossentropy(label_smoothing=smoothing)
        assert float(of_classes(labels, keras.activations.softmax(x))) == pytest.approx(categorical, rel=1e-5)
        assert float(of_bits(labels, keras.activations.sigmoid(x))) == pytest.approx(binary, rel=1e-5)


@pytest.mark.parametrize(
    ("way", "expected"),
    [
        (keras.activations.softmax, EXACT),
        (keras.layers.Softmax(), EXACT),
        (lambda x: keras.layers.Dropout(0.5)(keras.activations.softmax(x)), EXACT),
        (tf.nn.softmax, CLIPPED),
        (lambda x: keras.activations.softmax(x) * 1.0, CLIPPED),
        (lambda x: tf.identity(keras.activations.softmax(x)), CLIPPED),
        (tf.function(keras.activations.softmax), CLIPPED),
        (tf.function(lambda x: sparse(tf.nn.softmax(x))), EXACT),
        (tf.function(lambda x: sparse(tf.nn.softmax(x) * 1.0)), CLIPPED),
        (tf.function(lambda x: sparse(tf.cond(x[0, 0] < 1, lambda: tf.nn.softmax(x), lambda: x))), CLIPPED),
    ],
)
def test_operations_hide_the_logits_as_in_tensorflow(way: Callable[[Any], Any], expected: float) -> None:
    made = way(tf.constant(LOGITS))
    assert (made if made.ndim == 1 else sparse(made)).numpy() == pytest.approx([expected])


def test_an_argument_of_a_function_has_no_logits_unless_functions_run_eagerly() -> None:
    loss = tf.function(sparse)
    p = keras.activations.softmax(tf.constant(LOGITS))
    assert loss(p).numpy() == pytest.approx([CLIPPED])
    tf.config.run_functions_eagerly(True)
    try:
        assert loss(p).numpy() == pytest.approx([EXACT])
    finally:
        tf.config.run_functions_eagerly(False)


def test_logits_that_are_said_to_be_given_are_those_behind_the_activation_with_a_warning() -> None:
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    with pytest.warns(UserWarning, match="from_logits=True"):
        found = loss([2], keras.activations.softmax(tf.constant(LOGITS)))
    assert float(found) == pytest.approx(EXACT)


def test_elements_of_data_sets_know_no_logits() -> None:
    p = keras.activations.softmax(tf.constant(LOGITS))
    (element,) = tf.data.Dataset.from_tensors(p)
    assert sparse(element).numpy() == pytest.approx([CLIPPED])


@pytest.mark.parametrize(
    ("layer", "run_eagerly", "expected"),
    [
        (lambda: keras.layers.Dense(3, "softmax", use_bias=False), True, EXACT),
        (lambda: keras.layers.Dense(3, "softmax", use_bias=False), False, EXACT),
        (lambda: keras.layers.Lambda(tf.nn.softmax), False, EXACT),
        (lambda: keras.layers.Lambda(tf.nn.softmax), True, CLIPPED),
    ],
)
def test_models_are_evaluated_from_the_logits(
    layer: Callable[[], Any], run_eagerly: bool, expected: float
) -> None:
    model = classifier(layer())
    name = "sparse_categorical_crossentropy"
    model.compile("sgd", name, metrics=[name], run_eagerly=run_eagerly)
    found = model.evaluate(np.array(LOGITS), np.array([2]), verbose=0)
    assert found == pytest.approx([expected, expected])


@pytest.mark.parametrize("has_replicas", [False, True])
@runtime("2:64MiB")
def test_training_moves_weights_that_probabilities_of_zero_would_hold(has_replicas: bool) -> None:
    x, y = np.array(LOGITS * 2, "float32"), np.array([2, 2])
    with tf.distribute.MirroredStrategy(["GPU:0", "GPU:1"]).scope() if has_replicas else nullcontext():
        model = classifier(keras.layers.Dense(3, use_bias=False), keras.layers.Lambda(tf.nn.softmax))
        model.compile(keras.optimizers.SGD(0.01), "sparse_categorical_crossentropy")
    model.fit(x, y, batch_size=2, verbose=0)
    # The gradient is the outer product of the sample and (0, 1, -1).
    expected = np.eye(3) - 0.01 * np.outer(LOGITS[0], [0, 1, -1])
    np.testing.assert_allclose(model.get_weights()[0], expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("run_eagerly", "expected"), [(True, (4 + 9 * 2) / 6), (False, (1 + 9) / 2)])
def test_losses_of_outputs_count_samples_where_keras_knows_their_number(
    run_eagerly: bool, expected: float
) -> None:
    start = keras.Input((1,))
    same = [keras.layers.Activation("linear", name=name)(start) for name in "ab"]
    model = keras.Model(start, same)
    model.compile("sgd", ["mse", "mse"], run_eagerly=run_eagerly)
    x = np.array([[1.0]] * 4 + [[3.0]] * 2)
    found = model.evaluate(x, [np.zeros((6, 1))] * 2, batch_size=4, verbose=0, return_dict=True)
    assert found["a_loss"] == pytest.approx(expected)
    assert found["loss"] == pytest.approx(2 * (4 + 9 * 2) / 6)

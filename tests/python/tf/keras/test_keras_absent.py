"""What this Keras does not have says what there is; what a model says of its shapes."""

from typing import Any

import numpy as np
import pytest

from allotment.tf import keras
from allotment.tf.keras import layers
from allotment.tf.keras.utils import to_categorical
from allotment.tf.ops.array.constants import constant


def model() -> keras.Sequential:
    return keras.Sequential([keras.Input((4,)), layers.Dense(2)])


@pytest.mark.parametrize(
    ("owner", "name", "instead"),
    [
        (keras, "random", "initializers, layers"),
        (keras, "datasets", "utils"),
        (keras.utils, "plot_model", "to_categorical"),
        (layers, "LSTM", "Dense"),
    ],
)
def test_what_is_absent_says_what_there_is(owner: Any, name: str, instead: str) -> None:
    assert not hasattr(owner, name)
    with pytest.raises(
        NotImplementedError, match=rf"{name} is not offered\. Available: .*\b{instead}\b"
    ) as caught:
        getattr(owner, name)
    assert isinstance(caught.value, AttributeError)
    assert name not in str(caught.value).split("Available:")[1].replace(".", ",").split(", ")


def test_a_layer_of_ones_own_may_have_a_shape() -> None:
    class Own(layers.Dense):
        def __init__(self) -> None:
            super().__init__(3)
            # Layers have none, models do.
            self.output_shape = 7

    assert Own().output_shape == 7


def test_a_layer_of_ones_own_that_makes_a_mask_is_refused() -> None:
    class Passing(layers.Dense):
        def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
            return mask

    class Making(Passing):
        def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
            return inputs[:, 0] > 0.0

    x = constant([[1.0, 2.0]])
    assert Passing(3)(x).shape == (1, 3)
    with pytest.raises(NotImplementedError, match="computes a mask, which is not offered"):
        Making(3)(x)


def test_a_table_has_no_models_inside_of_others() -> None:
    model().summary(print_fn=lambda text: None, expand_nested=False)
    with pytest.raises(NotImplementedError, match="summary: `expand_nested` is not offered"):
        model().summary(expand_nested=True)


def test_shapes_of_models() -> None:
    assert (model().input_shape, model().output_shape) == ((None, 4), (None, 2))
    a, b = keras.Input((3,)), keras.Input((5, 2), batch_size=7)
    several = keras.Model({"a": a, "b": b}, [layers.Flatten()(b), a])
    assert several.input_shape == {"a": (None, 3), "b": (7, 5, 2)}
    assert several.output_shape == [(7, 10), (None, 3)]
    with pytest.raises(AttributeError, match="has no defined input shape yet"):
        keras.Sequential([layers.Dense(1)]).output_shape  # noqa: B018


@pytest.mark.parametrize("shape", [(6,), (6, 1), (2, 3), (2, 3, 1)])
def test_classes_as_rows(shape: tuple[int, ...]) -> None:
    classes = np.array([0, 2, 1, 2, 0, 3]).reshape(shape)
    for count in (None, 4, 6):
        wanted = np.eye(count or 4)[classes[..., 0] if len(shape) > 1 and shape[-1] == 1 else classes]
        found = to_categorical(classes, count)
        assert found.dtype == np.float64
        np.testing.assert_array_equal(found, wanted)
    tensor = to_categorical(constant(classes), 4)
    assert tensor.dtype.name == "float32"
    np.testing.assert_array_equal(tensor.numpy(), to_categorical(classes))


@pytest.mark.parametrize(("classes", "count", "wrong"), [([0, 3], 3, 3), ([-1, 0], None, -1)])
def test_numbers_that_are_no_classes(classes: list[int], count: int | None, wrong: int) -> None:
    with pytest.raises(ValueError, match=f"numbers from 0 up to num_classes - 1 = .*Received: {wrong}"):
        to_categorical(classes, count)

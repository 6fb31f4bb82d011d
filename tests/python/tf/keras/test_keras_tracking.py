"""What layers and models own: as in Keras 3, their weights, layers and metrics, and no ``tf.Variable``."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import allotment.tf as tf

keras: Any = tf.keras
L: Any = keras.layers


class Same(L.Layer):  # type: ignore[misc]
    def call(self, x: Any) -> Any:
        return x


def dense(units: int) -> Any:
    layer = L.Dense(units, use_bias=False)
    layer.build((None, 1))
    return layer


def units(layer: Any) -> list[int]:
    return [each.shape[-1] for each in layer.weights]


def test_a_variable_of_the_program_is_no_weight_and_is_not_trained() -> None:
    class Scale(L.Layer):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.v = tf.Variable(1.0)
            self.more = [tf.Variable(2.0)]

        def build(self, shape: Any) -> None:
            self.w = self.add_weight(shape=(), initializer="ones")
            self.late = tf.Variable(3.0)

        def call(self, x: Any) -> Any:
            return x * self.v * self.w

    model = keras.Sequential([keras.Input((1,)), Scale()])
    model.compile("sgd", "mse")
    model.fit(np.ones([4, 1]), np.zeros([4, 1]), verbose=0)
    (scale,) = model.layers
    assert float(scale.v) == 1.0
    assert float(scale.w) == pytest.approx(0.98)
    assert [id(each) for each in model.trainable_variables] == [id(scale.w)]
    assert model.count_params() == 1


def test_the_variable_of_another_layer_is_a_weight() -> None:
    embedding = L.Embedding(3, 2)
    embedding.build(None)
    tied = Same()
    tied.w = embedding.embeddings
    assert [id(each) for each in tied.weights] == [id(embedding.embeddings)]
    del tied.w
    assert tied.weights == []


def test_a_module_has_no_variables_of_layers() -> None:
    module: Any = tf.Module()
    module.d = dense(1)
    module.w = module.d.kernel
    assert module.variables == ()


def _reassign(owner: Any) -> None:
    owner.d = dense(1)
    owner.d = dense(2)


def _delete(owner: Any) -> None:
    owner.d = dense(1)
    del owner.d


def _list(owner: Any) -> None:
    owner.l = [dense(1), dense(2)]
    owner.l.insert(0, dense(3))
    owner.l.remove(owner.l[1])
    owner.l.extend([dense(4), dense(5)])
    owner.l += [dense(6)]
    del owner.l[-1]
    owner.l.pop(2)
    owner.l[0] = dense(7)


def _dict(owner: Any) -> None:
    owner.d = {"a": dense(1), "b": dense(2)}
    owner.d["c"] = dense(3)
    owner.d["a"] = dense(4)
    owner.d.pop("b")
    owner.d.update({"e": dense(5)})
    owner.d.popitem()


def _nested(owner: Any) -> None:
    owner.t = (dense(1), [dense(2), {"x": [dense(3)]}])
    owner.t[1].append(dense(4))
    owner.t[1][1]["x"].append(dense(5))
    owner.s = {dense(6)}
    owner.s.add(dense(7))
    owner.s.clear()


@pytest.mark.parametrize(
    ("change", "expected"),
    [(_reassign, [1, 2]), (_delete, [1]), (_list, [2, 3, 5]), (_dict, [1, 3, 4]), (_nested, [1, 2, 3, 4, 5])],
)
def test_layers_stay_unless_a_method_of_a_container_removes_them(
    change: Callable[[Any], None], expected: list[int]
) -> None:
    owner = Same()
    change(owner)
    assert units(owner) == expected


def test_weights_come_in_the_order_in_which_they_were_made() -> None:
    owner = Same()
    owner.frozen = owner.add_weight(shape=(1,), trainable=False)
    owner.d = dense(2)
    owner.b = owner.add_weight(shape=(3,))
    owner.a = owner.add_weight(shape=(4,))
    assert units(owner) == [3, 4, 1, 2]


def test_a_built_layer_takes_no_new_state() -> None:
    layer = Same()
    layer(tf.ones([1, 1]))
    for value in (dense(1), [dense(1)], {"a": keras.metrics.Mean()}):
        with pytest.raises(ValueError, match="is built takes no new variables, sublayers or metrics"):
            layer.late = value
    with pytest.raises(ValueError, match="is built"):
        layer.add_weight(shape=())
    layer.late = [1, tf.Variable(1.0)]
    assert layer.weights == []


def test_models_of_known_layers_take_further_ones() -> None:
    start = keras.Input((1,))
    functional = keras.Model(start, dense(2)(start))
    functional.extra = dense(3)
    assert units(functional) == [2, 3]
    assert len(functional.layers) == 2
    sequential = keras.Sequential([dense(2)])
    sequential.extra = dense(3)
    assert units(sequential) == [2]


def test_metrics_of_layers_are_metrics_of_the_model() -> None:
    class Watched(L.Layer):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.seen = keras.metrics.Mean(name="seen")

        def call(self, x: Any) -> Any:
            self.seen.update_state(x)
            return x

    model = keras.Sequential([keras.Input((3,)), Watched(), L.Dense(1)])
    model.compile("sgd", "mse")
    found = model.fit(np.full((2, 3), 2.0), np.ones((2, 1)), verbose=0).history
    assert found["seen"] == [2.0]
    assert model.metrics_names == ["loss", "seen"]


def test_a_copy_owns_its_own_layers() -> None:
    owner = Same()
    owner.l = [dense(1)]
    twin = copy.deepcopy(owner)
    twin.l.append(dense(2))
    assert units(owner) == [1]
    assert units(twin) == [1, 2]


def test_checkpoints_hold_the_layers_of_functional_models(tmp_path: Path) -> None:
    def made() -> Any:
        start, twice = keras.Input((3,)), L.Dense(3)
        return keras.Model(start, [L.Dense(2)(twice(twice(start))), L.Dense(1)(start)])

    one, other = made(), made()
    path = tf.train.Checkpoint(model=one).save(str(tmp_path / "c"))
    tf.train.Checkpoint(model=other).restore(path)
    for mine, its in zip(one.get_weights(), other.get_weights(), strict=True):
        np.testing.assert_array_equal(mine, its)

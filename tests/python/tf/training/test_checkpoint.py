"""Checkpoints of objects, and their files. What TensorFlow gives was observed there."""

import os
import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import allotment.tf as tf
from allotment.tf.training import checkpoint_file
from allotment.tf.variables import restoring
from support.tf.replicas import run

train, keras = tf.train, tf.keras


def objects() -> tuple[Any, Any, Any]:
    v, w = tf.Variable(1.0), tf.Variable([1, 2])
    return v, w, train.Checkpoint(v=v, things=[w, {"k": tf.Variable("s")}])


def test_numbers_count_and_the_latest_is_known(tmp_path: Path) -> None:
    v, w, checkpoint = objects()
    assert [checkpoint.save(f"{tmp_path}/ck/a") for _ in range(2)] == [f"{tmp_path}/ck/a-{n}" for n in (1, 2)]
    assert train.latest_checkpoint(f"{tmp_path}/ck") == f"{tmp_path}/ck/a-2"
    assert checkpoint.write(f"{tmp_path}/ck/b") == f"{tmp_path}/ck/b"
    assert train.latest_checkpoint(f"{tmp_path}/ck") == f"{tmp_path}/ck/a-2"
    v.assign(9.0)
    w.assign([8, 8])
    checkpoint.restore(f"{tmp_path}/ck/a-1").assert_consumed()
    assert (v.numpy(), w.numpy().tolist(), checkpoint.save_counter.numpy()) == (1.0, [1, 2], 1)
    assert checkpoint.things[1]["k"].numpy() == b"s"
    names = [name for name, _ in train.list_variables(f"{tmp_path}/ck/a-1")]
    assert names == [
        f"{each}/.ATTRIBUTES/VARIABLE_VALUE" for each in ("save_counter", "things/0", "things/1/k", "v")
    ]
    assert train.load_variable(f"{tmp_path}/ck", names[1]).tolist() == [1, 2]


def test_what_matches_and_what_does_not(tmp_path: Path) -> None:
    path = objects()[2].save(str(tmp_path / "a"))
    part = train.Checkpoint(v=tf.Variable(0.0))
    status = part.restore(path).assert_existing_objects_matched().assert_nontrivial_match().expect_partial()
    assert part.v.numpy() == 1.0
    with pytest.raises(AssertionError, match="no variable has the key things/0, things/1/k"):
        status.assert_consumed()
    other = train.Checkpoint(zz=tf.Variable(5.0))
    with pytest.raises(
        AssertionError, match=r"Found 1 Python objects that were not bound .* They are at: zz"
    ):
        other.restore(path).assert_existing_objects_matched()
    first, second = tf.Variable(7.0), tf.Variable([0.0, 1.0])
    for wrong, error, text in (
        (
            second,
            ValueError,
            r"incompatible tensor with shape \(2,\) when attempting to restore .* shape \(3,\)",
        ),
        (
            tf.Variable([1, 2, 3]),
            tf.errors.InvalidArgumentError,
            "expected dtype int32 does not equal original dtype float32",
        ),
    ):
        saved = train.Checkpoint(a=first, w=second).save(str(tmp_path / "b"))
        first.assign(3.0)
        given = tf.Variable([0.0, 1.0, 2.0]) if wrong is second else wrong
        with pytest.raises(error, match=text):
            train.Checkpoint(a=first, w=given).restore(saved)
        # Nothing is half restored.
        assert first.numpy() == 3.0
    assert not restoring.pending or all(each.retry() for each in restoring.pending)


def test_without_a_checkpoint(tmp_path: Path) -> None:
    checkpoint = objects()[2]
    with pytest.raises(tf.errors.NotFoundError, match=r"none\.npz.*\n.*the '-1' in 'path/to/ckpt-1'"):
        checkpoint.restore(str(tmp_path / "none"))
    (tmp_path / "tf.index").write_text("")
    with pytest.raises(tf.errors.NotFoundError, match="TensorFlow's own format, which is not read here"):
        checkpoint.restore(str(tmp_path / "tf"))
    with pytest.raises(AssertionError, match="No checkpoint specified"):
        checkpoint.restore(None).assert_consumed()
    assert train.latest_checkpoint(str(tmp_path)) is None
    assert train.get_checkpoint_state(str(tmp_path / "nowhere")) is None
    (tmp_path / "checkpoint").write_text('model_checkpoint_path: "gone"\n')
    assert train.latest_checkpoint(str(tmp_path)) is None
    (tmp_path / "checkpoint").write_text("model_checkpoint_path: no text")
    assert train.get_checkpoint_state(str(tmp_path)) is None
    with tf.Graph().as_default(), pytest.raises(NotImplementedError, match=r"tf\.compat\.v1\.train\.Saver"):
        checkpoint.save(str(tmp_path / "g"))


@pytest.mark.parametrize("wrong", [3, None, "text", [3], {"a": None}])
def test_what_holds_no_variables(wrong: Any) -> None:
    with pytest.raises(ValueError, match="expecting x to be a trackable object"):
        train.Checkpoint(x=wrong)


class Late(tf.Module):
    """A module that makes a variable when it is called."""

    def __init__(self) -> None:
        super().__init__()
        self.a = tf.Variable(3.0)

    def __call__(self) -> Any:
        if not hasattr(self, "b"):
            self.b = tf.Variable(0.0)
        return self.b


def test_variables_that_are_made_later_get_their_values_then(tmp_path: Path) -> None:
    module = Late()
    module().assign(7.0)
    path = train.Checkpoint(m=module).save(str(tmp_path / "m"))
    again = Late()
    # What is restored need not be kept for that.
    train.Checkpoint(m=again).restore(path)
    assert again().numpy() == 7.0
    empty = train.Checkpoint()
    status = empty.restore(path)
    empty.m = Late()
    empty.m()
    assert empty.m.b.numpy() == 7.0
    status.assert_consumed()
    assert restoring.pending == []


def step(model: Any, optimizer: Any) -> float:
    x = tf.constant([[1.0, 2.0, 3.0]])
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(model(x) ** 2)
    variables = model.trainable_variables
    optimizer.apply_gradients(list(zip(tape.gradient(loss, variables), variables, strict=True)))
    return float(loss)


@pytest.mark.parametrize("make", [keras.optimizers.Adam, tf.compat.v1.train.AdamOptimizer])
def test_models_and_optimizers_go_on_where_they_were(make: Any, tmp_path: Path) -> None:
    def fresh(rate: float) -> tuple[Any, Any]:
        return keras.Sequential([keras.layers.Dense(2), keras.layers.Dense(1)]), make(rate)

    model, optimizer = fresh(0.1)
    step(model, optimizer)
    path = train.Checkpoint(optimizer=optimizer, model=model).save(str(tmp_path / "k"))
    expected = [step(model, optimizer) for _ in range(3)]
    other, its = fresh(0.1)
    status = train.Checkpoint(optimizer=its, model=other).restore(path)
    assert [step(other, its) for _ in range(3)] == expected
    status.assert_consumed()


def test_copies_of_replicas_are_restored_alike(tmp_path: Path) -> None:
    run(f"""
s = tf.distribute.MirroredStrategy()
with s.scope():
    v, c = tf.Variable([1.0, 2.0]), tf.Variable(0.0, synchronization=tf.VariableSynchronization.ON_READ,
                                               aggregation=tf.VariableAggregation.SUM)
    checkpoint = tf.train.Checkpoint(v=v, c=c)
s.run(lambda: c.assign_add(own()))
path = checkpoint.save({str(tmp_path / "s")!r})
v.assign([0.0, 0.0]); c.assign(0.0)
checkpoint.restore(path).assert_consumed()
assert [each.numpy().tolist() for each in v.values] == [[1.0, 2.0]] * 2 and float(c) == 3.0
plain = tf.train.Checkpoint(v=tf.Variable([0.0, 0.0]))
plain.restore(path)
assert plain.v.numpy().tolist() == [1.0, 2.0]
""")


def test_a_manager_keeps_the_latest(tmp_path: Path) -> None:
    checkpoint = objects()[2]
    manager = train.CheckpointManager(checkpoint, str(tmp_path), max_to_keep=2)
    assert (manager.latest_checkpoint, manager.restore_or_initialize(), manager.checkpoints) == (
        None,
        None,
        [],
    )
    assert [manager.save() for _ in range(3)] == [f"{tmp_path}/ckpt-{n}" for n in (1, 2, 3)]
    assert manager.checkpoints == [f"{tmp_path}/ckpt-2", f"{tmp_path}/ckpt-3"]
    assert sorted(os.listdir(tmp_path)) == ["checkpoint", "ckpt-2.npz", "ckpt-3.npz"]
    assert manager.save(checkpoint_number=77) == f"{tmp_path}/ckpt-77"
    again = train.CheckpointManager(checkpoint, str(tmp_path), max_to_keep=None, checkpoint_name="zz")
    assert again.checkpoints == [f"{tmp_path}/ckpt-3", f"{tmp_path}/ckpt-77"]
    assert again.save() == f"{tmp_path}/zz-5"
    assert manager.restore_or_initialize() == f"{tmp_path}/ckpt-77"
    with pytest.raises(ValueError, match="Expected a positive integer or `None` for `max_to_keep`, got 0"):
        train.CheckpointManager(checkpoint, str(tmp_path), max_to_keep=0)
    with pytest.raises(ValueError, match="`step_counter` should be passed"):
        train.CheckpointManager(checkpoint, str(tmp_path), 1, checkpoint_interval=2)


def test_a_manager_waits_for_its_counter(tmp_path: Path) -> None:
    at, called = tf.Variable(0), []
    manager = train.CheckpointManager(
        objects()[2],
        str(tmp_path),
        3,
        step_counter=at,
        checkpoint_interval=2,
        init_fn=lambda: called.append(1),
    )
    assert manager.restore_or_initialize() is None
    assert called == [1]
    made = []
    for number in range(5):
        at.assign(number)
        made.append(manager.save() is not None)
    assert made == [True, False, True, False, True]
    assert manager.save() is None
    assert manager.save(check_interval=False) is not None


VALUES: dict[str, Any] = {
    "a/b": np.arange(6, dtype=np.float16).reshape(2, 3),
    "scalar": np.array(3, np.int64),
    "none": np.empty((0, 4), np.complex64),
    "texts": np.array([[b"x", b""], [b"\xff\x00", "ü".encode()]], object),
    "flags": np.array([True, False]),
}


def test_tensors_of_all_sorts_come_back(tmp_path: Path) -> None:
    prefix = str(tmp_path / "t")
    checkpoint_file.write(prefix, VALUES)
    reader = train.load_checkpoint(prefix)
    for name, array in VALUES.items():
        found = reader.get_tensor(name)
        assert np.array_equal(found, array)
        assert np.shape(found) == array.shape
        assert name == "texts" or found.dtype == array.dtype
    assert reader.get_variable_to_dtype_map()["texts"] is tf.string
    assert reader.get_variable_to_shape_map()["none"] == [0, 4]
    with pytest.raises(tf.errors.NotFoundError, match="Key zz not found in checkpoint"):
        reader.get_tensor("zz")
    # It is what NumPy reads, too.
    with np.load(prefix + ".npz", allow_pickle=False) as file:
        assert np.array_equal(file["0"], VALUES["a/b"])


def test_a_damaged_file_is_said_to_be_damaged(tmp_path: Path) -> None:
    prefix = str(tmp_path / "t")
    checkpoint_file.write(prefix, VALUES)
    whole = Path(prefix + ".npz").read_bytes()

    def everything() -> list[Any]:
        reader = train.load_checkpoint(prefix)
        return [reader.get_tensor(name) for name in reader.get_variable_to_shape_map()]

    random = np.random.default_rng(7)
    for number in range(60):
        damaged = bytearray(whole)
        if number % 3:
            damaged[int(random.integers(len(whole)))] ^= 1 << int(random.integers(8))
        else:
            del damaged[int(random.integers(len(whole))) :]
        Path(prefix + ".npz").write_bytes(damaged)
        try:
            made = everything()
        except tf.errors.DataLossError as error:
            assert "t.npz cannot be read as a checkpoint" in str(error)  # noqa: PT017 - it may be read
        else:
            # A bit of what says nothing of values, such as a time.
            assert all(map(np.array_equal, made, VALUES.values()))


class Planted:
    """What a pickle would call."""

    def __reduce__(self) -> Any:
        return os._exit, (3,)


def test_nothing_in_a_file_is_run(tmp_path: Path) -> None:
    path = tmp_path / "evil.npz"
    with zipfile.ZipFile(path, "w") as archive, archive.open("header.npy", "w") as member:
        np.lib.format.write_array(member, np.array([Planted()], object), allow_pickle=True)
    with pytest.raises(tf.errors.DataLossError, match=r"evil\.npz cannot be read"):
        train.load_checkpoint(str(tmp_path / "evil"))
    path.write_bytes(pickle.dumps(Planted()))
    with pytest.raises(tf.errors.DataLossError, match=r"evil\.npz cannot be read"):
        train.load_checkpoint(str(tmp_path / "evil"))


def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path) -> None:
    prefix = str(tmp_path / "t")
    checkpoint_file.write(prefix, VALUES)
    with pytest.raises(TypeError):
        checkpoint_file.write(prefix, VALUES | {"bad": np.zeros(2, "datetime64[s]")})
    assert train.load_checkpoint(prefix).has_tensor("flags")
    assert os.listdir(tmp_path) == ["t.npz"]

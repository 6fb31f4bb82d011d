"""``Saver`` of TensorFlow 1: variables by name. What is expected was observed on TensorFlow."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import allotment.tf as tf

v1 = tf.compat.v1


@pytest.fixture
def session() -> Any:
    with tf.Graph().as_default(), v1.Session() as sess:
        yield sess


def variables(sess: Any) -> tuple[Any, Any]:
    a = v1.get_variable("a", [2], initializer=v1.ones_initializer())
    b = v1.get_variable("s/b", [], dtype=tf.int64, initializer=v1.zeros_initializer())
    sess.run(v1.global_variables_initializer())
    return a, b


def test_values_come_back(session: Any, tmp_path: Path) -> None:
    step = v1.train.get_or_create_global_step()
    a, b = variables(session)
    saver = v1.train.Saver()
    folder = tmp_path / "m"
    assert saver.save(session, f"{folder}/ck") == f"{folder}/ck"
    assert [saver.save(session, f"{folder}/ck", global_step=each) for each in (3, step, tf.constant(7))] == [
        f"{folder}/ck-{number}" for number in (3, 0, 7)
    ]
    assert saver.last_checkpoints == [f"{folder}/ck", f"{folder}/ck-3", f"{folder}/ck-0", f"{folder}/ck-7"]
    assert v1.train.latest_checkpoint(str(folder)) == f"{folder}/ck-7"
    assert (
        list(v1.train.get_checkpoint_state(str(folder)).all_model_checkpoint_paths) == saver.last_checkpoints
    )
    session.run([a.assign([5.0, 6.0]), b.assign(4)])
    session.graph.finalize()
    saver.restore(session, f"{folder}/ck-3")
    assert (session.run(a).tolist(), session.run(b)) == ([1.0, 1.0], 0)
    assert v1.train.list_variables(str(folder)) == [("a", [2]), ("global_step", []), ("s/b", [])]
    assert v1.train.checkpoint_exists(f"{folder}/ck-3")


def test_a_folder_may_be_moved(session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    variables(session)
    v1.train.Saver().save(session, "m/ck", write_meta_graph=False)
    assert (
        Path("m/checkpoint").read_text() == 'model_checkpoint_path: "ck"\nall_model_checkpoint_paths: "ck"\n'
    )
    os.rename("m", "n")
    assert v1.train.latest_checkpoint("n") == "n/ck"
    assert v1.train.Saver().save(session, "n/q", latest_filename="list") == "n/q"
    assert v1.train.latest_checkpoint("n", "list") == "n/q"
    v1.train.Saver().save(session, "n/z", write_state=False)
    assert v1.train.latest_checkpoint("n") == "n/ck"


def test_old_checkpoints_go(session: Any, tmp_path: Path) -> None:
    variables(session)
    saver = v1.train.Saver(max_to_keep=2, pad_step_number=True)
    for number in range(4):
        saver.save(session, f"{tmp_path}/ck", global_step=number)
    assert sorted(os.listdir(tmp_path)) == ["checkpoint", "ck-00000002.npz", "ck-00000003.npz"]
    more = v1.train.Saver(max_to_keep=2)
    more.recover_last_checkpoints(saver.last_checkpoints)
    more.save(session, f"{tmp_path}/new")
    assert more.last_checkpoints == [f"{tmp_path}/ck-00000003", f"{tmp_path}/new"]
    for _ in range(7):
        v1.train.Saver(max_to_keep=0).save(session, f"{tmp_path}/all")


def test_what_does_not_fit_changes_nothing(session: Any, tmp_path: Path) -> None:
    a, b = variables(session)
    path = v1.train.Saver().save(session, f"{tmp_path}/ck")
    session.run([a.assign([5.0, 6.0]), b.assign(4)])
    c = v1.get_variable("c", [3])
    for given, error, text in (
        ({"x": a}, tf.errors.NotFoundError, "Key x not found in checkpoint. There are: a, s/b"),
        (
            {"a": b},
            tf.errors.InvalidArgumentError,
            "tensor_name = a; expected dtype int64 does not equal original dtype float32",
        ),
        (
            {"s/b": b, "a": c},
            tf.errors.InvalidArgumentError,
            r"does not match the shape stored in checkpoint: \[2\]",
        ),
    ):
        with pytest.raises(error, match=text):
            v1.train.Saver(given).restore(session, path)
    assert (session.run(a).tolist(), session.run(b)) == ([5.0, 6.0], 4)
    wide = v1.get_variable("w", [2, 1], initializer=v1.zeros_initializer())
    v1.train.Saver({"a": wide}, reshape=True).restore(session, path)
    assert session.run(wide).tolist() == [[1.0], [1.0]]
    for wrong in (f"{tmp_path}/none", None):
        with pytest.raises(ValueError, match=r"not a valid checkpoint|Can't load save_path when it is None"):
            v1.train.Saver([a]).restore(session, wrong)


def test_variables_with_one_first_value_are_restored_apart(session: Any, tmp_path: Path) -> None:
    first = tf.zeros([2])
    a, b = v1.get_variable("a", initializer=first), v1.get_variable("b", initializer=first)
    session.run(v1.global_variables_initializer())
    session.run([a.assign([1.0, 2.0]), b.assign([3.0, 4.0])])
    path = v1.train.Saver().save(session, f"{tmp_path}/ck")
    session.run(v1.global_variables_initializer())
    v1.train.Saver().restore(session, path)
    assert [each.tolist() for each in session.run([a, b])] == [[1.0, 2.0], [3.0, 4.0]]


def test_savers_that_there_are_not(session: Any, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="No variables to save"):
        v1.train.Saver()
    a = v1.get_variable("a", [2])
    with pytest.raises(tf.errors.FailedPreconditionError):
        v1.train.Saver().save(session, f"{tmp_path}/ck")
    for wrong, error, text in (
        ([a, a], ValueError, "At least two variables have the same name: a"),
        ([3], TypeError, "a Saver takes variables, not 3"),
        ({"a": 3}, TypeError, "Not a variable: 3"),
        ([], ValueError, "No variables to save"),
    ):
        with pytest.raises(error, match=text):
            v1.train.Saver(wrong)
    v1.train.Saver([], allow_empty=True)
    session.run(v1.global_variables_initializer())
    saver = v1.train.Saver()
    for arguments, error in (((session, 3), TypeError), ((3, "q"), TypeError), ((session, ""), ValueError)):
        with pytest.raises(error):
            saver.save(*arguments)
    with pytest.raises(TypeError, match=r"global_step must be a whole number.*not 'a'"):
        saver.save(session, f"{tmp_path}/ck", global_step="a")
    assert os.listdir(tmp_path) == []
    with pytest.raises(NotImplementedError, match="`saver_def` is not offered"):
        v1.train.Saver(saver_def=3)


def test_eager_variables(tmp_path: Path) -> None:
    v1.reset_default_graph()
    v = tf.Variable([3.0], name="v")
    with pytest.raises(RuntimeError, match="`var_list` must specify a list or dict"):
        v1.train.Saver()
    saver = v1.train.Saver([v])
    path = saver.save(None, f"{tmp_path}/eager")
    v.assign([4.0])
    saver.restore(None, path)
    assert np.array_equal(v, [3.0])

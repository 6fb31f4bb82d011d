"""Operations, functions, variables, graphs and random numbers that threads use at the same time."""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import allotment.tf as tf
from allotment.tf.graph import default
from allotment.tf.names import deprecation
from support.attempts import run_together

pytestmark = pytest.mark.usefixtures("hasty_switches")


def together(*calls: Callable[[], Any]) -> list[Any]:
    """Make the calls at the same time; return their values, or raise the first error."""
    outcomes = run_together(calls)
    for outcome in outcomes:
        if outcome.error is not None:
            raise outcome.error
    return [outcome.value for outcome in outcomes]


def gradient(number: int) -> float:
    x = tf.constant([float(number), 1.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(tf.exp(tf.sin(x)) * x)
    return float(tape.gradient(y, x)[0])


def test_operations_and_tapes_of_threads_do_not_meet() -> None:
    expected = [gradient(number) for number in range(8)]
    calls = [lambda number=number: [gradient(number) for _ in range(30)] for number in range(8)]
    assert together(*calls) == [[each] * 30 for each in expected]


def test_threads_share_a_function() -> None:
    variable = tf.Variable(1.0)

    @tf.function
    def scaled(x: Any) -> Any:
        return x * variable + tf.constant(1.0)

    calls = [lambda number=number: [float(scaled(float(number))) for _ in range(50)] for number in range(8)]
    assert together(*calls) == [[number + 1.0] * 50 for number in range(8)]


def test_no_addition_to_a_variable_is_lost() -> None:
    variable = tf.Variable(np.zeros(64, np.float32))

    def add() -> None:
        for _ in range(200):
            variable.assign_add(np.ones(64, np.float32))

    together(*[add] * 4)
    assert (variable.numpy() == 800).all()


def test_a_value_that_was_read_does_not_change() -> None:
    variable = tf.Variable(np.zeros(4096, np.float32))

    def add() -> None:
        for _ in range(150):
            variable.assign_add(np.ones(4096, np.float32))

    def read() -> None:
        for _ in range(150):
            seen = variable.read_value()
            first = seen.numpy().copy()
            assert first.min() == first.max()
            assert (seen.numpy() == first).all()

    together(add, add, read, read)
    assert (variable.numpy() == 300).all()


def test_threads_get_one_default_graph() -> None:
    for _ in range(40):
        default.reset_default_graph()
        assert len({id(graph) for graph in together(*[default.get_default_graph] * 4)}) == 1
    default.reset_default_graph()


def test_a_session_serves_threads() -> None:
    with tf.compat.v1.Graph().as_default():
        given = tf.compat.v1.placeholder(tf.float32, [])
        result = given * 2.0 + 1.0
        session = tf.compat.v1.Session()

    def run(number: int) -> list[float]:
        return [float(session.run(result, {given: number})) for _ in range(30)]

    calls = [lambda number=number: run(number) for number in range(6)]
    assert together(*calls) == [[number * 2.0 + 1.0] * 30 for number in range(6)]
    session.close()


def test_a_deprecated_name_is_reported_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    names = [f"test.operation_races.{number}" for number in range(1000)]

    def use() -> None:
        for name in names:
            deprecation.deprecated(name, "Use another.")

    together(*[use] * 4)
    reported = [name for name in names for text in caplog.messages if f" {name} is" in text]
    assert reported == names


def test_values_of_a_checkpoint_wait_for_variables_of_threads(tmp_path: Path) -> None:
    saved = {f"part{number}": tf.Variable(float(number)) for number in range(4)}
    path = tf.train.Checkpoint(**saved).write(str(tmp_path / "values"))
    for _ in range(20):
        waiting = tf.train.Checkpoint()
        status = waiting.read(path)

        def make(number: int, waiting: Any = waiting) -> None:
            setattr(waiting, f"part{number}", tf.Variable(-1.0))

        together(*[lambda number=number: make(number) for number in range(4)])
        status.assert_existing_objects_matched()
        assert [float(getattr(waiting, f"part{number}")) for number in range(4)] == [*map(float, range(4))]


def test_threads_draw_from_one_sequence() -> None:
    tf.random.set_seed(7)
    expected = sorted(float(tf.random.uniform([])) for _ in range(200))
    tf.random.set_seed(7)
    drawn = together(*[lambda: [float(tf.random.uniform([])) for _ in range(50)]] * 4)
    assert sorted(number for each in drawn for number in each) == expected


def test_names_of_layers_are_unique() -> None:
    names = together(*[lambda: [tf.keras.layers.Dense(1).name for _ in range(50)]] * 4)
    assert len({name for each in names for name in each}) == 200

"""Random numbers of graphs: where they start is the seeds' to say, and each session starts anew."""

import threading

import numpy as np
import pytest

import allotment.tf as tf

v1 = tf.compat.v1

DRAWS = {
    "uniform": lambda seed: tf.random.uniform([4], seed=seed),
    "integers": lambda seed: tf.random.uniform([4], maxval=1 << 30, dtype=tf.int32, seed=seed),
    "normal": lambda seed: tf.random.normal([4], seed=seed),
    "truncated": lambda seed: tf.random.truncated_normal([4], seed=seed),
    "shuffle": lambda seed: tf.random.shuffle(tf.range(100), seed=seed),
    "categorical": lambda seed: tf.random.categorical(tf.zeros([2, 50]), 10, seed=seed),
    "poisson": lambda seed: tf.random.poisson([8], 1000.0, seed=seed),
    "gamma": lambda seed: tf.random.gamma([4], 2.0, seed=seed),
    "dropout": lambda seed: tf.nn.dropout(tf.range(100.0), 0.5, seed=seed),
    "initializer": lambda seed: tf.random_normal_initializer(seed=seed)([4]),
}


def two_runs(graph: tf.Graph, fetches: object) -> list[list[object]]:
    with v1.Session(graph=graph, config=v1.ConfigProto()) as session:
        return [np.asarray(session.run(fetches)).tolist() for _ in range(2)]


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS.keys())
@pytest.mark.parametrize("graph_seed", [None, 5])
def test_with_a_seed_each_session_starts_anew_and_goes_on(draw: object, graph_seed: int | None) -> None:
    with tf.Graph().as_default() as graph:
        tf.random.set_seed(graph_seed)
        x, y, other = draw(3), draw(3), draw(4)  # type: ignore[operator]
    first, second = two_runs(graph, [x, y, other]), two_runs(graph, [x, y, other])
    assert first == second
    # Runs differ, nodes with the same seeds do not.
    assert first[0] != first[1]
    assert first[0][0] == first[0][1] != first[0][2]


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS.keys())
def test_a_graphs_seed_alone_counts_its_nodes(draw: object) -> None:
    with tf.Graph().as_default() as graph:
        tf.random.set_seed(5)
        x, y = draw(None), draw(None)  # type: ignore[operator]
    first, second = two_runs(graph, [x, y]), two_runs(graph, [x, y])
    assert first == second
    assert first[0][0] != first[0][1]
    with tf.Graph().as_default() as again:
        tf.random.set_seed(5)
        same = draw(None)  # type: ignore[operator]
    assert two_runs(again, [same])[0] == [first[0][0]]


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS.keys())
def test_without_seeds_sessions_differ(draw: object) -> None:
    with tf.Graph().as_default() as graph:
        x = draw(None)  # type: ignore[operator]
    assert two_runs(graph, x) != two_runs(graph, x)


def test_seeds_decide_as_in_tensorflow() -> None:
    def numbers(graph_seed: int | None, seed: int | None) -> object:
        with tf.Graph().as_default() as graph:
            v1.set_random_seed(graph_seed)
            return two_runs(graph, tf.random.uniform([4], seed=seed))

    assert numbers(1, 2) == numbers(1, 2) != numbers(2, 1)
    assert numbers(None, 2) == numbers(None, 2) != numbers(1, 2)


def test_the_seed_of_a_graph_is_its_own() -> None:
    with tf.Graph().as_default() as graph:
        tf.random.set_seed(7)
        assert graph.seed == 7
    with tf.Graph().as_default() as other:
        assert other.seed is None
    with pytest.raises(TypeError), graph.as_default():
        tf.random.set_seed("seven")


def test_a_sequence_goes_on_while_the_graph_grows() -> None:
    with tf.Graph().as_default() as graph:
        x = tf.random.uniform([4], seed=1)
        expected = two_runs(graph, x)
        with v1.Session(config=v1.ConfigProto()) as session:
            first = session.run(x).tolist()
            y = x * 2.0
            doubled = session.run(y).tolist()
    assert [first, (np.array(doubled) / 2).tolist()] == expected


def test_first_values_of_variables_follow_the_seeds() -> None:
    with tf.Graph().as_default() as graph:
        v = tf.Variable(tf.random.normal([4], seed=1))
        w = v1.get_variable("w", [4], initializer=tf.random_uniform_initializer(seed=2))
        init = v1.global_variables_initializer()

    def values() -> list[list[object]]:
        with v1.Session(graph=graph, config=v1.ConfigProto()) as session:
            session.run(init)
            first = session.run([v, w])
            assert np.array_equal(session.run([v, w]), first)
            session.run(init)
            return [np.array(each).tolist() for each in (first, session.run([v, w]))]

    first, second = values(), values()
    assert first == second
    assert first[0] != first[1]


def test_a_generator_goes_on_in_a_session_and_starts_anew_in_the_next() -> None:
    with tf.Graph().as_default() as graph:
        generator = tf.random.Generator.from_seed(3)
        x, y = generator.normal([4]), generator.normal([4])
    first = two_runs(graph, [x, y])
    assert first == two_runs(graph, [x, y])
    drawn = [*first[0], *first[1]]
    assert all(one != other for number, one in enumerate(drawn) for other in drawn[:number])
    # The first numbers are those of the generator itself.
    assert drawn[0] == generator.normal([4]).numpy().tolist()


def test_stateless_numbers_are_checked_when_they_are_drawn() -> None:
    with tf.Graph().as_default() as graph:
        low = v1.placeholder(tf.int32, [])
        x = tf.random.stateless_uniform([3], [1, 2], low, 5, tf.int32)
        with v1.Session(graph=graph, config=v1.ConfigProto()) as session:
            assert session.run(x, {low: 4}).tolist() == [4, 4, 4]
            with pytest.raises(tf.errors.InvalidArgumentError, match="Need minval < maxval, got 6 >= 5"):
                session.run(x, {low: 6})


def test_sessions_in_threads_do_not_disturb_each_other() -> None:
    with tf.Graph().as_default() as graph:
        x = tf.random.normal([64], seed=1)
        y = tf.random.uniform([64], seed=2)
        v = tf.Variable(tf.random.normal([64], seed=3))
        init = v1.global_variables_initializer()
    found: list[object] = [None] * 4
    start = threading.Barrier(len(found))

    def work(number: int) -> None:
        with v1.Session(graph=graph, config=v1.ConfigProto()) as session:
            start.wait()
            session.run(init)
            found[number] = [np.asarray(session.run([x, y, v])).tolist() for _ in range(50)]

    threads = [threading.Thread(target=work, args=(number,)) for number in range(len(found))]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert found[0] is not None
    assert all(each == found[0] for each in found)


def test_threads_of_one_session_share_its_sequences() -> None:
    with tf.Graph().as_default() as graph:
        x = tf.random.uniform([8], seed=1)
    with v1.Session(graph=graph, config=v1.ConfigProto()) as session:
        expected = sorted(session.run(x).tolist() for _ in range(40))
    found: list[object] = []
    with v1.Session(graph=graph, config=v1.ConfigProto()) as session:
        run = [lambda: found.extend(session.run(x).tolist() for _ in range(10)) for _ in range(4)]
        threads = [threading.Thread(target=each) for each in run]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    assert sorted(found) == expected  # type: ignore[type-var]

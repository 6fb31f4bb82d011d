"""Sessions: what is fetched and fed, and what is wrong with it."""

from collections import namedtuple
from collections.abc import Iterator

import numpy as np
import pytest

import allotment.tf as tf

v1 = tf.compat.v1


@pytest.fixture
def session() -> Iterator[v1.Session]:
    with tf.Graph().as_default(), v1.Session(config=v1.ConfigProto(device_count={"CPU": 2})) as session:
        yield session


Pair = namedtuple("Pair", ["one", "other"])  # as programs write them


def test_results_come_in_the_structure_of_the_fetches(session: v1.Session) -> None:
    x = tf.constant([1.0, 2.0], name="x")
    parts = tf.split(x * 3.0, 2)
    assert session.run([]) == []
    values = session.run({"pair": Pair(x, "x:0"), "list": [[x.op], (parts[1],)]})
    assert values["pair"].one.tolist() == values["pair"].other.tolist() == [1.0, 2.0]
    assert values["list"][0] == [None]
    assert values["list"][1][0].tolist() == [6.0]
    assert type(session.run(x[0])) is np.float32


def test_a_result_is_the_callers_own(session: v1.Session) -> None:
    x = tf.constant([1.0, 2.0])
    session.run(x)[:] = 7
    assert session.run(x).tolist() == [1.0, 2.0]


def test_nothing_runs_for_no_fetches(session: v1.Session) -> None:
    no_kernel = tf.linalg.svd(v1.placeholder(tf.float16, [2, 2]), compute_uv=False)
    assert session.run([]) == []
    assert session.run({"nothing": ()}) == {"nothing": ()}
    with pytest.raises(tf.errors.InvalidArgumentError, match="No OpKernel was registered"):
        session.run(no_kernel, {no_kernel.op.inputs[0]: np.eye(2, dtype=np.float16)})


@pytest.mark.parametrize(
    ("fetch", "error", "words"),
    [
        (None, TypeError, r"Argument `fetch` = None has invalid type"),
        (3, TypeError, r'Argument `fetch` = 3 has invalid type "int" must be a string or Tensor'),
        ("no", ValueError, r"refers to an Operation not in the graph"),
        ("no:0", ValueError, r"The operation, 'no', does not exist in the graph"),
        ("x:5", ValueError, r"exists but only has 1 outputs"),
        ([["x:0", None]], TypeError, "Cannot be None"),
    ],
)
def test_what_cannot_be_fetched(
    session: v1.Session, fetch: object, error: type[Exception], words: str
) -> None:
    tf.constant(1.0, name="x")
    with pytest.raises(error, match=words):
        session.run(fetch)


def test_an_element_of_another_graph_is_refused(session: v1.Session) -> None:
    tf.constant(1.0)
    with tf.Graph().as_default():
        other = tf.constant(1.0)
    with pytest.raises(ValueError, match="is not an element of this graph"):
        session.run(other)
    with pytest.raises(
        TypeError, match=r"Cannot interpret feed_dict key as Tensor.*not an element of this graph"
    ):
        session.run([], {other: 1.0})


@pytest.mark.parametrize(
    ("value", "error", "words"),
    [
        ([1, 2, 3], ValueError, r"Cannot feed value of shape \(3,\) for Tensor p:0, which has shape \(2,\)"),
        (["a", "b"], ValueError, "cannot be fed for <tf.Tensor 'p:0'"),
        ([1, 2**40], TypeError, "Type of feed value .* Try explicitly setting"),
        (tf.constant([1, 2]), TypeError, "The value of a feed cannot be a tf.Tensor object"),
    ],
)
def test_what_cannot_be_fed(session: v1.Session, value: object, error: type[Exception], words: str) -> None:
    p = v1.placeholder(tf.int32, [2], name="p")
    with pytest.raises(error, match=words):
        session.run(p + 1, {p: value})


def test_any_tensor_may_be_fed(session: v1.Session) -> None:
    x = tf.constant([1.0, 2.0], name="x")
    y = x * 2.0
    z = y + 1.0
    assert session.run(z, {y: [10.0, 20.0]}).tolist() == [11.0, 21.0]
    assert session.run([x, y], {"x:0": [5.0, 6.0]})[1].tolist() == [10.0, 12.0]
    assert session.run(z).tolist() == [3.0, 5.0]


def test_a_placeholder_that_is_not_fed(session: v1.Session) -> None:
    p = v1.placeholder(tf.float32, [None, 2], name="p")
    d = v1.placeholder_with_default(tf.constant(3.0), [])
    words = r"You must feed a value for placeholder tensor 'p' with dtype float and shape \[\?,2\]"
    with pytest.raises(tf.errors.InvalidArgumentError, match=words) as caught:
        session.run(p)
    assert caught.value.op is p.op
    assert (session.run(d), session.run(d, {d: 4.0})) == (3.0, 4.0)


def test_shapes_that_only_running_tells(session: v1.Session) -> None:
    p = v1.placeholder(tf.float32, [None, 6])
    folded = tf.reshape(p, [tf.shape(p)[0], 2, -1])
    zeros = tf.zeros(tf.shape(p))
    assert session.run([folded, zeros], {p: np.ones((4, 6))})[0].shape == (4, 2, 3)
    assert session.run(zeros, {p: np.ones((5, 6))}).shape == (5, 6)
    q = v1.placeholder(tf.float32)
    with pytest.raises(
        tf.errors.InvalidArgumentError, match=r"(?s)Node: 'add'.*Incompatible shapes: \[4,6\] vs. \[5\]"
    ):
        session.run(p + q, {p: np.ones((4, 6)), q: np.ones(5)})


def test_the_error_of_a_node_names_it_and_the_line_that_made_it(session: v1.Session) -> None:
    p = v1.placeholder(tf.int32, [], name="p")
    quotient = tf.constant(6, name="six") // p
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        session.run(quotient, {p: 0})
    text = str(caught.value)
    assert text.startswith("Graph execution error:\n\nDetected at node 'floordiv' defined at")
    assert "test_session.py" in text
    assert text.endswith("Integer division by zero\n\t [[{{node floordiv}}]]")


def test_the_error_of_a_node_lists_the_calls_of_the_program(session: v1.Session) -> None:
    def inner() -> object:
        return tf.reshape(v1.placeholder(tf.float32, name="p"), [2])

    def outer() -> object:
        return inner()

    made = outer()
    with pytest.raises(tf.errors.InvalidArgumentError) as raised:
        session.run(made, {"p:0": [1.0]})
    lines = str(raised.value).splitlines()
    calls = [line for line in lines if line.startswith(f'    File "{__file__}", line ')]
    assert [line.rpartition(" in ")[2] for line in calls[-3:]] == [
        "test_the_error_of_a_node_lists_the_calls_of_the_program",
        "outer",
        "inner",
    ]
    # The line of the call, and not that of the function.
    assert f", line {inner.__code__.co_firstlineno + 1}, " in calls[-1]
    assert lines[lines.index(calls[-1]) + 1] == "Node: 'Reshape'"
    assert "site-packages/allotment" not in str(raised.value)
    assert "allotment/ops" not in str(raised.value)


def test_names_are_texts(session: v1.Session) -> None:
    for make in (
        lambda: tf.constant(1.0, name=5),  # type: ignore[arg-type]
        lambda: v1.placeholder(tf.float32, name=5),  # type: ignore[arg-type]
        lambda: tf.matmul([[1.0]], [[1.0]], name=5),  # type: ignore[arg-type]
    ):
        with pytest.raises(TypeError, match="expected string or bytes-like object, got 'int': the name 5"):
            make()


def test_how_often_a_tensor_is_repeated_may_be_fed(session: v1.Session) -> None:
    times, once = v1.placeholder(tf.int32, [2]), v1.placeholder(tf.int32, [])
    both, columns = tf.tile([[1, 2]], times), tf.tile([[1, 2]], [1, once])
    assert (both.shape.as_list(), columns.shape.as_list()) == ([None, None], [1, None])
    found = session.run([both, columns], {times: [2, 1], once: 2})
    assert [each.tolist() for each in found] == [[[1, 2], [1, 2]], [[1, 2, 1, 2]]]
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"Expected multiples\[0\] >= 0, but got -1"):
        session.run(both, {times: [-1, 1]})


def test_nodes_that_wait_for_each_other(session: v1.Session) -> None:
    one = tf.no_op(name="one")
    with tf.control_dependencies([one]):
        two = tf.no_op(name="two")
    one._add_control_input(two)
    with pytest.raises(
        tf.errors.InvalidArgumentError, match="contains a cycle with 2 nodes, including: one, two"
    ):
        session.run(two)


def test_random_numbers_are_new_in_each_run_and_one_in_it(session: v1.Session) -> None:
    x = tf.random.uniform([3])
    first, same = session.run([x, tf.identity(x)])
    assert first.tolist() == same.tolist()
    assert session.run(x).tolist() != first.tolist()


def test_stateless_random_numbers_are_the_same_in_each_run(session: v1.Session) -> None:
    x = tf.random.stateless_uniform([3], seed=[1, 2])
    assert session.run(x).tolist() == session.run(x).tolist()
    assert len(set(session.run(x).tolist())) == 3


def test_sessions_end(session: v1.Session) -> None:
    x = tf.constant(1.0)
    with pytest.raises(RuntimeError, match="not re-entrant"), session:
        pass
    session.close()
    for use in (lambda: session.run(x), session.list_devices):
        with pytest.raises(RuntimeError, match="Attempted to use a closed Session"):
            use()


def test_eval_needs_a_session_of_the_same_graph() -> None:
    with tf.Graph().as_default():
        x = tf.constant(2.0)
        with pytest.raises(ValueError, match="No default session is registered"):
            x.eval()
        with v1.Session().as_default() as session:
            assert x.eval() == 2.0
        with tf.Graph().as_default():
            tf.constant(1.0)
            with pytest.raises(ValueError, match="graph is different"), v1.Session().as_default():
                x.eval()
        assert x.eval(session=session) == 2.0


def test_interactive_sessions_are_the_default_until_closed() -> None:
    graph = tf.Graph()
    session = v1.InteractiveSession(graph=graph)
    x = tf.constant(3.0) * 2.0
    assert x.eval() == 6.0
    session.close()
    assert v1.get_default_session() is None
    assert tf.executing_eagerly()


def test_make_callable(session: v1.Session) -> None:
    p = v1.placeholder(tf.float32, [])
    double = session.make_callable(p * 2.0, [p])
    assert double(4.0) == 8.0
    with pytest.raises(TypeError, match="1 entries"):
        double()


def test_a_traced_run_tells_of_its_nodes(session: v1.Session) -> None:
    x = tf.constant(np.ones(1000, np.float32)) * 2.0
    metadata = v1.RunMetadata()
    session.run(x, options=v1.RunOptions(trace_level=v1.RunOptions.FULL_TRACE), run_metadata=metadata)
    (device,) = metadata.step_stats.dev_stats
    (node,) = [each for each in device.node_stats if each.node_name == "mul"]
    assert node.memory[0].total_bytes == 4000
    assert node.memory[0].allocation_records[0].alloc_bytes == 4000


def test_several_threads_run_one_session(session: v1.Session) -> None:
    import threading

    p = v1.placeholder(tf.float32, [])
    y: tf.Tensor = p
    for _ in range(20):
        y = y + 1.0
    wrong: list[float] = []

    def work(value: float) -> None:
        wrong.extend(value for _ in range(50) if session.run(y, {p: value}) != value + 20)

    threads = [threading.Thread(target=work, args=(float(number),)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_there_are_no_servers() -> None:
    with pytest.raises(v1.errors.NotFoundError, match="target 'grpc://host:2222': there are no servers here"):
        v1.Session("grpc://host:2222")

"""Assertions and prints in graphs: nodes that check or write when they are run."""

from collections.abc import Callable, Iterator

import numpy as np
import pytest

import allotment.tf as tf
import allotment.tf.v1 as tf1

v1 = tf.compat.v1


@pytest.fixture
def session() -> Iterator[v1.Session]:
    with tf.Graph().as_default(), v1.Session(config=v1.ConfigProto()) as session:
        yield session


def failure(session: v1.Session, fetches: object, feeds: object = None) -> str:
    with pytest.raises(tf.errors.InvalidArgumentError) as raised:
        session.run(fetches, feeds)
    found = [line for line in str(raised.value).splitlines() if line.startswith("assertion failed: ")]
    assert found, raised.value
    return found[0].removeprefix("assertion failed: ")


def test_an_assertion_is_checked_when_it_is_run(session: v1.Session) -> None:
    x = v1.placeholder(tf.float32, [None], name="x")
    check = tf.debugging.Assert(tf.reduce_all(x > 0.0), [x], name="check")
    assert (check.type, check.name) == ("Assert", "check/AssertGuard/Assert")
    with tf.control_dependencies([check]):
        y = tf.identity(x)
    assert session.run(y, {x: [1.0]}).tolist() == [1.0]
    assert session.run(check, {x: [1.0]}) is None
    for fetch in (check, y):
        assert failure(session, fetch, {x: [-1.0, 2.0, 3.0, 4.0]}) == "[-1 2 3...]"
    # What does not wait for it does not notice.
    assert session.run(x * 2.0, {x: [-1.0]}).tolist() == [-2.0]


@pytest.mark.parametrize(
    ("data", "summarize", "text"),
    [
        (np.arange(12.0).reshape(3, 4), None, "[[0 1 2...]...]"),
        (np.arange(12.0).reshape(3, 4), 6, "[[0 1 2 3][4 5...]...]"),
        (np.arange(12.0).reshape(3, 4), -1, "[[0 1 2 3][4 5 6 7][8 9 10 11]]"),
        (np.arange(8).reshape(2, 2, 2), 8, "[[[0 1][2 3]][[4 5][6 7]]]"),
        (np.arange(8).reshape(2, 2, 2), 2, "[[[0 1]]...]"),
        (5, 0, "[...]"),
        (np.zeros([0, 3]), None, "[]"),
        ([1.1, 1 / 3, 1e30, np.nan], 9, "[1.1 0.333333343 1e+30 nan]"),
        (["a\"b'\\", "c\nd\x01é"], 9, "[a\\\"b\\'\\\\ c\\nd\\001é]"),
        (True, None, "[1]"),
    ],
)
def test_values_are_shown_as_tensorflow_shows_them(
    session: v1.Session, data: object, summarize: int | None, text: str
) -> None:
    assert failure(session, v1.Assert(False, [tf.constant(data)], summarize)) == text


def test_what_an_assertion_takes(session: v1.Session) -> None:
    assert (
        failure(session, v1.Assert(False, ["text", tf.constant([1, 2, 3, 4, 5]), 2.5], 2))
        == "[text] [1 2...] [2.5]"
    )
    for args, error, words in (
        ((tf.constant(1.0), ["x"]), TypeError, "Input 'condition' of 'Assert' Op has type float32"),
        ((True, []), ValueError, "Attr 'T' of 'Assert' Op passed list of length 0 less than minimum 1"),
        ((True, tf.constant([1, 2])), TypeError, "values must be a sequence"),
    ):
        with pytest.raises(error, match=words):
            v1.Assert(*args)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"In\[0\] should be a scalar: \[2\]"):
        session.run(v1.Assert(tf.constant([True, False]), ["x"]))


COMPARISONS = {
    "equal": ("==", [9.0, 2.0]),
    "none_equal": ("!=", [1.0, 5.0]),
    "less": ("<", [9.0, 1.0]),
    "less_equal": ("<=", [9.0, 1.0]),
    "greater": (">", [1.0, 9.0]),
    "greater_equal": (">=", [0.0, 9.0]),
}


@pytest.mark.parametrize("name", COMPARISONS)
def test_comparisons_are_checked_when_they_are_run(session: v1.Session, name: str) -> None:
    symbol, values = COMPARISONS[name]
    check = getattr(tf.debugging, f"assert_{name}")
    x = v1.placeholder(tf.float32, [None], name="x")
    node = check(x, tf.constant([1.0, 2.0]), message="hey")
    shown = "9 2" if name == "equal" else " ".join(f"{each:g}" for each in values)
    assert failure(session, node, {x: values}) == (
        f"[hey] [Condition x {symbol} y did not hold element-wise:] [x (x:0) = ] [{shown}] [y (Const:0) = ] [1 2]"
    )
    # What is known while the graph is built is raised there.
    with pytest.raises(tf.errors.InvalidArgumentError) as raised:
        check(tf.constant(values, name="a"), tf.constant([1.0, 2.0], name="b"), message="hey")
    assert str(raised.value) == (
        f"hey\nCondition x {symbol} y did not hold element-wise:\nx (a:0) = \n{np.array(values)}\ny (b:0) = \n[1. 2.]"
    )


@pytest.mark.parametrize(
    ("name", "symbol", "between"),
    [
        ("positive", ">", ":] [x (x:0) = ]"),
        ("negative", "<", ":] [x (x:0) = ]"),
        ("non_negative", ">=", ":] [x (x:0) = ]"),
        ("non_positive", "<=", ":x (x:0) = ]"),
    ],
)
def test_signs_are_checked_when_they_are_run(
    session: v1.Session, name: str, symbol: str, between: str
) -> None:
    check = getattr(tf.debugging, f"assert_{name}")
    x = v1.placeholder(tf.float32, [None], name="x")
    text = f"[] [Condition x {symbol} 0 did not hold element-wise{between} [1 -1 5...]"
    assert failure(session, check(x), {x: [1.0, -1.0, 5.0, 6.0]}) == text
    with pytest.raises(tf.errors.InvalidArgumentError, match=f"^m.  \nCondition x {symbol} 0 did not hold"):
        check(tf.constant([1.0, -1.0]), message="m")
    fine = {">": 1.0, "<": -1.0, ">=": 0.0, "<=": 0.0}[symbol]
    assert session.run(check(x), {x: [fine]}) is None


def test_distances_and_numerics(session: v1.Session) -> None:
    x = v1.placeholder(tf.float32, [None], name="x")
    node = tf.debugging.assert_near(x, [1.0, 2.0], message="m")
    assert node.name == "assert_near/Assert/AssertGuard/Assert"
    assert session.run(node, {x: [1.0, 2.0000001]}) is None
    text = failure(session, node, {x: [1.0, 2.1]})
    assert text.startswith('[m.  ] [x and y not equal to tolerance rtol = Tensor(\\"assert_near/rtol:0\\"')
    checked = tf.debugging.check_numerics(x, "bad")
    with pytest.raises(tf.errors.InvalidArgumentError, match="bad : Tensor had NaN values"):
        session.run(checked, {x: [np.nan]})


RANKS: dict[str, tuple[Callable[..., object], object, str]] = {
    "rank": (tf.debugging.assert_rank, 1, "[Tensor x:0 must have rank] [1]"),
    "rank_at_least": (tf.debugging.assert_rank_at_least, 4, "[Tensor x:0 must have rank at least] [4]"),
    "rank_in": (tf.debugging.assert_rank_in, (1, 2), "[Tensor x:0 must have rank in] [1] [2]"),
}


@pytest.mark.parametrize("name", RANKS)
def test_ranks_are_checked_when_they_are_known(session: v1.Session, name: str) -> None:
    check, wanted, told = RANKS[name]
    x = v1.placeholder(tf.float32, None, name="x")
    assert failure(session, check(x, wanted), {x: [[[1.0, -1.0]]]}) == f"[] {told} [Received shape: ] [1 1 2]"
    fits = [[[[1.0]]]] if name == "rank_at_least" else [1.0]
    assert session.run(check(x, wanted), {x: fits}) is None
    with pytest.raises(ValueError, match=r"Tensor c:0 must have rank .*Received rank 3, shape \(1, 1, 1\)"):
        check(tf.constant([[[1.0]]], name="c"), wanted)
    decided = check(tf.constant(fits), wanted)
    assert decided.type == "NoOp"  # type: ignore[attr-defined]
    assert session.run(decided) is None
    # The wanted number may be fed, too.
    number = v1.placeholder(tf.int32, [])
    again = check(tf.constant(fits), [number] if name == "rank_in" else number)
    assert session.run(again, {number: np.ndim(fits)}) is None
    assert "must have rank" in failure(session, again, {number: 5})


def test_shapes_are_checked_as_far_as_they_are_known(session: v1.Session) -> None:
    x = v1.placeholder(tf.float32, None, name="x")
    y = v1.placeholder(tf.float32, [None, None], name="y")
    check = tf.debugging.assert_shapes([(x, ("N", 2)), (y, ("N", "M"))], message="m")
    assert session.run(check, {x: [[1.0, -1.0]], y: [[1.0]]}) is None
    assert failure(session, check, {x: [[1.0, -1.0]], y: [[1.0], [2.0]]}) == (
        "[m.  ] [Specified by tensor x:0 dimension 0] [Tensor y:0 dimension] [0] [must have size] [1] "
        "[Received shape: ] [2 1]"
    )
    assert "[Specified explicitly] [Tensor x:0 dimension] [1]" in failure(
        session, check, {x: [[1.0]], y: [[1.0]]}
    )
    assert "must have rank] [2]" in failure(session, check, {x: [1.0], y: [[1.0]]})
    last = tf.debugging.assert_shapes([(x, (..., 2))])
    assert session.run(last, {x: [[[1.0, 2.0]]]}) is None
    assert "[Tensor x:0 dimension] [-1]" in failure(session, last, {x: [[[1.0]]]})
    with pytest.raises(ValueError, match=r"Tensor z:0 dimension 1 must have size 2\."):
        tf.debugging.assert_shapes([(v1.placeholder(tf.float32, [None, 3], name="z"), ("N", 2))])


def test_types_are_known_always(session: v1.Session) -> None:
    x = v1.placeholder(tf.float32, None, name="x")
    for made in (v1.assert_type(x, tf.float32), v1.assert_integer(tf.constant(1))):
        assert made.type == "NoOp"
    assert v1.assert_scalar(tf.constant(5.0)).shape == ()
    refused: list[tuple[Callable[[], object], type[Exception], str]] = [
        (lambda: v1.assert_type(x, tf.int32), TypeError, "x:0 must be of type tf.int32; got tf.float32"),
        (lambda: v1.assert_integer(x), TypeError, 'Expected "x" to be integer type.  Found: x:0 of dtype'),
        (lambda: v1.assert_scalar(x), ValueError, "Expected scalar shape for x:0, saw shape: <unknown>"),
    ]
    for call, error, words in refused:
        with pytest.raises(error, match=words):
            call()


def test_tensorflow_1_takes_data_for_the_error(session: v1.Session) -> None:
    x = v1.placeholder(tf.float32, [None], name="x")
    assert (
        failure(session, v1.assert_equal(x, x + 1.0, ["a", x], 1, "m", "scope"), {x: [1.0, 2.0]})
        == "[m] [a] [1...]"
    )
    assert failure(session, v1.assert_positive(x, ["d"], message="m"), {x: [-1.0]}) == "[d]"
    assert (
        failure(session, v1.debugging.assert_rank(x, v1.placeholder_with_default(2, []), ["r"]), {x: [1.0]})
        == "[r]"
    )
    assert session.graph.get_operation_by_name("scope/Assert/AssertGuard/Assert").type == "Assert"


def test_tensorflow_1_takes_data_eagerly() -> None:
    refused: list[tuple[Callable[[], object], str]] = [
        (lambda: v1.assert_equal(1, 2, ["a", tf.constant([5, 6])], message="m"), "m\na\n['5', '6']"),
        (lambda: v1.assert_less(3, 2, data=["x"]), "x"),
    ]
    for call, text in refused:
        with pytest.raises(tf.errors.InvalidArgumentError) as raised:
            call()
        assert str(raised.value) == text
    assert v1.assert_equal(1, 1, ["a"]) is None


def test_memory_of_a_device_is_not_copied_for_a_check() -> None:
    # The condition and the data stay where they are; the device has no room for a copy.
    with tf.Graph().as_default(), v1.Session(config=v1.ConfigProto()) as session:
        x = tf.ones([1 << 20])
        node = tf.debugging.assert_positive(x)
        tags = v1.RunMetadata()
        session.run(node, options=v1.RunOptions(trace_level=3), run_metadata=tags)
        by_name = {each.node_name: each for device in tags.step_stats.dev_stats for each in device.node_stats}
        assert not by_name[node.name].memory


def test_v1_records_assertions() -> None:
    with tf1.Graph().as_default(), tf1.Session() as session:
        x = tf1.placeholder(tf1.int32, [], name="x")
        with tf1.control_dependencies([tf1.assert_less(x, 3)]):
            y = x + 1
        assert session.run(y, {x: 2}) == 3
        assert failure(session, y, {x: 3}).startswith("[Condition x < y did not hold element-wise:]")


def test_prints_write_when_they_are_run(session: v1.Session, capfd: pytest.CaptureFixture[str]) -> None:
    import sys

    x = v1.placeholder(tf.float32, [None], name="x")
    shown = tf.print("hello", x, {"a": x}, output_stream=sys.stdout)
    plain = tf.print("to stderr", end="!")
    assert (shown.type, shown.name) == ("PrintV2", "PrintV2")
    assert capfd.readouterr() == ("", "")
    assert session.run(shown, {x: [1.0, 2.0]}) is None
    assert capfd.readouterr().out == "hello [1 2] {'a': [1 2]}\n"
    with tf.control_dependencies([plain]):
        y = x + 1.0
    for _ in range(2):
        session.run(y, {x: [1.0]})
    assert capfd.readouterr().err == "to stderr!" * 2

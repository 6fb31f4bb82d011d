"""Variables of graphs: names, first values, changes, and what happens without them."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import allotment.tf as tf

v1 = tf.compat.v1


@pytest.fixture
def session() -> Iterator[v1.Session]:
    with tf.Graph().as_default(), v1.Session(config=v1.ConfigProto()) as session:
        yield session


@pytest.fixture(params=[True, False], ids=["resource", "reference"])
def resource(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


def variable(value: object, resource: bool, name: str = "v") -> tf.Variable:
    make: object = tf.Variable
    return make(value, name=name, use_resource=resource)  # type: ignore[operator, no-any-return]


def test_a_variable_has_a_value_once_it_is_initialized(session: v1.Session, resource: bool) -> None:
    v = variable([1.0, 2.0], resource)
    words = "Could not find variable v" if resource else "Attempting to use uninitialized value v"
    with pytest.raises(tf.errors.FailedPreconditionError, match=words):
        session.run(v)
    assert not session.run(v.is_initialized())
    session.run(v1.global_variables_initializer())
    assert session.run(v.is_initialized())
    assert session.run(v).tolist() == [1.0, 2.0]
    assert session.run(v + 1.0).tolist() == [2.0, 3.0]


def test_a_variable_changes_in_its_session_alone(session: v1.Session, resource: bool) -> None:
    v = variable([1.0, 2.0], resource)
    add, take, replace = v.assign_add([1.0, 1.0]), v.assign_sub([2.0, 2.0]), v.assign([7.0, 8.0])
    init = v1.global_variables_initializer()
    with v1.Session() as other:
        for each in (session, other):
            each.run(init)
        assert session.run(add).tolist() == [2.0, 3.0]
        assert session.run(add).tolist() == [3.0, 4.0]
        assert session.run(take).tolist() == [1.0, 2.0]
        assert session.run(replace).tolist() == [7.0, 8.0]
        assert other.run(v).tolist() == [1.0, 2.0]


def test_constants_and_fed_values_stay_as_they_are(session: v1.Session, resource: bool) -> None:
    first = tf.constant([1.0, 2.0])
    v = variable(first, resource)
    p = v1.placeholder(tf.float32, [2])
    replace, add = v.assign(p), v.assign_add([1.0, 1.0])
    session.run(v1.global_variables_initializer())
    session.run(add)
    fed = np.array([5.0, 6.0], np.float32)
    session.run(replace, {p: fed})
    session.run(add)
    assert (fed.tolist(), session.run(first).tolist()) == ([5.0, 6.0], [1.0, 2.0])


def test_names_are_tensorflows() -> None:
    with tf.Graph().as_default() as graph:
        variable(1.0, True, "r")
        variable(1.0, False, "s")
        names = [(each.name, each.type) for each in graph.get_operations()]
    assert names == [
        ("r/initial_value", "Const"),
        ("r", "VarHandleOp"),
        ("r/Assign", "AssignVariableOp"),
        ("r/IsInitialized/VarIsInitializedOp", "VarIsInitializedOp"),
        ("r/Read/ReadVariableOp", "ReadVariableOp"),
        ("s/initial_value", "Const"),
        ("s", "VariableV2"),
        ("s/Assign", "Assign"),
        ("s/read", "Identity"),
    ]


def test_control_dependencies_order_reads_and_changes(session: v1.Session) -> None:
    v = variable(1.0, True)
    with tf.control_dependencies([v.assign_add(1.0, read_value=False)]):
        after = v.read_value()
    session.run(v1.global_variables_initializer())
    assert [session.run(after) for _ in range(3)] == [2.0, 3.0, 4.0]


def test_who_waits_for_a_change_sees_it(session: v1.Session, resource: bool) -> None:
    mean, step = variable(0.0, resource, "mean"), variable(0, resource, "step")
    p = v1.placeholder(tf.float32, [])
    before = mean * 10.0
    change = mean.assign(0.9 * mean + 0.1 * p, read_value=False)
    with tf.control_dependencies([change, step.assign_add(1, read_value=False)]):
        after = tf.identity(mean)
        product = mean * mean
        count = tf.identity(step)
    session.run(v1.global_variables_initializer())
    expected = 0.0
    for number in (1.0, 2.0, 3.0):
        was, expected = expected, 0.9 * expected + 0.1 * number
        found = session.run([before, after, product, count], {p: number})
        assert np.allclose(found, [10 * was, expected, expected**2, number])
    # A reference variable that is fed is not read.
    if not resource:
        assert session.run(mean * 2.0, {mean: 4.0}) == 8.0


def test_a_reference_variable_is_fetched_last(session: v1.Session) -> None:
    v = variable(1.0, False)
    add = v.assign_add(1.0)
    session.run(v.initializer)
    assert session.run([v, add, v.op.name + "/read:0"]) == [2.0, 2.0, 2.0]


def test_counters_count_to_a_thousand(session: v1.Session, resource: bool) -> None:
    v = variable(0, resource)
    count = v.assign_add(1)
    session.run(v1.global_variables_initializer())
    assert [session.run(count) for _ in range(1000)][-1] == 1000


def test_wrong_shapes_are_refused(session: v1.Session, resource: bool) -> None:
    v = variable([1.0, 2.0], resource)
    with pytest.raises(ValueError, match="Shape mismatch"):
        v.assign([1.0])
    p = v1.placeholder(tf.float32)
    change = v.assign_add(p)
    session.run(v1.global_variables_initializer())
    with pytest.raises(tf.errors.InvalidArgumentError, match="shapes must be equal"):
        session.run(change, {p: [1.0, 2.0, 3.0]})
    assert session.run(v).tolist() == [1.0, 2.0]


def test_load_and_collections(session: v1.Session) -> None:
    v = variable([1.0], True)
    v.load([3.0])
    assert session.run(v).tolist() == [3.0]
    assert v1.global_variables() == v1.trainable_variables() == [v]


def test_a_variable_is_one_of_the_package(session: v1.Session) -> None:
    assert isinstance(variable(1.0, True), tf.Variable)
    assert tf.is_tensor(variable(1.0, False))


def test_scatters(session: v1.Session) -> None:
    v = variable([1.0, 2.0, 3.0], True)
    change = v.scatter_nd_add([[0], [2]], [10.0, 20.0])
    session.run(v1.global_variables_initializer())
    assert session.run(change).tolist() == [11.0, 2.0, 23.0]


def test_assigning_may_change_the_shape_of_a_reference_variable(session: v1.Session) -> None:
    v = variable([1.0, 2.0, 3.0], False)
    short = v1.assign(v, [1.0, 2.0], validate_shape=False)
    assert short.shape == (2,)
    back = v1.assign(v, [4.0, 5.0, 6.0])
    session.run(v.initializer)
    assert session.run(short).tolist() == session.run(v).tolist() == [1.0, 2.0]
    assert session.run(v + 1.0).tolist() == [2.0, 3.0]
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"lhs shape= \[2\] rhs shape= \[3\]"):
        session.run(back)
    kept = variable([1.0, 2.0], True, "kept")
    with pytest.raises(ValueError, match="Shape mismatch"):
        v1.assign(kept, [1.0], validate_shape=False)


def test_a_first_value_of_unknown_shape_needs_leave(session: v1.Session) -> None:
    p = v1.placeholder(tf.float32)
    make: object = tf.Variable
    with pytest.raises(ValueError, match=r"initial_value must have a shape .*validate_shape=False"):
        make(p, use_resource=False)  # type: ignore[operator]
    v = make(p, use_resource=False, validate_shape=False)  # type: ignore[operator]
    assert v.shape.rank is None
    for value in ([1.0, 2.0], [[3.0]]):
        session.run(v.initializer, {p: value})
        assert session.run(v).tolist() == value


def test_the_first_value_stands_for_one_that_is_missing(session: v1.Session, resource: bool) -> None:
    v = variable(2.0, resource)
    first: Any = v.initialized_value
    w = variable(first() * 3.0, resource, "w")
    session.run(w.initializer)
    assert session.run(w) == 6.0
    session.run(v.initializer)
    session.run(v.assign(5.0))
    session.run(w.initializer)
    assert session.run(w) == 15.0


def test_augmented_assignment_makes_a_tensor_of_a_reference_variable(session: v1.Session) -> None:
    v = variable([1.0, 2.0], False)
    session.run(v.initializer)
    for change, expected in (
        ("__iadd__", [3.0, 4.0]),
        ("__isub__", [-1.0, 0.0]),
        ("__imul__", [2.0, 4.0]),
        ("__itruediv__", [0.5, 1.0]),
        ("__ipow__", [1.0, 4.0]),
    ):
        made = getattr(v, change)(2.0)
        assert not isinstance(made, tf.Variable)
        assert session.run(made).tolist() == expected
    with pytest.raises(RuntimeError, match=r"Use `variable.assign_add\(value\)` to modify"):
        variable([1.0], True, "w").__iadd__(1.0)  # type: ignore[attr-defined]


scatters = pytest.mark.parametrize(
    ("name", "indices", "updates", "expected"),
    [
        ("scatter_update", [0, 2], [9.0, 8.0], [9.0, 2.0, 8.0]),
        ("scatter_add", [1, 1], [1.0, 1.0], [1.0, 4.0, 3.0]),
        ("scatter_sub", 0, 1.0, [0.0, 2.0, 3.0]),
        ("scatter_mul", [[0], [2]], 2.0, [2.0, 2.0, 6.0]),
        ("scatter_div", [1, 1], 2.0, [1.0, 0.5, 3.0]),
        ("scatter_min", [2], [0.5], [1.0, 2.0, 0.5]),
        ("scatter_max", [0], [5.0], [5.0, 2.0, 3.0]),
        ("scatter_nd_update", [[0]], [7.0], [7.0, 2.0, 3.0]),
        ("scatter_nd_add", [[0]], [7.0], [8.0, 2.0, 3.0]),
        ("scatter_nd_sub", [[0]], [7.0], [-6.0, 2.0, 3.0]),
    ],
)


@scatters
def test_functions_change_variables_at_places(
    session: v1.Session, resource: bool, name: str, indices: object, updates: object, expected: list[float]
) -> None:
    change = getattr(v1, name)
    v = variable([1.0, 2.0, 3.0], resource)
    made = change(v, indices, updates)
    session.run(v.initializer)
    assert session.run(made).tolist() == session.run(v).tolist() == expected


@scatters
def test_functions_change_eager_variables_at_places(
    name: str, indices: object, updates: object, expected: list[float]
) -> None:
    v = tf.Variable([1.0, 2.0, 3.0])
    assert isinstance(getattr(v1, name)(v, indices, updates), tf.Variable)
    assert v.numpy().tolist() == expected
    with pytest.raises(
        tf.errors.InvalidArgumentError, match=r"indices\[0\] = 7 is not in \[0, 3\) \[Op:ResourceScatterAdd\]"
    ):
        v1.scatter_add(v, [7], [1.0])


def test_places_are_checked(session: v1.Session, resource: bool) -> None:
    v = variable([[1, 2], [3, 4], [5, 6]], resource)
    session.run(v.initializer)
    for made, words in (
        (v1.scatter_add(v, [5], [[1, 1]]), r"indices\[0\] = 5 is not in \[0, 3\)"),
        (v1.scatter_add(v, [[0, -1]], 1), r"indices\[0,1\] = -1 is not in \[0, 3\)"),
        (
            v1.scatter_add(v, [0], [1, 1]),
            r"got updates.shape \[2\], indices.shape \[1\], params.shape \[3,2\]",
        ),
    ):
        with pytest.raises(tf.errors.InvalidArgumentError, match=words):
            session.run(made)
    # Quotients of integers are cut.
    assert session.run(v1.scatter_div(v, [1], 2)).tolist() == [[1, 2], [1, 2], [5, 6]]


def test_variables_without_a_value_are_reported(session: v1.Session) -> None:
    a = v1.get_variable("a", [2])
    b = variable(1.0, False, "b")
    v1.get_local_variable("c", [1])
    report = v1.report_uninitialized_variables()
    of_one = v1.report_uninitialized_variables([a], name="of_one")
    assert report.name.startswith("report_uninitialized_variables/")
    assert session.run(report).tolist() == [b"a", b"b", b"c"]
    session.run(a.initializer)
    assert session.run(report).tolist() == [b"b", b"c"]
    assert session.run([v1.is_variable_initialized(a), v1.is_variable_initialized(b)]) == [True, False]
    assert session.run(of_one).tolist() == session.run(v1.report_uninitialized_variables([])).tolist() == []
    session.run([v1.global_variables_initializer(), v1.local_variables_initializer()])
    assert session.run(report).tolist() == []

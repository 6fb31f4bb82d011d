"""Variables of graphs: names, first values, changes, and what happens without them."""

from collections.abc import Iterator

import pytest

import allotment as tf

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
    import numpy as np

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


def test_get_variable_makes_each_name_once(session: v1.Session) -> None:
    v1.get_variable("w", [2, 3])
    with pytest.raises(ValueError, match="Variable w already exists"):
        v1.get_variable("w", [2, 3])
    with pytest.raises(ValueError, match=r"Shape of a new variable \(u\) must be fully defined"):
        v1.get_variable("u")
    ones = v1.get_variable("ones", [2], initializer=tf.ones_initializer())
    session.run(v1.global_variables_initializer())
    assert session.run(ones).tolist() == [1.0, 1.0]


def test_a_variable_is_one_of_the_package(session: v1.Session) -> None:
    assert isinstance(variable(1.0, True), tf.Variable)
    assert tf.is_tensor(variable(1.0, False))


def test_scatters(session: v1.Session) -> None:
    v = variable([1.0, 2.0, 3.0], True)
    change = v.scatter_nd_add([[0], [2]], [10.0, 20.0])
    session.run(v1.global_variables_initializer())
    assert session.run(change).tolist() == [11.0, 2.0, 23.0]

"""Descriptions of nodes, and device functions of clusters. What is expected was observed on TensorFlow."""

from typing import Any

import pytest

import allotment.tf as tf
from support.devices import run_on_gpus

v1 = tf.compat.v1
PS, WORKER = "/job:ps/task:", "/job:worker"


def test_a_device_function_sees_the_description_of_a_node() -> None:
    seen = []

    def function(op: Any) -> str:
        seen.append((op.node_def.name, op.node_def.op, list(op.node_def.input), op.node_def.device))
        return "/cpu:0"

    with tf.Graph().as_default(), v1.device(function):
        x = v1.placeholder(tf.float32, [None, 2], name="x")
        y = tf.matmul(x, tf.constant([[1.0], [2.0]], name="c"), name="y")
        with tf.control_dependencies([x]):
            q = tf.identity(y, name="q")
    assert seen == [
        ("x", "Placeholder", [], ""),
        ("c", "Const", [], ""),
        ("y", "MatMul", ["x", "c"], ""),
        ("q", "Identity", ["y", "^x"], ""),
    ]
    described: Any = y.op.node_def
    number = described.attr["T"].type
    assert (described.device, number, tf.as_dtype(number)) == ("/cpu:0", 1, tf.float32)
    assert [each.size for each in x.op.node_def.attr["shape"].shape.dim] == [-1, 2]
    assert str(x.op.node_def.attr["dtype"]) == "type: DT_FLOAT\n"
    assert (described.attr["foo"].b, described.attr["foo"].s, "T" in described.attr) == (False, b"", True)
    assert str(q.op.node_def).startswith(
        'name: "q"\nop: "Identity"\ninput: "y"\ninput: "^x"\ndevice: "/cpu:0"\n'
    )
    assert x.op.get_attr("dtype") is tf.float32
    with pytest.raises(ValueError, match="Operation 'y' has no attr named 'foo'"):
        y.op.get_attr("foo")
    described.name = "z"
    assert y.op.name == "y"
    assert str(v1.NodeDef(name="a", op="B", input=["c"])) == 'name: "a"\nop: "B"\ninput: "c"\n'


CLUSTER = {"ps": ["a:1", "b:1"], "worker": ["c:1"]}


@pytest.mark.parametrize(
    ("arguments", "devices"),
    [
        ({"ps_tasks": 2}, [f"{PS}0", f"{PS}1", WORKER, f"{PS}0/device:GPU:3", f"{WORKER}/device:GPU:3"]),
        (
            {"ps_tasks": 2, "ps_device": "/job:ps/cpu:0", "worker_device": "/gpu:1"},
            [
                f"{PS}0/device:CPU:0",
                f"{PS}1/device:CPU:0",
                "/device:GPU:1",
                f"{PS}0/device:GPU:3",
                "/device:GPU:3",
            ],
        ),
        ({"cluster": CLUSTER}, [f"{PS}0", f"{PS}1", WORKER, f"{PS}0/device:GPU:3", f"{WORKER}/device:GPU:3"]),
        (
            {"ps_tasks": 1, "merge_devices": False, "worker_device": "/gpu:0"},
            [f"{PS}0", f"{PS}0", "/device:GPU:0", "/device:GPU:3", "/device:GPU:3"],
        ),
        (
            {"ps_tasks": 2, "ps_strategy": lambda op: 1},
            [f"{PS}1", f"{PS}1", WORKER, f"{PS}1/device:GPU:3", f"{WORKER}/device:GPU:3"],
        ),
        (
            {"ps_tasks": 2, "worker_device": None},
            [f"{PS}0", f"{PS}1", "", f"{PS}0/device:GPU:3", "/device:GPU:3"],
        ),
    ],
)
def test_variables_are_spread_over_tasks(arguments: Any, devices: list[str]) -> None:
    with tf.Graph().as_default(), v1.device(v1.train.replica_device_setter(**arguments)):
        a = v1.get_variable("a", [2], use_resource=False)
        b = v1.get_variable("b", [2], use_resource=True)
        c = tf.constant(1.0)
        with v1.device("/gpu:3"):
            d = v1.get_variable("d", [2], use_resource=False)
            e = a + 1.0
    assert [each.device for each in (a, b, c, d, e)] == devices
    assert a.initializer.device == a.device


def test_clusters() -> None:
    spec = tf.train.ClusterSpec(CLUSTER | {"worker": {1: "x:2", 3: "y:1"}})
    assert spec.as_dict() == {"ps": ["a:1", "b:1"], "worker": {1: "x:2", 3: "y:1"}}
    assert (spec.jobs, spec.num_tasks("worker"), spec.task_indices("worker")) == (["ps", "worker"], 2, [1, 3])
    assert spec.job_tasks("worker") == [None, "x:2", None, "y:1"]
    assert spec.task_address("worker", 3) == "y:1"
    assert spec == tf.train.ClusterSpec(spec) != tf.train.ClusterSpec(CLUSTER)
    setter = v1.train.replica_device_setter
    assert setter() is setter(cluster={"worker": ["c:1"]}) is None
    for call, error, text in (
        (lambda: spec.num_tasks("foo"), ValueError, "No such job in cluster: 'foo'"),
        (lambda: spec.task_address("worker", 0), ValueError, "No task with index 0 in job 'worker'"),
        (lambda: tf.train.ClusterSpec(3), TypeError, "must be a dictionary mapping one or more job names"),
        (lambda: tf.train.ClusterSpec({"ps": [3]}), TypeError, "Task address 3 must be bytes or unicode"),
        (lambda: setter(2, ps_strategy=3), TypeError, "ps_strategy must be callable, not 3"),
    ):
        with pytest.raises(error, match=text):
            call()


def test_variables_are_whole_on_the_device_that_a_function_says() -> None:
    done = run_on_gpus(
        "2:64MiB",
        """
import allotment.tf.v1 as tf
def setter(op):
    return "/cpu:0" if op.type in ("VariableV2", "VarHandleOp") else "/gpu:1"
for resource in (False, True):
    tf.reset_default_graph()
    with tf.device(setter):
        w = tf.get_variable("w", [2, 3], initializer=tf.zeros_initializer(), use_resource=resource)
        loss = tf.reduce_sum(tf.matmul([[1.0, 2.0]], w) ** 2 - w)
        step = tf.train.MomentumOptimizer(0.1, 0.9).minimize(loss)
        more = w.assign_add(tf.ones([2, 3]))
    assert w.initializer.device == "/cpu:0" and loss.op.device == "/gpu:1"
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(step)
        assert abs(sess.run(more)[0, 0] - 1.1) < 1e-6
""",
    )
    assert done.returncode == 0, done.stderr

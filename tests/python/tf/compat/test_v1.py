"""``allotment.tf.v1``: programs of TensorFlow 1 as they stand, beside eager ones."""

from support.child import run_program


def run(program: str) -> list[str]:
    done = run_program("import allotment\nallotment.testing.simulate_gpus('1:64MiB')\n" + program)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_program_of_the_guide_runs() -> None:
    assert run("""
import allotment.tf.v1 as tf
x = tf.placeholder(tf.float32, [None, 2], name="x")
with tf.name_scope("layer"), tf.device("/gpu:0"):
    w = tf.Variable(tf.ones([2, 1]), name="w")
    y = tf.nn.relu(tf.matmul(x, w) - 1.0)
with tf.colocate_with(w):
    beside = tf.random_uniform([2])
with tf.name_scope(None, "default"):
    assert tf.constant(1.0).name == "default/Const:0"
assert beside.device == "/device:GPU:0"
step = tf.Variable(0, trainable=False, name="step")
with tf.control_dependencies([w.assign_add([[1.0], [1.0]])]):
    more = tf.assign_add(step, 1)
with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as sess:
    sess.run(tf.global_variables_initializer())
    print(sess.run(y, feed_dict={x: [[1.0, 2.0], [0.0, 0.5]]}).tolist())
    print(sess.run(more), sess.run(more), w.eval().tolist())
print(w.name, w.op.type, y.name, y.device, [v.name for v in tf.trainable_variables()])
""") == [
        "[[2.0], [0.0]]",
        "1 2 [[3.0], [3.0]]",
        "layer/w:0 VariableV2 layer/Relu:0 /device:GPU:0 ['layer/w:0']",
    ]


def test_the_rest_of_the_process_stays_eager() -> None:
    assert run("""
import allotment.tf.v1 as tf1
import allotment.tf as tf
node = tf1.constant(1.0)
print(tf.executing_eagerly(), tf1.executing_eagerly(), tf.constant(2.0).numpy(), node.name)
print(tf.Variable(3.0).numpy(), tf1.get_default_graph() is node.graph)
tf1.reset_default_graph()
print(tf1.constant(1.0).name, tf1.get_default_graph() is node.graph)
with tf.Graph().as_default() as graph:
    print(tf1.constant(1.0).graph is graph)
    try:
        tf1.reset_default_graph()
    except AssertionError as error:
        print(str(error)[:24])
""") == [
        "True False 2.0 Const:0",
        "3.0 True",
        "Const:0 False",
        "True",
        "Do not use tf.reset_defa",
    ]


def test_eager_execution_can_be_switched_off() -> None:
    assert run("""
import threading
import allotment.tf as tf
v1 = tf.compat.v1
eager = tf.constant(1.0) + 1.0
v1.disable_v2_behavior()
x = tf.constant(2.0) * 3.0
v = tf.Variable(1.0)
print(tf.executing_eagerly(), x.name, v.op.type, v1.get_default_graph() is x.graph, eager.numpy())
def work():
    print(tf.constant(1.0).graph is x.graph)
thread = threading.Thread(target=work)
thread.start()
thread.join()
v1.reset_default_graph()
print(tf.constant(1.0).graph is x.graph)
try:
    v1.enable_eager_execution()
except ValueError as error:
    print(error)
""") == [
        "False mul:0 VariableV2 True 2.0",
        "True",
        "False",
        "tf.enable_eager_execution must be called at program startup.",
    ]


def test_names_are_those_of_compat_v1() -> None:
    assert run("""
import allotment.tf.v1 as tf
import allotment
package = allotment.tf
print(tf.float32 is package.float32, tf.errors is package.errors, tf.Session is package.compat.v1.Session)
print({"Session", "constant", "nn", "placeholder"} <= set(dir(tf)))
for name in ("nothing", "testing", "varable_scope", "nn.nothing", "nn.reluu"):
    try:
        space, _, last = name.rpartition(".")
        getattr(tf.nn if space else tf, last)
    except AttributeError as error:
        print(error)
""") == [
        "True True True",
        "True",
        "module 'allotment.tf.v1' has no attribute 'nothing'",
        "module 'allotment.tf.v1' has no attribute 'testing'; there is 'string'",
        "module 'allotment.tf.v1' has no attribute 'varable_scope'; there is 'variable_scope'",
        "module 'allotment.tf.v1.nn' has no attribute 'nothing'",
        "module 'allotment.tf.v1.nn' has no attribute 'reluu'; there is 'relu'",
    ]


def test_names_and_arguments_that_are_gone_since() -> None:
    assert run("""
import allotment.tf.v1 as tf
from allotment.tf.compat.functions.aliases import MOVED
x = tf.random_uniform([2, 3], seed=1)
parts = [
    tf.reduce_sum(x, reduction_indices=[1], keep_dims=True),
    tf.argmax(x, dimension=1),
    tf.to_int32(tf.log(x + 1.0) * 100.0),
    tf.squeeze(tf.expand_dims(x, dim=0), squeeze_dims=[0]),
]
print([str(part.shape) for part in parts], parts[2].name)
try:
    tf.reduce_sum(x, axis=1, reduction_indices=1)
except ValueError as error:
    print(error)
print(all(callable(getattr(tf, name)) for name in MOVED))
""") == [
        "['(2, 1)', '(2,)', '(2, 3)', '(2, 3)'] ToInt32:0",
        "Cannot specify both 'axis' and 'reduction_indices'.",
        "True",
    ]

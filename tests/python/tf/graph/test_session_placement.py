"""Where sessions put nodes, and what they say of it."""

import pytest

from support.child import run_program

J = "/job:localhost/replica:0/task:0/device:"


def run(text: str, gpus: str = "2:64MiB", status: int = 0) -> tuple[list[str], str]:
    setup = f"import allotment, allotment.tf as tf\nallotment.testing.simulate_gpus({gpus!r})\nv1 = tf.compat.v1\n"
    done = run_program(setup + text)
    assert done.returncode == status, done.stderr
    return done.stdout.splitlines(), done.stderr


def places(text: str, gpus: str = "2:64MiB", **options: object) -> dict[str, str]:
    """Where the nodes of a graph go, by name."""
    config = ", ".join(f"{name}={value!r}" for name, value in options.items())
    body = "".join(f"    {line}\n" for line in text.strip().splitlines())
    lines, _ = run(
        f"with tf.Graph().as_default():\n{body}"
        f"    v1.Session(config=v1.ConfigProto(log_device_placement=True, {config})).run(tf.no_op())\n",
        gpus,
    )
    return {line.partition(": ")[0]: line.rpartition("device:")[2] for line in lines}


def test_gpus_come_first_and_wishes_hold() -> None:
    found = places("""
a = tf.constant([1.0, 2.0], name="a")
with tf.device("/cpu:0"):
    b = tf.add(a, a, name="b")
with tf.device("/gpu:1"):
    c = tf.add(b, b, name="c")
tf.add(b, c, name="d")
tf.strings.join(["x", "y"], name="text")
""")
    assert {name: found[name] for name in "abcd"} == {"a": "CPU:0", "b": "CPU:0", "c": "GPU:1", "d": "GPU:0"}
    assert found["text"] == "CPU:0"


def test_what_only_looks_at_shapes_stays_with_its_input() -> None:
    found = places("""
with tf.device("/gpu:1"):
    x = tf.random.uniform([2, 2], name="x") + 1.0
tf.shape(x, name="shape")
""")
    assert found["shape"] == "GPU:1"


def test_variables_are_one_with_what_reads_and_changes_them() -> None:
    found = places("""
with tf.device("/gpu:1"):
    v = tf.Variable([1.0], name="v")
v.assign_add([1.0], name="more")
tf.add(v, v, name="sum")
""")
    assert {found[name] for name in ("v", "v/Assign", "more", "v/Read/ReadVariableOp")} == {"GPU:1"}
    assert found["sum"] == "GPU:0"


def test_colocation_and_functions() -> None:
    found = places("""
with tf.device("/gpu:1"):
    a = tf.random.uniform([2, 2], name="a")
with v1.colocate_with(a):
    tf.exp(a, name="beside")
with v1.device(lambda node: "/cpu:0" if node.type == "Exp" else "/gpu:1"):
    tf.sqrt(tf.exp(a, name="chosen"), name="other")
""")
    assert [found[name] for name in ("beside", "chosen", "other")] == ["GPU:1", "CPU:0", "GPU:1"]


@pytest.mark.parametrize(
    ("wish", "words"),
    [
        ("/gpu:5", "was explicitly assigned to /device:GPU:5 but available devices are [ "),
        ("/device:FOO:0", "was explicitly assigned to /device:FOO:0 but"),
        ("/job:*/cpu:0", ""),
    ],
)
def test_a_wish_that_cannot_be_met(wish: str, words: str) -> None:
    lines, _ = run(f"""
with tf.Graph().as_default():
    with tf.device({wish!r}):
        x = tf.constant([1.0], name="x")
    try:
        print(v1.Session(config=v1.ConfigProto()).run(x))
    except tf.errors.InvalidArgumentError as error:
        print(error.op.name, error)
    print(v1.Session(config=v1.ConfigProto(allow_soft_placement=True)).run(x))
""")
    assert words in "\n".join(lines)
    assert lines[-1] == "[1.]"
    assert ("Cannot assign a device for operation x" in "\n".join(lines)) is bool(words)


def test_a_device_without_a_kernel() -> None:
    lines, _ = run("""
with tf.Graph().as_default():
    with tf.device("/gpu:0"):
        x = tf.constant("text", name="x")
    try:
        v1.Session(config=v1.ConfigProto()).run(x)
    except tf.errors.InvalidArgumentError as error:
        print(error)
""")
    wish = "'/device:GPU:0' because no supported kernel for GPU devices is available."
    assert f"Could not satisfy explicit device specification {wish}" in "\n".join(lines)


def test_wishes_that_contradict_each_other() -> None:
    program = """
with tf.Graph().as_default():
    with tf.device("/gpu:1"):
        a = tf.random.uniform([2], name="a")
    with v1.colocate_with(a), tf.device(None), tf.device("/gpu:0"):
        b = tf.exp(a, name="b")
    b.op._set_device("/gpu:0")
    for soft in (False, True):
        try:
            print(v1.Session(config=v1.ConfigProto(allow_soft_placement=soft)).run(b).shape)
        except tf.errors.InvalidArgumentError as error:
            print(error)
"""
    lines, _ = run(program)
    assert "Cannot colocate nodes" in "\n".join(lines)
    assert lines[-1] == "(2,)"


def test_the_mapping_and_the_nodes_are_logged() -> None:
    lines, log = run("""
with tf.Graph().as_default():
    x = tf.constant([1.0], name="x") * 2.0
    v1.Session(config=v1.ConfigProto(log_device_placement=True)).run(x)
""")
    node = f"mul: (Mul): {J}GPU:0"
    assert lines[0] == node
    assert log.splitlines()[:2] == [
        "Device mapping:",
        f"{J}GPU:0 -> device: 0, name: Simulated GPU (hardware 0, 64 MiB of host memory), pci bus id: simulated, "
        "compute capability: 0.0",
    ]
    assert node in log


def test_a_session_chooses_and_splits_gpus() -> None:
    lines, _ = run(
        """
def devices(**options):
    gpu = v1.GPUOptions(**options)
    made = v1.Session(graph=tf.Graph(), config=v1.ConfigProto(gpu_options=gpu, device_count={"GPU": 3}))
    return [(each.name[-5:], each.memory_limit_bytes >> 20) for each in made.list_devices()[1:]]
split = v1.GPUOptions.Experimental(virtual_devices=[{"memory_limit_mb": [8, 16]}, {"memory_limit_mb": [4]}])
print(devices(experimental=split, visible_device_list="1,0"))
for wrong in ("7", "0,0", "x"):
    try:
        devices(visible_device_list=wrong)
    except tf.errors.InvalidArgumentError as error:
        print(error)
try:
    devices(visible_device_list="0")
except tf.errors.AlreadyExistsError as error:
    print(str(error)[:87])
""",
    )
    assert lines == [
        "[('GPU:0', 8), ('GPU:1', 16), ('GPU:2', 4)]",
        "'visible_device_list' listed an invalid Device id '7' but visible device count is 2",
        "visible_device_list contained a duplicate entry: 0,0",
        "Could not parse entry in 'visible_device_list': 'x'. visible_device_list = x",
        "TensorFlow device (GPU:0) is being mapped to multiple devices (0 now, and 1 previously)",
    ]

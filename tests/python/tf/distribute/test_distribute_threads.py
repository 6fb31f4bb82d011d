"""Threads of replicas: kept from step to step, beside others, interrupted, forked, at the end of a program."""

import gc
import time
from functools import partial
from typing import Any

import pytest

import allotment
import allotment.tf as tf
from allotment.testing import runtime
from support.attempts import run_together
from support.devices import run_on_gpus
from support.tf.replicas import MIB, ctx, in_use, own, raised, rid, run


def test_threads_are_kept_from_step_to_step() -> None:
    run("""
s = tf.distribute.MirroredStrategy()
seen = set()
for _ in range(300):
    seen.update(s.run(threading.get_ident).values)
assert len(seen) == 2 and threading.active_count() == 3
assert all(each.daemon for each in threading.enumerate()[1:])
""")


@runtime("4:16MiB")
def test_many_steps_leave_nothing_behind() -> None:
    s = tf.distribute.MirroredStrategy()
    with s.scope():
        v: Any = tf.Variable(tf.zeros([100]), aggregation=tf.VariableAggregation.SUM)
        count = tf.Variable(
            0.0, synchronization=tf.VariableSynchronization.ON_READ, aggregation=tf.VariableAggregation.SUM
        )
    before = in_use()

    def step(x):
        count.assign_add(own())
        total = ctx().all_reduce("SUM", x)
        v.assign_add(total)
        return ctx().all_gather(total, axis=0)

    gc.disable()
    try:
        for _ in range(1500):
            x = s.experimental_distribute_values_from_function(lambda c: tf.ones([100]))
            made = s.run(step, args=(x,))
            assert made.values[1].shape == (400,)
        del made, x
        assert in_use() == before
    finally:
        gc.enable()
    assert v.numpy()[0] == 1500 * 4 * 4
    assert count.numpy() == 1500 * 10.0
    for copy in v.values:
        assert copy.numpy().tolist() == v.numpy().tolist()


@runtime("4:16MiB")
def test_strategies_in_threads_do_not_meet() -> None:
    def train(names, factor):
        s = tf.distribute.MirroredStrategy(names)
        with s.scope():
            v = tf.Variable(0.0, aggregation=tf.VariableAggregation.SUM)
            assert tf.distribute.get_strategy() is s
            for _ in range(200):
                s.run(lambda: v.assign_add(own() * factor))
        return [each.numpy() for each in v.values]

    outcomes = run_together(
        [
            lambda: train(["gpu:0", "gpu:1"], 1.0),
            lambda: train(["gpu:2", "gpu:3"], 2.0),
            lambda: train(["gpu:0", "gpu:3", "gpu:1"], 1.0),
        ]
    )
    assert [each.value for each in outcomes] == [[600.0] * 2, [1200.0] * 2, [1200.0] * 3], outcomes
    assert not tf.distribute.has_strategy()


@runtime("2:64MiB")
def test_one_strategy_takes_steps_of_several_threads() -> None:
    s = tf.distribute.MirroredStrategy()

    def steps(factor):
        return [s.run(lambda: ctx().all_reduce("SUM", own() * factor)).values[1].numpy() for _ in range(100)]

    outcomes = run_together([partial(steps, factor) for factor in (1.0, 2.0, 3.0)])
    assert [set(each.value) for each in outcomes] == [{3.0}, {6.0}, {9.0}], outcomes


@runtime("2:64MiB")
def test_a_replicas_scopes_are_gone_in_the_next_step() -> None:
    s = tf.distribute.MirroredStrategy()
    kept = []

    def leave_devices():
        scope = tf.device("/CPU:0")
        scope.__enter__()
        kept.append(scope)

    def leave():
        tape = tf.GradientTape()
        tape.__enter__()
        kept.append(tape)
        names = tf.name_scope("left")
        names.__enter__()
        kept.append(names)

    assert "proper scope nesting" in str(raised(lambda: s.run(leave_devices)))
    s.run(leave)
    made = s.run(lambda: (tf.constant(1.0).device, tf.get_current_name_scope()))
    assert [each[-5:] for each in made[0].values] == ["GPU:0", "GPU:1"]
    assert made[1] == ""


@runtime("4:16MiB")
def test_random_numbers_of_replicas_do_not_depend_on_who_is_first() -> None:
    s = tf.distribute.MirroredStrategy()

    def draw(delay):
        time.sleep(delay * rid())
        return [tf.random.uniform([2]), tf.random.normal([2], seed=5), tf.random.uniform([2])]

    def drawn(delays):
        tf.random.set_seed(7)
        before = tf.random.uniform([1]).numpy().tolist()
        made = [s.run(lambda: draw(delay)) for delay in delays]
        steps = [[[each.numpy().tolist() for each in kind.values] for kind in step] for step in made]
        return before, steps, tf.random.uniform([1]).numpy().tolist()

    first = drawn([0.0, 0.0, 0.05])
    assert drawn([0.05, 0.0, 0.0]) == first == drawn([0.0, 0.0, 0.0])
    numbers = [tuple(replica) for step in first[1] for kind in step for replica in kind]
    assert len(set(numbers)) == len(numbers) == 3 * 3 * 4, "replicas, steps and operations draw the same"
    tf.random.set_seed(None)
    free = s.run(lambda: tf.random.uniform([2]))
    assert len({tuple(each.numpy()) for each in free.values}) == 4


@pytest.mark.parametrize("where", ["replicas", "merge"])
def test_an_interrupt_ends_the_step(where: str) -> None:
    run(f"""
import os, signal
s = tf.distribute.MirroredStrategy()
def step():
    if {where!r} == "merge":
        ctx().merge_call(lambda strategy: time.sleep(20))
    for _ in range(400):
        time.sleep(0.05)
        if rid() == 0:
            ctx().all_reduce("SUM", own())
threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
started = time.monotonic()
try:
    s.run(step)
except KeyboardInterrupt as error:
    assert "raised for all replicas" in note(error)
else:
    assert False, "it was not interrupted"
assert time.monotonic() - started < 10
assert s.run(lambda: ctx().all_reduce("SUM", own())).values[0].numpy() == 3.0
""")


def test_an_interrupt_during_a_reduction_can_be_survived() -> None:
    run(
        """
from allotment.tf.distribute.reductions.members import Member
compute, stopped = Member.compute, []
def slow(self, function, *args):
    if not stopped and threading.current_thread() is not threading.main_thread():
        time.sleep(0.2)
    return compute(self, function, *args)
Member.compute = slow
import os, signal
s = tf.distribute.MirroredStrategy()
def merged(strategy, x):
    threading.Timer(0.1, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    try:
        strategy.extended.reduce_to("SUM", x, strategy.extended.worker_devices)
    except KeyboardInterrupt:
        stopped.append(True)
    return strategy.extended.reduce_to("SUM", x, strategy.extended.worker_devices)
def step():
    x = tf.ones([2 << 20]) * own()
    y = ctx().merge_call(merged, args=(x,))
    return y[0], ctx().all_reduce("SUM", x)[0]
first, second = s.run(step)
assert stopped == [True]
assert first.values[1].numpy() == second.values[0].numpy() == 3.0
"""
    )


@pytest.mark.parametrize("state", ["idle", "hanging", "never used"])
@pytest.mark.parametrize("end", ["", "sys.exit(0)", "del s; gc.collect()"])
def test_programs_end(state: str, end: str) -> None:
    hang = """
s.extended.replica_deadline = 0.2
hanging = raised(lambda: s.run(lambda: time.sleep(1000) if rid() else tf.ones([1000])))
"""
    body = {"idle": "kept = s.run(lambda: tf.ones([1000]))", "hanging": hang, "never used": ""}[state]
    run(f"s = tf.distribute.MirroredStrategy()\n{body}\n{end}\n")


def test_a_fork_starts_threads_of_its_own() -> None:
    run(
        """
import os, warnings
warnings.simplefilter("ignore")
s = tf.distribute.MirroredStrategy(["cpu:0", "cpu:1"])
assert s.run(rid).values == (0, 1)
child = os.fork()
if child == 0:
    try:
        assert threading.active_count() == 1
        os._exit(0 if s.run(rid).values == (0, 1) and s.run(rid).values == (0, 1) else 1)
    except BaseException:
        import traceback
        traceback.print_exc()
        os._exit(2)
assert os.waitpid(child, 0)[1] == 0
assert s.run(rid).values == (0, 1)
""".replace("s = tf", "tf.config.set_soft_device_placement(True)\ns = tf"),
        "0",
    )


def test_replicas_share_the_threads_of_the_blas() -> None:
    done = run_on_gpus(
        "2:16MiB",
        """
        import allotment
        import allotment.tf as tf
        from threadpoolctl import ThreadpoolController
        blas = ThreadpoolController().select(user_api="blas")
        counts = lambda: [library.num_threads for library in blas.lib_controllers]
        strategy = tf.distribute.MirroredStrategy()
        seen = []
        def inner():
            seen.append(counts())
            raise ValueError
        with blas.limit(limits=4):
            before = counts()
            for _ in range(2):
                try:
                    strategy.run(inner)
                except ValueError:
                    pass
            assert counts() == before
        # Fewer where the machine has fewer.
        assert seen == [[max(1, each // 2) for each in before]] * 4, (before, seen)
        """,
    )
    assert done.returncode == 0, done.stderr


@runtime("2:16MiB")
def test_a_memory_scope_of_every_thread_counts_what_replicas_allocate() -> None:
    s = tf.distribute.MirroredStrategy(["gpu:0", "gpu:1"])

    def step():
        return float(tf.reduce_sum(tf.ones([MIB // 4])))

    scope = allotment.experimental.memory_scope
    with scope("mine") as mine, scope("all", every_thread=True) as everything:
        s.run(step)
    assert mine.allocated == 0, mine.allocated
    assert [each.peak >= MIB for each in everything.by_device.values()] == [True, True]
    assert everything.live == 0
    with allotment.experimental.memory_scope("small", "GPU:1", limit=MIB // 2, every_thread=True):
        error = raised(lambda: s.run(step))
    assert type(error) is tf.errors.ResourceExhaustedError
    assert "small" in str(error)

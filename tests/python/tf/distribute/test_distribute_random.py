"""Random programs of replicas, beside a model that knows only the order of their calls."""

import pytest

from support.interpreter import FREE_THREADED
from support.tf.replicas import run

PROGRAM = """
import random
from support.attempts import without_frames
s = tf.distribute.MirroredStrategy()
s.extended.replica_deadline = 30.0
N = s.num_replicas_in_sync
with s.scope():
    v = tf.Variable(tf.zeros([50]), aggregation=tf.VariableAggregation.SUM)
    w = tf.Variable(tf.zeros([50]), aggregation=tf.VariableAggregation.MEAN)

class Mine(Exception):
    pass

#: What replicas can do, and whether they wait for the others in it.
ACTIONS = {
    "sum": lambda: ctx().all_reduce("SUM", tf.ones([64])),
    "mean": lambda: ctx().all_reduce("MEAN", [tf.ones([64]), own()]),
    "gather": lambda: ctx().all_gather(tf.ones([rid() + 1, 2]), axis=0),
    "assign": lambda: v.assign_add(tf.ones([50])),
    "other": lambda: w.assign(tf.ones([50]) * own()),
    "merge": lambda: ctx().merge_call(merged, args=(own(),)),
    "make": lambda: tf.Variable(tf.ones([10])),
    "compute": lambda: tf.matmul(tf.ones([20, 20]), tf.ones([20, 20])),
    "sleep": lambda: time.sleep(random.random() * 0.003),
}
ALONE = ("compute", "sleep", "raise", "memory")
merged = lambda strategy, x: strategy.reduce("SUM", x, axis=None)

def act(name):
    if name == "raise":
        raise Mine(rid())
    if name == "memory":
        return tf.ones([64 << 20])
    return ACTIONS[name]()

def play(scripts):
    def step():
        kept = []
        for name in scripts[rid()]:
            kept.append(act(name))
        return rid()
    return s.run(step)

def expected(scripts):
    # Round by round: what each replica comes to next, without what it does alone.
    rounds = [[name for name in script if name not in ("compute", "sleep")] for script in scripts]
    for place in range(max(map(len, rounds)) + 1):
        now = [script[place] if place < len(script) else None for script in rounds]
        for number, name in enumerate(now):
            if name in ("raise", "memory"):
                return (Mine, number) if name == "raise" else (tf.errors.ResourceExhaustedError, number)
        if set(now) == {None}:
            return None
        if len(set(now)) > 1:
            return (RuntimeError, None)
    return None

def script_of(source, common):
    script = list(common)
    for name in source.choices(ALONE[:2], k=2):
        script.insert(source.randrange(len(script) + 1), name)
    chance = source.random()
    if chance < 0.15:
        script.insert(source.randrange(len(script) + 1), source.choice(["raise", "memory"]))
    elif chance < 0.2:
        script.insert(source.randrange(len(script) + 1), source.choice(list(ACTIONS)[:7]))
    elif chance < 0.25:
        del script[source.randrange(len(script))]
    return script

gc.disable()
play([["sum", "assign"]] * N)
before, threads = in_use(), threading.active_count()
outcomes = {}
for seed in range(SEEDS):
    source = random.Random(seed)
    common = source.choices(list(ACTIONS)[:7], k=source.randrange(1, 5))
    scripts = [script_of(source, common) for _ in range(N)]
    wanted = expected(scripts)
    try:
        made = play(scripts)
        error = None
        assert made.values == tuple(range(N))
    except Exception as raised_here:
        error = without_frames(raised_here)
    found = None if error is None else type(error)
    assert found is (None if wanted is None else wanted[0]), (seed, scripts, wanted, error)
    if wanted is not None and wanted[1] is not None:
        assert f"raised by replica {wanted[1]} on" in note(error), (seed, scripts, note(error))
    del error
    made = None
    outcomes[found] = outcomes.get(found, 0) + 1
    assert len({each.numpy().tobytes() for each in v.values}) == 1
    assert in_use() == before, (seed, scripts, before, in_use())
    assert threading.active_count() <= threads
assert len(outcomes) == 4 and min(outcomes.values()) > SEEDS // 40, outcomes
"""


def test_random_steps_end_as_the_order_of_their_calls_says() -> None:
    # Without a GIL collections take most of the time.
    run(PROGRAM.replace("SEEDS", "25" if FREE_THREADED else "250"), "3:16MiB")


@pytest.mark.long
def test_many_random_steps_end_as_the_order_of_their_calls_says() -> None:
    run(PROGRAM.replace("SEEDS", "2000"), "5:16MiB")

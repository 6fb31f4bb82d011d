"""What tests of several replicas share: on simulated GPUs in this process, or in an interpreter of their own."""

import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import allotment.tf as tf
from allotment import Pool
from allotment.devices.context import context
from support.attempts import attempt
from support.devices import run_on_gpus
from support.interpreter import free_what_waits

MIB = 1 << 20
SUM, MEAN = tf.distribute.ReduceOp.SUM, tf.distribute.ReduceOp.MEAN

PATH = f"import sys; sys.path.insert(0, {str(Path(__file__).parents[2])!r})\n"

SETUP = """
import gc, sys, threading, time
import numpy as np
import allotment
import allotment.tf as tf
from allotment.devices.context import context
from support.tf.replicas import MEAN, MIB, SUM, ctx, in_use, note, own, pools, raised, rid
"""


def ctx() -> Any:
    """The replica that this thread runs."""
    return tf.distribute.get_replica_context()


def rid() -> int:
    """The number of the replica that this thread runs."""
    return int(ctx().replica_id_in_sync_group)


def own() -> tf.Tensor:
    """A value that tells replicas apart: 1, 2, ..."""
    return tf.cast(ctx().replica_id_in_sync_group, tf.float32) + 1.0


def pools() -> list[Pool]:
    """The pools of the GPUs."""
    return [each.pool for each in context().ready().devices if each.kind == "GPU" and each.pool is not None]


def in_use() -> list[int]:
    """Bytes in use on each GPU."""
    free_what_waits()
    return [pool.stats().in_use for pool in pools()]


def raised(call: Callable[[], Any]) -> BaseException:
    """What a call raises, without its frames."""
    error = attempt(call).error
    assert error is not None, "nothing was raised"
    return error


def note(error: BaseException) -> str:
    """What a traceback shows behind the text of an error."""
    return "\n".join(error.__notes__)


def run(program: str, gpus: str = "2:64MiB", **environ: str) -> str:
    """Run a program in an interpreter of its own and return what it wrote to standard output."""
    done = run_on_gpus(gpus, PATH + SETUP + textwrap.dedent(program), **environ)
    assert done.returncode == 0, done.stderr
    return done.stdout

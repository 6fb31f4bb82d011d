"""Runs programs with several replicas in a new interpreter with simulated GPUs."""

import textwrap
from pathlib import Path

from support.devices import run_on_gpus

PATH = f"import sys; sys.path.insert(0, {str(Path(__file__).parents[1])!r})\n"

SETUP = """
import gc, sys, threading, time
import numpy as np
import allotment
import allotment.tf as tf
from allotment.devices.context import context
from support.attempts import attempt

MIB = 1 << 20
ctx = tf.distribute.get_replica_context
SUM, MEAN = tf.distribute.ReduceOp.SUM, tf.distribute.ReduceOp.MEAN

def rid():
    return int(ctx().replica_id_in_sync_group)

def own():
    # The replica's number, starting at 1.
    return tf.cast(ctx().replica_id_in_sync_group, tf.float32) + 1.0

def pools():
    return [each.pool for each in context().ready().devices if each.kind == "GPU"]

def in_use():
    return [pool.stats().in_use for pool in pools()]

def raised(call):
    # The exception that a call raises, without its frames.
    error = attempt(call).error
    assert error is not None, "nothing was raised"
    return error

def note(error):
    return "\\n".join(error.__notes__)
"""


def run(program: str, gpus: str = "2:64MiB", **environ: str) -> str:
    """Run a program, check that it succeeds, and return its standard output."""
    done = run_on_gpus(gpus, PATH + SETUP + textwrap.dedent(program), **environ)
    assert done.returncode == 0, done.stderr
    return done.stdout

"""Runs a program in several processes with `mpirun`."""

import json
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any, NamedTuple

from support.arrays.stand_in_gpus import VARIABLE
from support.child import DEADLINE_SECONDS, environment

#: Settings of Open MPI for containers: as root, more processes than cores, and shared memory only, so that it does
#: not search for a network.
_ENVIRONMENT = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    "OMPI_MCA_pml": "ob1",
    "OMPI_MCA_btl": "self,sm",
}
_PREFACE = f"""
import json, os, signal, sys, time
import numpy as np
import allotment
import allotment.tf as tf

if os.environ.get({VARIABLE!r}):
    sys.path.append({str(Path(__file__).parents[1])!r})
    from support.arrays import stand_in_gpus

    stand_in_gpus.install()

def strategy(timeout=20.0):
    options = tf.distribute.experimental.CommunicationOptions(timeout_seconds=timeout)
    return tf.distribute.MultiWorkerMirroredStrategy(communication_options=options)

def tell(**facts):
    sys.stdout.write(json.dumps(facts) + chr(10))
"""


class Ran(NamedTuple):
    """Exit status, output and duration of a run of several processes."""

    status: int
    #: The output of all processes.
    stdout: str
    stderr: str
    seconds: float


def run_processes(program: str, count: int, **variables: str) -> Ran:
    """Run a program in `count` processes, with additional environment variables."""
    begun = time.monotonic()
    ran = subprocess.run(
        [
            Path(sys.executable).with_name("mpirun"),
            *("-n", str(count), sys.executable, "-c", _PREFACE + textwrap.dedent(program)),
        ],
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECONDS,
        check=False,
        env=environment() | _ENVIRONMENT | variables,
    )
    return Ran(ran.returncode, ran.stdout, ran.stderr, time.monotonic() - begun)


def facts(stdout: str) -> list[dict[str, Any]]:
    """Parse the JSON objects that the processes printed, ordered by rank."""
    return sorted((json.loads(line) for line in stdout.splitlines()), key=lambda each: int(each["rank"]))


__all__ = ["Ran", "facts", "run_processes"]

"""What a worker takes from its surroundings: MPI, TF_CONFIG, and options."""

from typing import Any

import pytest

import allotment.tf as tf
from support.child import run_program


def test_a_process_that_mpi_did_not_start_is_the_only_worker() -> None:
    ran = run_program(
        """
        import sys
        import allotment
        import allotment.tf as tf
        assert "mpi4py" not in sys.modules
        strategy = tf.distribute.MultiWorkerMirroredStrategy()
        with strategy.scope():
            v = tf.Variable(1.0, aggregation=tf.VariableAggregation.SUM)
        strategy.run(lambda: v.assign_add(1.0))
        print(strategy.num_replicas_in_sync, strategy.cluster_resolver, float(v))
        print(float(strategy.reduce("SUM", strategy.run(lambda: tf.constant(2.0)), axis=None)))
        """
    )
    assert ran.stdout == "1 WorkerRole(task_id=0, task_type='worker') 2.0\n2.0\n", ran.stderr


def test_tf_config_makes_no_cluster_and_says_so() -> None:
    ran = run_program(
        """
        import json, os
        os.environ["TF_CONFIG"] = json.dumps({"cluster": {"chief": ["a:1"], "worker": ["b:1"]}, "task": {"index": 1}})
        import allotment
        import allotment.tf as tf
        try:
            tf.distribute.MultiWorkerMirroredStrategy()
        except ValueError as error:
            print(error)
        """
    )
    assert ran.stdout == (
        "TF_CONFIG names 2 workers, and MPI has started 1. Processes are started by MPI here, as in `mpirun -n 2 "
        "python train.py`; unset TF_CONFIG to train in this one alone\n"
    ), ran.stderr


def test_without_mpi4py_the_error_says_what_to_install() -> None:
    ran = run_program(
        """
        import sys
        sys.modules["mpi4py"] = None
        import allotment
        import allotment.tf as tf
        tf.distribute.MultiWorkerMirroredStrategy()
        """
    )
    assert ran.stderr.splitlines()[-1].startswith(
        "ModuleNotFoundError: MultiWorkerMirroredStrategy runs on MPI, through mpi4py: pip install 'allotment[mpi]'"
    )


def test_options_are_tensorflows_and_what_does_not_exist_is_an_error() -> None:
    options = tf.distribute.experimental.CommunicationOptions
    implementations = tf.distribute.experimental.CommunicationImplementation
    strategy: Any = tf.distribute.MultiWorkerMirroredStrategy
    assert str(options()) == (
        "Options(bytes_per_pack=0,timeout_seconds=None, implementation=CommunicationImplementation.AUTO)"
    )
    assert options(implementation="ring").implementation is implementations.RING
    with pytest.raises(ValueError, match=r"Argument `bytes_per_pack` must be >=0, Received -1\."):
        options(bytes_per_pack=-1)
    with pytest.raises(ValueError, match="'X' is not a valid CommunicationImplementation"):
        options(implementation="x")
    with pytest.raises(
        ValueError, match="implementation must be a CommunicationImplementation, AUTO or RING, not 3"
    ):
        options(implementation=3)
    with pytest.raises(ValueError, match="timeout_seconds must be more than 0, or None, not 0"):
        options(timeout_seconds=0)
    with pytest.raises(ValueError, match=r"must be an instance of tf\.distribute\.experimental"):
        strategy(communication_options="AUTO")
    with pytest.raises(ValueError, match="MPI decides which processes there are"):
        strategy(cluster_resolver=object())

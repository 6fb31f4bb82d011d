"""Runs random programs on a pool and compares it with a model after every step.

Every step may run in another thread. Python's garbage collector is off, so that objects die only in certain steps.
"""

import gc

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from support.pools.pool_machine.base import PoolBase
from support.pools.pool_machine.callbacks import Callbacks
from support.pools.pool_machine.freeing import Freeing
from support.pools.pool_machine.misuse import Misuse
from support.pools.pool_machine.views import Views
from support.pools.pool_machine.whole import Whole


class HostMachine(Freeing, Misuse, Views, Whole):
    kind = "host"


class CappedMachine(HostMachine):
    kind = "capped"


class AddressSpaceMachine(HostMachine):
    kind = "address-space"


class FickleMachine(Callbacks, Misuse, Whole):
    kind = "fickle"


def run(machine: type[PoolBase], programs: int, steps: int, *, derandomize: bool) -> None:
    profile = settings(
        max_examples=programs,
        stateful_step_count=steps,
        derandomize=derandomize,
        deadline=None,
        database=None,
        print_blob=True,
        suppress_health_check=list(HealthCheck),
    )
    # The programs collect garbage often; freezing what tests before left makes each collection faster.
    gc.collect()
    gc.freeze()
    run_state_machine_as_test(machine, settings=profile)


over_every_kind_of_source = pytest.mark.parametrize(
    "machine", [HostMachine, CappedMachine, AddressSpaceMachine, FickleMachine]
)


@over_every_kind_of_source
def test_random_programs_agree_with_the_model(machine: type[PoolBase]) -> None:
    run(machine, 60, 50, derandomize=True)


@pytest.mark.long
@pytest.mark.timeout(1800)
@over_every_kind_of_source
def test_many_random_programs_agree_with_the_model(machine: type[PoolBase]) -> None:
    run(machine, 200, 80, derandomize=False)

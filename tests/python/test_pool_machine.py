"""Random programs over a pool, judged by a dictionary of what is live.

Every step may run in another thread. Python's own collector is off, so objects die where a step says so.
"""

import gc

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from support.pool_machine.base import PoolBase
from support.pool_machine.errands import Errands
from support.pool_machine.freeing import Freeing
from support.pool_machine.misuse import Misuse
from support.pool_machine.views import Views
from support.pool_machine.whole import Whole


class HostMachine(Freeing, Misuse, Views, Whole):
    kind = "host"


class CappedMachine(HostMachine):
    kind = "capped"


class AddressSpaceMachine(HostMachine):
    kind = "address-space"


class FickleMachine(Errands, Misuse, Whole):
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
    # The programs collect garbage again and again; what is alive now need not be looked at each time.
    gc.collect()
    gc.freeze()
    try:
        run_state_machine_as_test(machine, settings=profile)
    finally:
        gc.unfreeze()


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

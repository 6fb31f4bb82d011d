"""Generated programs have the same outcomes in this package and in TensorFlow, except the accepted differences."""

import os
from collections.abc import Sequence

import pytest

import families
from compare import Difference
from differences import PAGE, Table
from judge import Finding, choose, judge, open_differences
from programs import MODES, Program

TENSORFLOW = os.environ.get("ALLOTMENT_TENSORFLOW")

with_tensorflow = pytest.mark.skipif(
    TENSORFLOW is None, reason="ALLOTMENT_TENSORFLOW names no Python that has TensorFlow"
)


def unexplained(chosen: Sequence[Program]) -> list[Finding]:
    """Return the differences that are neither in the table nor in the list of open differences."""
    assert TENSORFLOW is not None
    open_ones = open_differences()
    return [
        each
        for each in judge(chosen, TENSORFLOW)
        if each.known is None and (each.program.function, each.difference.kind) not in open_ones
    ]


def shown(found: Sequence[Finding]) -> str:
    return "\n\n".join(map(str, found[:20]))


@with_tensorflow
@pytest.mark.timeout(600)
def test_a_few_programs_of_each_function_have_the_outcome_of_tensorflow() -> None:
    found = unexplained(choose("*", MODES, 4, seed=1))
    assert not found, f"{len(found)} differences, the first of them:\n{shown(found)}"


@with_tensorflow
@pytest.mark.long
@pytest.mark.timeout(3 * 3600)
def test_a_hundred_thousand_programs_have_the_outcome_of_tensorflow() -> None:
    wanted = int(os.environ.get("ALLOTMENT_DIFFERENTIAL_PROGRAMS", "100000"))
    seed = int(os.environ.get("ALLOTMENT_DIFFERENTIAL_SEED", "2"))
    chosen = choose("*", MODES, wanted // len(families.recipes()) + 1, seed)
    assert len(chosen) >= wanted
    found = unexplained(chosen)
    assert not found, f"{len(found)} differences, the first of them:\n{shown(found)}"


@with_tensorflow
def test_a_program_that_differs_is_found() -> None:
    source = "result = type(tf.constant(1)).__module__"
    (found,) = unexplained([Program("constant", "eager", source)])
    assert found.difference == Difference("value", "result")


def test_the_manual_has_the_table_of_differences() -> None:
    assert Table.read().markdown() in PAGE.read_text()

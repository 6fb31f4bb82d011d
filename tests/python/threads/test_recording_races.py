"""Recordings that threads begin and end at the same time, with and without a GIL."""

from pathlib import Path

import pytest

from allotment import Pool
from allotment.trace import read_trace
from support.attempts import run_together

pytestmark = pytest.mark.usefixtures("hasty_switches")


def test_of_recordings_that_begin_together_one_gets_the_file(tmp_path: Path) -> None:
    pool = Pool("1MiB", source="address-space")
    for step in range(25):
        path = tmp_path / str(step)
        outcomes = run_together([lambda path=path: pool.record(path)] * 6)  # type: ignore[misc]
        begun = [outcome.value for outcome in outcomes if outcome.error is None]
        refused = [outcome.error for outcome in outcomes if outcome.error is not None]
        assert [type(error) for error in refused] == [ValueError] * 5, refused
        assert all("another recording of this process" in str(error) for error in refused)
        pool.free(pool.malloc(100 + step))
        begun[0].stop()
        assert read_trace(path).program.peak_live == 100 + step


def test_recordings_begin_and_end_while_others_are_looked_through(tmp_path: Path) -> None:
    pool = Pool("1MiB", source="address-space")

    def work(number: int) -> None:
        for step in range(15):
            with pool.record(tmp_path / f"{number}-{step}"), pool.record(events=10):
                pool.free(pool.malloc(100))

    outcomes = run_together([lambda number=number: work(number) for number in range(6)])  # type: ignore[misc]
    assert [outcome.error for outcome in outcomes] == [None] * 6


def test_a_recording_that_threads_end_together_is_whole(tmp_path: Path) -> None:
    pool = Pool("1MiB", source="address-space")
    for step in range(25):
        path = tmp_path / str(step)
        recording = pool.record(path)
        pool.free(pool.malloc(100 + step))
        outcomes = run_together([recording.stop] * 4)
        assert [outcome.error for outcome in outcomes] == [None] * 4
        assert read_trace(path).program.peak_live == 100 + step

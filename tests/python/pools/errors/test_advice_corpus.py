"""Advice on refusals of recorded and generated programs: each piece, applied by a replay, serves what was refused."""

from collections import Counter
from itertools import chain

import pytest

from support.pools.refused_programs import check, generated, recorded, refusals, snapshots


def test_b201_every_piece_of_advice_on_generated_refusals_works() -> None:
    chosen = list(refusals(chain(generated(40), snapshots(10))))
    assert len(chosen) >= 200
    followed = Counter(pair for refusal in chosen for pair in check(refusal))
    assert {action for action, _ in followed} == {"free", "raise_limit", "ask_for", "policy", "elastic"}


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_b201_every_piece_of_advice_on_recorded_refusals_works() -> None:
    """Over the recorded programs here, and those in the folder that ``ALLOTMENT_TRACES`` names."""
    chosen = list(refusals(recorded()))
    assert len(chosen) >= 30
    followed = Counter(pair for refusal in chosen for pair in check(refusal))
    assert {action for action, _ in followed} >= {"free", "raise_limit", "ask_for"}

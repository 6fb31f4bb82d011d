"""Error texts begin with TensorFlow's text; this package may append more."""

import json
import sys

import pytest

from error_texts import FILE, PROGRAMS, plain, source
from judge import outcomes
from outcome import Raised

RECORDED: dict[str, list[str]] = json.loads(FILE.read_text())


@pytest.fixture(scope="module")
def ours() -> dict[str, object]:
    made = outcomes("allotment", sys.executable, [source(each) for each in PROGRAMS])
    return dict(zip(PROGRAMS, made, strict=True))


@pytest.mark.parametrize("program", PROGRAMS)
def test_an_error_has_the_class_and_the_text_of_tensorflow(program: str, ours: dict[str, object]) -> None:
    name, text = RECORDED[program]
    found = ours[program]
    assert isinstance(found, Raised)
    assert name in found.classes
    assert plain(found.text).startswith(text.rstrip("."))

"""The source tree: how long files are, how many a folder has, and what the root of the package contains."""

import ast
import io
import re
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.documents import ROOT

FOLDERS = ("rust", "python", "tests", "benches", "docs", "examples")
MOST_LINES, MOST_FILES, MOST_ENTRIES = 300, 20, 15
#: One sentence in the head of a longer file, which may take several lines.
REASON = re.compile(rf"^Longer than {MOST_LINES} lines: (?:[^\n]+\n)*?[^\n]+\.$", re.MULTILINE)
#: Inputs of the fuzzers, which they name themselves.
CORPUS = ROOT / "tests/fuzz/corpus"


def files() -> Iterator[Path]:
    """Yield the files of the source tree, without what builds and tests leave there."""
    for folder in FOLDERS:
        for path in (ROOT / folder).rglob("*"):
            left = path.suffix in (".so", ".pyc") or {"target", "__pycache__"} & {
                *path.parts[len(ROOT.parts) :]
            }
            hidden = any(part.startswith(".") for part in path.relative_to(ROOT).parts)
            if path.is_file() and not left and not hidden and path.name != "Cargo.lock":
                yield path


def head(path: Path) -> str:
    """Return the text in front of the first statement: the docstring, or the comments."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".rs":
        lines = text.splitlines()
        first = next((i for i, line in enumerate(lines) if line and not line.startswith("//")), len(lines))
        return "\n".join(line.removeprefix("//!").removeprefix("//").strip() for line in lines[:first])
    docstring = ast.get_docstring(ast.parse(text))
    if docstring is not None:
        return docstring
    comments = []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            comments.append(token.string.removeprefix("#").strip())
        elif token.type not in (tokenize.NL, tokenize.NEWLINE):
            break
    return "\n".join(comments)


def faults(path: Path) -> list[str]:
    """Return what is wrong with the length of a file and with the reason that its head gives for it."""
    text = path.read_text(encoding="utf-8")
    long = text.count("\n") > MOST_LINES
    reason = "Longer than" in text and REASON.search(head(path)) is not None
    if long and not reason:
        return [
            f"{path}: more than {MOST_LINES} lines, and no 'Longer than {MOST_LINES} lines: ...' in its head"
        ]
    if reason and not long:
        return [f"{path}: it has at most {MOST_LINES} lines, and its head says that it has more"]
    return []


def test_a_long_file_says_in_its_head_why_it_is_one_file() -> None:
    sources = [path for path in files() if path.suffix in (".py", ".pyi", ".rs")]
    assert len(sources) > 1000
    assert [fault for path in sources for fault in faults(path)] == []


@pytest.mark.parametrize(
    ("name", "opening", "fault"),
    [
        ("a.py", '"""A text.\n\nLonger than 300 lines: one table.\n"""\n', None),
        (
            "a.py",
            '"""A text.\n\nLonger than 300 lines: one table, the rows of which\nare read together.\n"""\n',
            None,
        ),
        ("a.py", '"""A text."""\n', "more than"),
        ("a.py", '"""A text.\n\nLonger than 300 lines:\n"""\n', "more than"),
        ("a.py", '"""A text."""\n\n# Longer than 300 lines: one table.\n', "more than"),
        ("a.pyi", "# A text.\n#\n# Longer than 300 lines: one table.\n", None),
        ("a.pyi", "import os\n\n# Longer than 300 lines: one table.\n", "more than"),
        ("a.rs", "//! A text.\n//!\n//! Longer than 300 lines: one table.\n", None),
        ("a.rs", "//! A text.\n", "more than"),
        ("a.rs", "//! A text.\nuse std::fs;\n// Longer than 300 lines: one table.\n", "more than"),
    ],
)
def test_only_a_reason_in_the_head_counts(name: str, opening: str, fault: str | None, tmp_path: Path) -> None:
    path = tmp_path / name
    statement = "mod a;\n" if name.endswith(".rs") else "a = 1\n"
    path.write_text(opening + statement * 300)
    found = faults(path)
    assert (fault is None) == (found == [])
    assert all(fault is not None and fault in each for each in found)


def test_a_file_that_became_short_says_nothing_of_its_length(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text('"""A text.\n\nLonger than 300 lines: one table.\n"""\n')
    assert "it has at most 300 lines" in faults(path)[0]


def test_no_folder_has_too_many_files() -> None:
    count = Counter(path.parent for path in files() if CORPUS not in path.parents)
    assert len(count) > 100
    assert {str(folder): number for folder, number in count.items() if number > MOST_FILES} == {}


def test_the_root_of_the_package_has_few_entries() -> None:
    root = ROOT / "python/allotment"
    entries = sorted(
        {path.relative_to(root).parts[0] for path in files() if root in path.parents} - {"__pycache__"}
    )
    assert "tf" in entries
    assert len(entries) <= MOST_ENTRIES, entries

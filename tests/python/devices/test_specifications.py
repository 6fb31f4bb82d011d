"""The specifications that comments cite: the page and the section of each citation exist."""

import re
from pathlib import Path

import pytest

from support.documents import ROOT

PAGES = {
    "allocator": "allocator.md",
    "gpu memory": "gpu-memory.md",
    "device-config api": "device-config-api.md",
    "placement": "placement.md",
}
NUMBER = r"\d+(?:\.\d+)*"
#: "placement, section 3", "GPU memory, sections 5 and 7", "docs/spec/placement.md, section 3"; a citation without a
#: page has empty groups in front.
CITATION = re.compile(
    rf"(?:(?:({'|'.join(PAGES)})|docs/spec/([\w-]+\.md)), )?sections? ({NUMBER}(?:(?:, | and |, and ){NUMBER})*)",
    re.IGNORECASE,
)
#: The end of a line inside a comment or a docstring, and what the next one starts with.
LINE_BREAK = re.compile(r"\n\s*(?://[/!]?|#:?)?\s*")


def sections(page: str) -> set[str]:
    """Return the numbers of a page's sections."""
    text = (ROOT / "docs/spec" / page).read_text(encoding="utf-8")
    return set(re.findall(rf"^#+ ({NUMBER})\.? ", text, flags=re.MULTILINE))


def citations(text: str) -> list[tuple[str, str]]:
    """Return the page's file, which may be missing, and the section of each citation in a source text."""
    flat = LINE_BREAK.sub(" ", text)
    return [
        (file or PAGES.get(name.lower(), ""), number)
        for name, file, numbers in CITATION.findall(flat)
        for number in re.findall(NUMBER, numbers)
    ]


def sources() -> list[Path]:
    """Return the files whose comments may cite a specification."""
    folders = ("python", "rust", "tests", "benches", "examples")
    return [
        path
        for folder in folders
        for suffix in ("*.py", "*.pyi", "*.rs")
        for path in (ROOT / folder).rglob(suffix)
        if path != Path(__file__).resolve() and "target" not in path.parts
    ]


def test_citations_are_found_across_lines_and_in_lists() -> None:
    assert citations("# As in placement,\n    # section 3.") == [("placement.md", "3")]
    assert citations("(GPU memory, sections 5 and 7)") == [("gpu-memory.md", "5"), ("gpu-memory.md", "7")]
    assert citations("Source: docs/spec/placement.md, section 5.6, and") == [("placement.md", "5.6")]
    assert citations("/// See section 6.4.") == [("", "6.4")]


def test_each_cited_section_exists() -> None:
    known = {file: sections(file) for file in PAGES.values()}
    found = 0
    for path in sources():
        for file, number in citations(path.read_text(encoding="utf-8")):
            assert file, f"{path}: section {number} of which specification?"
            assert number in known.get(file, ()), f"{path}: {file} has no section {number}"
            found += 1
    assert found > 30


@pytest.mark.parametrize("file", PAGES.values())
def test_sections_are_numbered_without_a_gap(file: str) -> None:
    numbers = [tuple(map(int, number.split("."))) for number in sections(file)]
    tops = sorted({number[0] for number in numbers})
    assert tops == list(range(1, len(tops) + 1))
    for top in tops:
        parts = sorted(number[1] for number in numbers if len(number) == 2 and number[0] == top)
        assert parts == list(range(1, len(parts) + 1))


@pytest.mark.parametrize("file", [*PAGES.values(), "index.md"])
def test_sections_that_pages_refer_to_exist(file: str) -> None:
    for cited, number in citations((ROOT / "docs/spec" / file).read_text(encoding="utf-8")):
        assert number in sections(cited or file), (cited, number)

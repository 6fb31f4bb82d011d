"""What the README says is run."""

import re
import tomllib

import pytest

from support.documents import ROOT, Document, Example, run

README = (ROOT / "README.md").read_text(encoding="utf-8")
DOCUMENT = Document.read(ROOT / "README.md")
TARGETS = re.findall(r"^make ([a-z-]+)", README, flags=re.MULTILINE)


def test_there_is_something_to_run() -> None:
    assert len(DOCUMENT.programs) + len(DOCUMENT.commands) == 3
    assert TARGETS == ["demo", "test"]


@pytest.mark.parametrize("example", [*DOCUMENT.programs, *DOCUMENT.commands], ids=str)
def test_the_examples_run(example: Example) -> None:
    run(example)


def test_what_it_links_to_is_there() -> None:
    # PyPI shows the page without the files beside it.
    repository = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["repository"]
    links = re.findall(r"\]\(([^)#?]+)[^)]*\)", README)
    assert len(links) > 10
    for link in links:
        path = re.fullmatch(rf"{repository}/(?:blob|raw)/main/(.+)", link)
        assert path is not None, link
        assert (ROOT / path[1]).exists(), link


def test_the_targets_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for target in {*TARGETS, *re.findall(r"`make ([a-z-]+)`", (ROOT / "CONTRIBUTING.md").read_text())}:
        assert re.search(rf"^{target}:.*## ", makefile, flags=re.M), target


def test_every_file_the_contributors_page_names_is_there() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text()
    for crate, several in {"rust/core/src": 12, "rust/sync/src": 4}.items():
        (block,) = re.findall(rf"^{crate}/ .*\n((?:  .*\n)+)", page, flags=re.M)
        lines = [line for line in block.splitlines() if line.startswith("  ") and line[2] != " "]
        named = {name for line in lines for name in re.findall(r"[a-z_]+\.rs", line)}
        assert len(named) > several
        for name in named:
            assert (ROOT / crate / name).is_file(), name
        present = {path.name for path in (ROOT / crate).glob("*.rs")} - {"lib.rs"}
        assert present == named

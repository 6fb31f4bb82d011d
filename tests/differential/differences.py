"""The table of accepted differences from TensorFlow, read from ``differences.toml``.

``python differences.py`` writes the table into ``docs/tensorflow-differences.md``.
"""

import fnmatch
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from compare import Difference
from programs import Program

FILE = Path(__file__).with_name("differences.toml")
PAGE = FILE.parents[2] / "docs" / "tensorflow-differences.md"
_HEAD = ("| where | TensorFlow 2.21 | here |", "|---|---|---|")


@dataclass(frozen=True)
class Match:
    """Pattern of the programs and outcomes that a row of the table covers; a field that is not given matches all."""

    functions: tuple[str, ...] = ("*",)
    modes: tuple[str, ...] = ("*",)
    kinds: tuple[str, ...] = ("*",)
    #: Element types; one operand at least must match.
    types: tuple[str, ...] = ("*",)
    #: Regular expressions to search in the program's source and in the texts of both outcomes.
    source: str = ""
    here: str = ""
    there: str = ""

    def fits(self, program: Program, difference: Difference, here: Any, there: Any) -> bool:
        """Whether the pattern matches a difference."""
        return (
            _any(program.function, self.functions)
            and _any(program.mode, self.modes)
            and _any(difference.kind, self.kinds)
            and any(_any(each, self.types) for each in program.types or ("",))
            and re.search(self.source, program.source) is not None
            and re.search(self.here, repr(here)) is not None
            and re.search(self.there, repr(there)) is not None
        )


@dataclass(frozen=True)
class Row:
    """Row of the table: what differs, TensorFlow's behaviour, ours, and the patterns of the programs concerned."""

    where: str
    tensorflow: str
    here: str
    matches: tuple[Match, ...]


@dataclass(frozen=True)
class Table:
    """The table of accepted differences."""

    rows: tuple[Row, ...]

    @classmethod
    def read(cls) -> Self:
        """Read the table from its file.

        Raises:
            TypeError: A row or a match has a field that does not exist.
        """
        rows = []
        for row in tomllib.loads(FILE.read_text())["difference"]:
            matches = tuple(_match(each) for each in row.pop("match", ()))
            rows.append(Row(**row, matches=matches))
        return cls(tuple(rows))

    def reason(self, program: Program, difference: Difference, here: Any, there: Any) -> str | None:
        """Return the name of the row that covers a difference; ``None`` if no row does."""
        for row in self.rows:
            if any(match.fits(program, difference, here, there) for match in row.matches):
                return row.where
        return None

    def markdown(self) -> str:
        """Return the table in Markdown, for the manual."""
        return "\n".join([*_HEAD, *(f"| {row.where} | {row.tensorflow} | {row.here} |" for row in self.rows)])


def _match(fields: dict[str, Any]) -> Match:
    given: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in fields.items()
    }
    return Match(**given)


def _any(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


if __name__ == "__main__":
    old = re.search(re.escape("\n".join(_HEAD)) + r"(\n\|.*)*", PAGE.read_text())
    assert old is not None, f"{PAGE} has no table of differences"
    PAGE.write_text(PAGE.read_text().replace(old.group(), Table.read().markdown()))

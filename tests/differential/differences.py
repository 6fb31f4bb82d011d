"""The table of differences from TensorFlow: ``differences.toml``, from which the manual's table is made.

python differences.py writes that table into ``docs/tensorflow-differences.md``.
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
    """The programs and outcomes that a row of the table is about; what is not given holds for all."""

    functions: tuple[str, ...] = ("*",)
    modes: tuple[str, ...] = ("*",)
    kinds: tuple[str, ...] = ("*",)
    #: Element types, of which an operand has one.
    types: tuple[str, ...] = ("*",)
    #: Regular expressions that are found in the source and in the outcomes as the report shows them.
    source: str = ""
    here: str = ""
    there: str = ""

    def fits(self, program: Program, difference: Difference, here: Any, there: Any) -> bool:
        """Whether the row is about this difference."""
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
    """One row: what differs, how TensorFlow does it, how the project does, and which programs show it."""

    where: str
    tensorflow: str
    here: str
    matches: tuple[Match, ...]


@dataclass(frozen=True)
class Table:
    """All rows."""

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
        """Return which row a difference belongs to, ``None`` if it belongs to none."""
        for row in self.rows:
            if any(match.fits(program, difference, here, there) for match in row.matches):
                return row.where
        return None

    def markdown(self) -> str:
        """Return the table as the manual shows it."""
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

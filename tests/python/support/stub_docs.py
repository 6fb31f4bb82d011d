"""Docstrings of the compiled module and of its stub. The doc comments of ``rust/bindings`` are the source.

After a change there: ``make develop``, then ``python tests/python/support/stub_docs.py`` writes them into the stub.
"""

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path

from allotment import _core

STUB = Path(__file__).resolve().parents[3] / "python/allotment/_core.pyi"
_QUOTES = '"""'


def documented(tree: ast.Module) -> Iterator[tuple[str, ast.ClassDef | ast.FunctionDef]]:
    """Yield the classes, functions and methods of the stub that have a docstring, with their dotted names."""
    for outer in tree.body:
        if not isinstance(outer, ast.ClassDef | ast.FunctionDef):
            continue
        if ast.get_docstring(outer) is not None:
            yield outer.name, outer
        for inner in outer.body if isinstance(outer, ast.ClassDef) else ():
            if isinstance(inner, ast.FunctionDef) and ast.get_docstring(inner) is not None:
                yield f"{outer.name}.{inner.name}", inner


def at_run_time(name: str) -> str | None:
    """Return the docstring that ``help`` shows for a dotted name of the compiled module."""
    found: object = _core
    for part in name.split("."):
        found = getattr(found, part)
    return inspect.getdoc(found)


def write_stub() -> None:
    """Replace each docstring of the stub by that of the compiled module."""
    source = STUB.read_text(encoding="utf-8")
    lines = source.splitlines()
    for name, node in sorted(documented(ast.parse(source)), key=lambda item: -item[1].body[0].lineno):
        text, place = at_run_time(name), node.body[0]
        if text is None:
            raise ValueError(f"{name} has no docstring at run time")
        margin = " " * place.col_offset
        first, *others = text.split("\n")
        block = [margin + _QUOTES + first, *((margin + line) if line else "" for line in others)]
        if others:
            block.append(margin + _QUOTES)
        else:
            block[0] += _QUOTES
        lines[place.lineno - 1 : place.end_lineno] = block
    STUB.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write_stub()

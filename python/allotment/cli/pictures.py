"""The options ``--html`` and ``--png`` of ``replay``, and the ``report`` command."""

import json
import os
from collections.abc import Callable, Sequence
from typing import Any

import click

from allotment._core import one_line
from allotment.cli.command import REFUSED, BadInput, Outcome
from allotment.cli.progress import progress
from allotment.trace import Columns, ReplayOptions, TraceError, read_all_columns
from allotment.trace.pictures.drawing import draw
from allotment.trace.pictures.text import CHART_COLUMNS, report_figures, report_text


def write_pictures(
    html: str | None,
    png: str | None,
    programs: Sequence[Columns],
    options: ReplayOptions,
    events: tuple[int, int | None],
) -> None:
    """Write the page and the image of a trace that were asked for.

    Raises:
        BadInput: The trace cannot be shown, a file cannot be written, or a library is not installed.
    """
    with progress(2, long=True) as steps:
        if html is not None:
            from allotment.trace.pictures.page import write_page

            steps.begin(f"drawing {one_line(html)}")
            _write("--html", html, lambda: write_page(html, programs, options, events=events))
        if png is not None:
            steps.begin(f"drawing {one_line(png)}")
            _write_image(png, programs, options, events)


def _write_image(
    png: str, programs: Sequence[Columns], options: ReplayOptions, events: tuple[int, int | None]
) -> None:
    from allotment.trace.pictures.image import write_image

    if len(programs) > 1:
        raise BadInput(
            f"--png shows one program, and {programs[0].path} has {len(programs)}: allotment replay --html shows "
            "them all"
        )
    _write("--png", png, lambda: write_image(png, programs[0], options, events=events))


def report_files(
    paths: Sequence[str],
    options: ReplayOptions,
    events: tuple[int, int | None],
    png: str | None,
    *,
    as_json: bool,
) -> Outcome:
    """Return the reports of all programs of the files, as text or JSON; write the image of one if ``png`` names it."""
    if png is not None:
        if len(paths) > 1:
            raise click.UsageError(f"'--png' is of one TRACE, not of {len(paths)}")
        if os.path.realpath(png) == os.path.realpath(paths[0]):
            raise click.UsageError(f"'--png' {png} is the TRACE itself")
    programs = [columns for path in paths for columns in _read(path)]
    drawings = []
    with progress(len(programs), long=True) as steps:
        for columns in programs:
            steps.begin(f"replaying {one_line(columns.path)}")
            try:
                drawings.append(draw(columns, options, events=events, points=CHART_COLUMNS, blocks=0))
            except TraceError as error:
                raise BadInput(str(error)) from error
    if png is not None:
        _write_image(png, programs, options, events)
    status = REFUSED if any(drawing.picture.result.refused for drawing in drawings) else 0
    if not as_json:
        return Outcome("\n".join(map(report_text, drawings)), status)
    figures: list[dict[str, Any]] = list(map(report_figures, drawings))
    return Outcome(
        json.dumps(figures[0] if len(figures) == 1 else {"traces": figures}, indent=2) + "\n", status
    )


def _read(path: str) -> list[Columns]:
    try:
        return read_all_columns(path)
    except TraceError as error:
        raise BadInput(str(error)) from error


def _write(option: str, file: str, write: Callable[[], object]) -> None:
    """Write a file, or raise an error that names the option."""
    try:
        write()
    except TraceError as error:
        raise BadInput(str(error)) from error
    except ImportError as error:
        raise BadInput(f"{option}: {error}") from error
    except OSError as error:
        raise BadInput(f"{option} {file}: cannot be written: {error.strerror or error}") from error

"""The ``plan`` command: a static plan of offsets for a recorded program."""

import json
from collections.abc import Sequence

from allotment._core import Plan, format_size, one_line
from allotment.cli.command import BadInput, Outcome
from allotment.cli.progress import progress
from allotment.trace import Columns, Trace, TraceError, plan, read_all_columns, write_plan
from allotment.trace.blocks import counted
from allotment.trace.plan import plan_figures
from allotment.trace.reader import checked


def plan_file(
    path: str,
    output: str | None,
    *,
    program: str | None,
    alignment: int,
    seconds: float,
    steps: int | None,
    seed: int,
    as_json: bool,
) -> Outcome:
    """Search for a plan, write it if asked to, and report it as text or JSON.

    Raises:
        BadInput: The trace or an option is invalid, or the plan cannot be written.
    """
    trace = _read(path, program)
    with progress(1, long=True) as bar:
        bar.begin(f"planning {one_line(trace.title)}")
        try:
            found = plan(
                trace,
                alignment=alignment,
                seconds=seconds,
                steps=steps,
                seed=seed,
                progress=lambda _arena, _bound, elapsed: bar.update(
                    round(1000 * elapsed), round(1000 * seconds)
                ),
            )
        except ValueError as error:
            raise BadInput(f"{path}: {error}") from error
    if output is not None:
        try:
            write_plan(output, found, name=trace.name)
        except OSError as error:
            raise BadInput(f"-o {output}: cannot be written: {error.strerror or error}") from error
    if as_json:
        figures = {
            "trace": path,
            **plan_figures(found),
            **trace.origin.completeness(),
            "plan": output,
        }
        return Outcome(json.dumps(figures, indent=2) + "\n")
    return Outcome(_text(trace, found, output))


def _read(path: str, name: str | None) -> Trace:
    """Read the program of a file, or the one of several that has a name."""
    try:
        programs = read_all_columns(path)
        if name is None and len(programs) > 1:
            raise BadInput(
                f"{path}: has {len(programs)} programs: choose one by --program, {_names(programs)}"
            )
        chosen = [one for one in programs if name is None or one.origin.device == name]
        if not chosen:
            raise BadInput(f"--program {name}: {path} has {_names(programs)}")
        if len(chosen) > 1:
            raise BadInput(f"--program {name}: {path} has {len(chosen)} of this name")
        return checked(chosen[0])
    except TraceError as error:
        raise BadInput(str(error)) from error


def _names(programs: Sequence[Columns]) -> str:
    names = [one.origin.device for one in programs]
    return ", ".join(repr(name) for name in names if name is not None) or "one program, without a name"


def _text(trace: Trace, found: Plan, output: str | None) -> str:
    """Return the figures of a plan as text for a terminal."""

    def size(nbytes: int) -> str:
        return f"{format_size(nbytes)} ({counted(nbytes, 'byte')})"

    over = found.arena / found.lower_bound if found.lower_bound else 1.0
    if found.arena == found.lower_bound:
        said = "as small as the lower bound"
    elif found.optimal:
        said = f"{over:.4f} times the lower bound; the search has tried every smaller one"
    else:
        said = f"{over:.4f} times the lower bound; more time may find a smaller one"
    lines = [
        f"{one_line(trace.title)}: {counted(trace.program.events, 'event')}, {counted(found.requests, 'request')}",
        f"lower bound   {size(found.lower_bound)}: the most that is live at once, in multiples of {found.alignment}",
        f"arena         {size(found.arena)}: {said}",
        "checked       no two blocks that live at the same time overlap",
    ]
    if trace.origin.incomplete:
        lines.append("incomplete    " + "; ".join(trace.origin.missing))
    if output is not None:
        lines.append(f"written       {one_line(output)}")
    return "\n".join(lines) + "\n"

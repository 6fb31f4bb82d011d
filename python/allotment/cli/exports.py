"""The option ``--export`` of ``replay``."""

from collections.abc import Sequence

from allotment._core import one_line
from allotment.cli.command import BadInput
from allotment.cli.progress import progress
from allotment.trace import Columns, ReplayOptions, TraceError, export_trace


def write_exports(
    exports: Sequence[tuple[str, str]], programs: Sequence[Columns], options: ReplayOptions
) -> None:
    """Write a trace in other programs' formats.

    Args:
        exports: Formats and files.
        programs: The programs of the trace.
        options: Options of the pool.

    Raises:
        BadInput: A format cannot say what the trace has, or a file cannot be written.
    """
    with progress(len(exports), long=True) as steps:
        for name, file in exports:
            steps.begin(f"writing {one_line(file)}")
            try:
                export_trace(programs, name, file, options)
            except TraceError as error:
                raise BadInput(str(error)) from error
            except ValueError as error:
                raise BadInput(f"--export {name}={file}: {error}") from error
            except OSError as error:
                raise BadInput(
                    f"--export {name}={file}: cannot be written: {error.strerror or error}"
                ) from error

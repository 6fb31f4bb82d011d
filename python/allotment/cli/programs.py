"""The commands that run other programs: their options."""

import click

from allotment.cli.command import Outcome, Size


@click.command("record", context_settings={"ignore_unknown_options": True})
@click.option(
    "-o",
    "--output",
    default="allotment.npz",
    show_default=True,
    metavar="FILE",
    help="The trace to write. Other processes of the program, forked children included, write FILE.PID.",
)
@click.option("--tags", is_flag=True, help="Note which line of Python asked for each allocation.")
@click.option(
    "--stacks",
    type=click.IntRange(0, 64),
    default=0,
    show_default=True,
    metavar="NUMBER",
    help="Note this many frames of Python's stack for each allocation, the innermost ones. Excludes --tags.",
)
@click.option(
    "--last",
    type=click.IntRange(1),
    metavar="NUMBER",
    help="Keep this many of the last events, and write them when a request is refused, or else at the end.",
)
@click.option(
    "--host",
    is_flag=True,
    help="Record the large blocks of host memory of any program, in any language, instead of pools. Linux only.",
)
@click.option(
    "--threshold",
    type=Size(minimum=4096),
    show_default="128KiB",
    metavar="SIZE",
    help="With --host: blocks of at least this many bytes are large.",
)
@click.argument("program", metavar="-- PROGRAM...", nargs=-1, required=True, type=click.UNPROCESSED)
def record_command(
    output: str,
    tags: bool,
    stacks: int,
    last: int | None,
    host: bool,
    threshold: int | None,
    program: tuple[str, ...],
) -> Outcome:
    """Run a program and record the events of its pools.

    The trace is readable while the program runs, and after it was killed, but for events of its last 0.05 s; refusals
    are written at once. With --last it is written at a refusal or at the end only. A FILE that is there stays until the
    program has ended, and if nothing was recorded. The exit status is the program's, 128 more than the number of the
    signal that ended it, or 2 if it cannot be run.
    """
    if tags and stacks:
        raise click.UsageError("'--tags' and '--stacks' exclude each other")
    if host:
        if tags or stacks or last is not None:
            raise click.UsageError("'--host' excludes '--tags', '--stacks' and '--last'")
        from allotment.cli.host import DEFAULT_THRESHOLD, HostOptions, run_host_program

        options = HostOptions(threshold=threshold or DEFAULT_THRESHOLD, output=output, has_summary=False)
        return run_host_program(program, options)
    if threshold is not None:
        raise click.UsageError("'--threshold' is of '--host'")
    from allotment.cli.record import record_program

    return record_program(output, program, tags=tags, stacks=stacks, last=last)


@click.command("run", context_settings={"ignore_unknown_options": True})
@click.option(
    "--limit",
    type=Size(minimum=1 << 20, maximum=1 << 46),
    required=True,
    metavar="SIZE",
    help="The most bytes of large blocks of each process; 1 MiB to 64 TiB.",
)
@click.option(
    "--threshold",
    type=Size(minimum=4096),
    default="128KiB",
    show_default=True,
    metavar="SIZE",
    help="Blocks of at least this many bytes are large.",
)
@click.option(
    "--keep",
    type=Size(),
    default="64MiB",
    show_default=True,
    metavar="SIZE",
    help="The most bytes of freed blocks that stay with the process for its next ones, or a quarter of the bytes in "
    "use if that is more; all else goes back to the system at once. With 0 all goes back.",
)
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    help="Write a trace of the large blocks. Other processes of the program write FILE.PID.",
)
@click.option(
    "--timeline",
    metavar="FILE.csv",
    help="Write a table with the bytes of large blocks over time (t_ns, pid, live, refused).",
)
@click.option(
    "--quiet", is_flag=True, help="Print no summary at the end. Refused requests are told in any case."
)
@click.argument("program", metavar="-- PROGRAM...", nargs=-1, required=True, type=click.UNPROCESSED)
def run_command(
    limit: int,
    threshold: int,
    keep: int,
    output: str | None,
    timeline: str | None,
    quiet: bool,
    program: tuple[str, ...],
) -> Outcome:
    """Run a program with its large blocks of host memory in one pool with a limit.

    The program may be in any language, if it takes memory by malloc, operator new and the like and is linked
    dynamically. A request above the limit is refused as if the machine had no more memory: malloc returns a null
    pointer, Python raises MemoryError. The pool's report of it goes to standard error. Programs that the program starts
    have the same limit each, but for those that are linked statically or started without LD_PRELOAD. Linux only.

    The exit status is the program's, 128 more than the number of the signal that ended it, or 2 if it cannot be run
    under the limit.
    """
    from allotment.cli.host import HostOptions, run_host_program

    options = HostOptions(limit, threshold, keep, output, timeline, has_summary=not quiet)
    return run_host_program(program, options)

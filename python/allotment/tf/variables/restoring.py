"""Registry of restored checkpoint values whose variables do not exist yet.

``training.checkpoint`` adds an entry when it restores a checkpoint before all variables exist. Layers, modules and
optimizers call ``restore_pending`` after they have created variables.
"""

import threading
from typing import Final, Protocol


class PendingRestoration(Protocol):
    """Checkpoint values, some of whose variables do not exist yet."""

    def retry(self) -> bool:
        """Assign the values whose variables exist now; return whether values are left."""


#: Restorations with values left. Empty unless a checkpoint was restored before its variables were created.
pending: Final[list[PendingRestoration]] = []
#: Held while entries are tried, added or removed. Re-entrant: a retry may create variables, such as slots.
lock: Final = threading.RLock()


def restore_pending() -> None:
    """Assign pending checkpoint values to the variables that have been created in the meantime."""
    with lock:
        for each in tuple(pending):
            if not each.retry() and each in pending:
                pending.remove(each)


__all__ = ["PendingRestoration", "lock", "pending", "restore_pending"]

"""Values that wait for variables which are not made yet: layers, modules and optimizers ask here when they made some.

Below everything that makes variables: ``training.checkpoint`` enters what waits.
"""

from typing import Final, Protocol


class Waiting(Protocol):
    """Values of a checkpoint that wait for variables."""

    def retry(self) -> bool:
        """Give the values to variables that are there now; returns whether some values still wait."""


#: What waits. Empty unless a checkpoint was restored before its variables were made.
waiting: Final[list[Waiting]] = []


def variables_made() -> None:
    """Give values that wait to variables that were made since."""
    for each in tuple(waiting):
        if not each.retry() and each in waiting:
            waiting.remove(each)


__all__ = ["Waiting", "variables_made", "waiting"]

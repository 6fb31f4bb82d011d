"""The BLAS's own threads, while replicas compute in threads of theirs.

With several for each replica, the threads of all wait for each other: small steps would take twenty times as long.
"""

from contextlib import AbstractContextManager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController


@cache
def _controller() -> Any:
    """What the BLAS libraries of the process are told with; looking for them takes some milliseconds."""
    return ThreadpoolController().select(user_api="blas")


def shared_by(replicas: int) -> AbstractContextManager[Any]:
    """Divide the BLAS's threads among replicas in a ``with`` block: each gets one at least.

    Most libraries have one number for the process, and of several threads that would change it only the first one does.
    """
    controller = _controller()
    threads = max((library.num_threads for library in controller.lib_controllers), default=1)
    limit: AbstractContextManager[Any] = controller.limit(limits=max(1, threads // replicas))
    return limit


__all__ = ["shared_by"]

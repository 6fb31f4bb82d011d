"""The number of threads of the BLAS libraries while replicas compute on threads of their own.

With several BLAS threads for each replica, they wait for each other: small steps take twenty times as long.
"""

from contextlib import AbstractContextManager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController


@cache
def _controller() -> Any:
    """Find the BLAS libraries of the process, which takes some milliseconds."""
    return ThreadpoolController().select(user_api="blas")


def divide_blas_threads(replicas: int) -> AbstractContextManager[Any]:
    """Divide the BLAS threads among replicas in a ``with`` block: each gets at least one.

    Most libraries have one number for the process, and of several threads that would change it only the first one does.
    """
    controller = _controller()
    threads = max((library.num_threads for library in controller.lib_controllers), default=1)
    limit: AbstractContextManager[Any] = controller.limit(limits=max(1, threads // replicas))
    return limit


__all__ = ["divide_blas_threads"]

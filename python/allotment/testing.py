"""Helps for tests of programs: GPUs made of host memory."""

from allotment.devices.context import context


def simulate_gpus(gpus: str | int) -> None:
    """Simulate GPUs in this process, instead of what ``ALLOTMENT_SIMULATED_GPUS`` says or what is real.

    To be called before the first question about devices; the last call before that counts. Later, a call that
    asks for the GPUs there are is accepted.

    Args:
        gpus: A count of GPUs, each with 4 GiB, or groups with a size, such as ``"4:16GiB"`` or
            ``"2:1GiB,1:512MiB"``; ``"0"`` is none.

    Raises:
        ValueError: Not of that form.
        RuntimeError: Somebody asked about devices before; the text says where.
    """
    context().simulate_gpus(str(gpus))


__all__ = ["simulate_gpus"]

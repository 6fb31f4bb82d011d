"""What if: the same program under several policies, at a range of limits."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from allotment._core import parse_size, replay
from allotment.trace.compare import Policy, policies, replay_model
from allotment.trace.reader import Trace
from allotment.trace.report import ReplayOptions

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Sweep:
    """Refusals of a program over a range of limits."""

    trace: Trace
    policies: tuple[Policy, ...]
    #: Limits in bytes, shape (limits,).
    limits: "NDArray[np.int64]"
    #: Number of refused requests, shape (policies, limits).
    refused: "NDArray[np.int64]"

    def as_dict(self) -> dict[str, Any]:
        """Return the curve of each policy, for JSON."""
        return {
            "trace": self.trace.path,
            **({} if self.trace.origin.device is None else {"device": self.trace.origin.device}),
            "peak_live": self.trace.program.peak_live,
            **self.trace.origin.completeness(),
            "limits": self.limits.tolist(),
            "refused": {
                policy.name: row.tolist() for policy, row in zip(self.policies, self.refused, strict=True)
            },
        }


def sweep(
    trace: Trace,
    options: ReplayOptions | None = None,
    *,
    limits: Sequence[int | str] | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> Sweep:
    """Replay a program under each policy at each limit.

    Elastic pools with pages above one of the limits are left out.

    Args:
        trace: The recorded program.
        options: Options of the pools; limit, growth, policy and pages are ignored.
        limits: Limits in bytes, or texts such as ``"64MiB"``; by default 21 from half the peak of live bytes to one and
            a half times it.
        progress: Called with the number of replays done and of all.

    Raises:
        ValueError: A limit is not positive.
    """
    import numpy as np

    peak = trace.program.peak_live
    steps = [max(1, peak * share // 20) for share in range(10, 31)] if limits is None else _sizes(limits)
    if min(steps, default=1) < 1:
        raise ValueError(f"limit {min(steps)} is not positive")
    # The limit of an elastic pool is at least a page.
    chosen = tuple(
        policy
        for policy in policies(options or ReplayOptions())
        if policy.options is None
        or not policy.options.elastic
        or policy.options.page_bytes <= min(steps, default=0)
    )
    refused = np.zeros((len(chosen), len(steps)), np.int64)
    for row, policy in enumerate(chosen):
        for column, limit in enumerate(steps):
            if progress is not None:
                progress(row * len(steps) + column, refused.size)
            if policy.options is not None:
                refused[row, column] = replay(
                    trace.program, **asdict(replace(policy.options, limit=limit))
                ).refused
            else:
                refused[row, column] = replay_model(trace, policy, limit).refused
    return Sweep(trace, chosen, np.array(steps, np.int64), refused)


def _sizes(limits: Sequence[int | str]) -> list[int]:
    return [parse_size(limit) if isinstance(limit, str) else limit for limit in limits]

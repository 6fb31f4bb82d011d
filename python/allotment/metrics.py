"""Figures of all pools as Prometheus reads them, through its client library."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from allotment._core import all_stats

if TYPE_CHECKING:
    from prometheus_client import Metric

#: Figure of ``PoolStats`` to the text that explains it; amounts that go up and down.
_GAUGES: Final = {
    "requested": "Bytes that callers asked for and still hold",
    "in_use": "Bytes of the chunks in use",
    "internal_fragmentation": "Bytes in use that were not asked for, lost inside chunks",
    "reserved": "Bytes of all regions, in use or not",
    "limit": "The most that may be reserved, in bytes",
    "free": "Bytes reserved and not in use",
    "largest_free": "Size of the largest free chunk, in bytes",
    "peak_in_use": "The most bytes in use since the last reset",
    "peak_reserved": "The most bytes reserved since the last reset",
}
_RATIOS: Final = {"fragmentation": "Share of the free bytes that is not in the largest free chunk"}
_NUMBERS: Final = {"num_live": "Allocations held", "num_regions": "Regions held"}
#: What only ever goes up.
_COUNTERS: Final = {
    "num_allocs": "Allocations ever made",
    "num_grants": "Regions ever got from the source",
    "num_refused": "Requests that were refused memory",
}
#: Two pools may have the same name, and none the same number.
_LABELS: Final = ("pool", "number")


class _Pools:
    """Collects the figures of all pools that are alive."""

    def collect(self) -> "Iterator[Metric]":
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        pools = all_stats()
        for figures, unit in ((_GAUGES, "bytes"), (_RATIOS, "ratio"), (_NUMBERS, "")):
            for figure, text in figures.items():
                name = f"allotment_pool_{figure.removeprefix('num_')}" + (f"_{unit}" if unit else "")
                family = GaugeMetricFamily(name, text, labels=_LABELS)
                for pool, number, stats in pools:
                    family.add_metric([pool, str(number)], getattr(stats, figure))
                yield family
        for figure, text in _COUNTERS.items():
            counter = CounterMetricFamily(
                f"allotment_pool_{figure.removeprefix('num_')}", text, labels=_LABELS
            )
            for pool, number, stats in pools:
                counter.add_metric([pool, str(number)], getattr(stats, figure))
            yield counter


def metrics_text() -> str:
    """Return the figures of all pools of the process in Prometheus' text format.

    One line for each figure and pool, named ``allotment_pool_…`` and labelled with the pool's name and with its
    number, which no other pool of the process has.

    Raises:
        ImportError: The Prometheus client is not installed: ``pip install allotment[metrics]``.
    """
    try:
        from prometheus_client import CollectorRegistry, generate_latest
    except ImportError as error:
        raise ImportError(
            "metrics_text() needs the package prometheus-client: pip install 'allotment[metrics]'"
        ) from error
    registry = CollectorRegistry()
    registry.register(_Pools())
    return generate_latest(registry).decode()

"""Statistics of all pools in Prometheus' text format, written by its client library."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from allotment._core import all_stats

if TYPE_CHECKING:
    from prometheus_client import Metric

#: Fields of ``PoolStats`` that may rise and fall, each with its help text. The client's name for these is gauge.
_GAUGES: Final = {
    "requested": "Bytes requested by the live allocations",
    "in_use": "Bytes of the chunks in use",
    "internal_fragmentation": "Bytes in use beyond the bytes requested, lost inside chunks",
    "reserved": "Bytes of all regions, in use or not",
    "limit": "The most bytes that the pool may reserve",
    "committed": "Bytes with memory",
    "free": "Bytes reserved and not in use",
    "thread_cached": "Free bytes that thread caches keep",
    "largest_free": "Size of the largest free chunk, in bytes",
    "peak_in_use": "The most bytes in use since the last reset",
    "peak_reserved": "The most bytes reserved since the last reset",
}
_RATIOS: Final = {"fragmentation": "Share of the free bytes that is not in the largest free chunk"}
_NUMBERS: Final = {"num_live": "Live allocations", "num_regions": "Regions reserved"}
#: Fields that never fall.
_COUNTERS: Final = {
    "num_allocs": "Allocations since the pool was created",
    "num_from_thread_caches": "Allocations served from thread caches since the pool was created",
    "num_commits": "Pages that received memory since the elastic pool was created",
    "num_planned": "Requests that got their place in the plan since the pool was created",
    "num_grants": "Regions granted by the source since the pool was created",
    "num_refused": "Requests refused since the pool was created",
}
#: Pool names need not be unique; pool numbers are.
_LABELS: Final = ("pool", "number")


class _Pools:
    """Prometheus collector over the statistics of all live pools."""

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
    """Return the statistics of all pools of the process in Prometheus' text format.

    Each line is one metric of one pool, such as ``allotment_pool_in_use_bytes``, labelled with the pool's name and
    its number. Names may repeat; numbers are unique in the process.

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

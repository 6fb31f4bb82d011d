"""Recorded allocations: reads trace files, replays them into pools and reports the results."""

from allotment.trace.error import TraceError
from allotment.trace.reader import Columns, Trace, read_columns, read_trace
from allotment.trace.report import ReplayOptions, Report, Search, replay_at_min_limit, replay_trace

__all__ = [
    "Columns",
    "ReplayOptions",
    "Report",
    "Search",
    "Trace",
    "TraceError",
    "read_columns",
    "read_trace",
    "replay_at_min_limit",
    "replay_trace",
]

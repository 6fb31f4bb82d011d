"""Recorded allocations: reads trace files, replays them into pools and reports the results."""

from allotment.trace.error import TraceError
from allotment.trace.reader import Trace, read_all_columns, read_columns, read_trace, read_traces
from allotment.trace.recording import Columns, Origin, RecordedRefusal
from allotment.trace.report import ReplayOptions, Report, Search, replay_at_min_limit, replay_trace

__all__ = [
    "Columns",
    "Origin",
    "RecordedRefusal",
    "ReplayOptions",
    "Report",
    "Search",
    "Trace",
    "TraceError",
    "read_all_columns",
    "read_columns",
    "read_trace",
    "read_traces",
    "replay_at_min_limit",
    "replay_trace",
]

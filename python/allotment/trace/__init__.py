"""Recorded allocations: reads trace files, replays them into pools and reports the results."""

from allotment.trace.compare import Compared, Comparison, Policy, compare
from allotment.trace.error import TraceError
from allotment.trace.exports import EXPORT_FORMATS, export_trace
from allotment.trace.plan import PlanArrays, plan, plan_arrays, read_plan, write_plan
from allotment.trace.reader import Trace, read_all_columns, read_columns, read_trace, read_traces
from allotment.trace.recorder import Recording, record
from allotment.trace.recording import Columns, Origin, RecordedRefusal
from allotment.trace.report import ReplayOptions, Report, Search, replay_at_min_limit, replay_trace
from allotment.trace.sweep import Sweep, sweep
from allotment.trace.timeline import Timeline, timeline
from allotment.trace.writer import write_trace

__all__ = [
    "EXPORT_FORMATS",
    "Columns",
    "Compared",
    "Comparison",
    "Origin",
    "PlanArrays",
    "Policy",
    "RecordedRefusal",
    "Recording",
    "ReplayOptions",
    "Report",
    "Search",
    "Sweep",
    "Timeline",
    "Trace",
    "TraceError",
    "compare",
    "export_trace",
    "plan",
    "plan_arrays",
    "read_all_columns",
    "read_columns",
    "read_plan",
    "read_trace",
    "read_traces",
    "record",
    "replay_at_min_limit",
    "replay_trace",
    "sweep",
    "timeline",
    "write_plan",
    "write_trace",
]

"""Step statistics of a traced run: when each node ran, and the memory it allocated."""

import time
from typing import Any

from allotment.tf.graph.options.config_proto import DeviceStepStats, RunMetadata
from allotment.tf.graph.running.program import Segment


class Tracer:
    """Collects the statistics of a run: called after each step."""

    def __init__(self) -> None:
        self._by_device: dict[str, DeviceStepStats] = {}
        self._last = time.time_ns()

    def __call__(self, segment: Segment, position: int, values: list[Any]) -> None:
        """Record the time and memory of the step at a position."""
        now = time.time_ns()
        operation, device = segment.operations[position], segment.devices[position]
        stats = self._by_device.setdefault(device.name, DeviceStepStats(device=device.name))
        micros = (now - self._last) // 1000
        node = stats.node_stats.add(
            node_name=operation.name,
            all_start_micros=self._last // 1000,
            op_end_rel_micros=micros,
            all_end_rel_micros=micros,
            timeline_label=str(operation.name) + " = " + operation.type,
        )
        step = segment.steps[position]
        pool = segment.home.pool
        slots = step.output if isinstance(step.output, tuple) else (step.output,)
        for slot in slots:
            array = values[slot] if slot >= 0 else None
            if array is None or array.base is not None:
                continue
            memory = node.memory.add(
                allocator_name="cpu" if pool is None else pool.name,
                total_bytes=array.nbytes,
                peak_bytes=array.nbytes,
                live_bytes=array.nbytes,
                allocator_bytes_in_use=0 if pool is None else pool.stats().in_use,
            )
            memory.allocation_records.add(alloc_micros=now // 1000, alloc_bytes=array.nbytes)
        self._last = now

    def fill(self, metadata: RunMetadata) -> None:
        """Replace the contents of a message with the statistics."""
        metadata.Clear()
        metadata.step_stats.dev_stats.extend(self._by_device.values())


__all__ = ["Tracer"]

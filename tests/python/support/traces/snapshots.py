"""Makes memory snapshots of PyTorch, and a small allocator that records itself as PyTorch does."""

import random
from collections import deque
from dataclasses import dataclass, field
from typing import Any

MIB = 1 << 20
SEGMENT = 20 * MIB


def event(action: str, addr: int, size: int, stream: int = 0, **more: Any) -> dict[str, Any]:
    key = "device_free" if action == "oom" else "addr"
    return {"action": action, key: addr, "size": size, "stream": stream, "time_us": 1, "frames": [], **more}


def block(size: int, requested: int, state: str = "active_allocated") -> dict[str, Any]:
    return {"size": size, "requested_size": requested, "state": state, "frames": []}


def segment(address: int, blocks: list[dict[str, Any]], device: int = 0, **more: Any) -> dict[str, Any]:
    return {
        "device": device,
        "address": address,
        "total_size": sum(one["size"] for one in blocks),
        "stream": 0,
        "segment_type": "large",
        "is_expandable": False,
        "blocks": blocks,
        **more,
    }


def snapshot(segments: list[dict[str, Any]], *traces: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    return {"segments": segments, "device_traces": list(traces), "allocator_settings": {}, **more}


@dataclass
class Recorder:
    """Blocks that never share a segment, with a ring of the last events: everything a snapshot says can be counted."""

    ring: int
    live: dict[int, tuple[int, int, bool]] = field(default_factory=dict)
    events: deque[tuple[dict[str, Any], int]] = field(default_factory=deque)
    #: Live bytes before each event that is still in the ring.
    live_bytes: int = 0
    reserved: set[int] = field(default_factory=set)

    def record(self, entry: dict[str, Any]) -> None:
        self.events.append((entry, self.live_bytes))
        if len(self.events) > self.ring:
            self.events.popleft()

    def run(self, steps: int, seed: int) -> None:
        chosen = random.Random(seed)
        for _ in range(steps):
            waiting = [address for address, (_, _, freed) in self.live.items() if freed]
            running = [address for address, (_, _, freed) in self.live.items() if not freed]
            action = chosen.choice(["alloc", "alloc", "free", "complete"])
            if action == "alloc":
                vacant = [number for number in range(1, 40) if number not in self.live]
                if not vacant:
                    continue
                address = chosen.choice(vacant) * SEGMENT
                if address not in self.reserved:
                    self.reserved.add(address)
                    self.record(event("segment_alloc", address, SEGMENT))
                size = chosen.randrange(1, SEGMENT)
                stream = chosen.choice([0, 7])
                self.record(event("alloc", address, size, stream))
                self.live[address // SEGMENT] = (size, stream, False)
                self.live_bytes += size
            elif action == "free" and running:
                number = chosen.choice(running)
                size, stream, _ = self.live[number]
                self.record(event("free_requested", number * SEGMENT, size, stream))
                self.live[number] = (size, stream, True)
            elif waiting:
                number = chosen.choice(waiting)
                size, stream, _ = self.live.pop(number)
                self.record(event("free_completed", number * SEGMENT, size, stream))
                self.live_bytes -= size

    def snapshot(self) -> dict[str, Any]:
        segments = []
        for address in sorted(self.reserved):
            held = self.live.get(address // SEGMENT)
            if held is None:
                segments.append(segment(address, [block(SEGMENT, 5, "inactive")]))
                continue
            size, stream, freed = held
            state = "active_pending_free" if freed else "active_allocated"
            segments.append(segment(address, [block(SEGMENT, size, state)], stream=stream))
        return snapshot(segments, [entry for entry, _ in self.events])

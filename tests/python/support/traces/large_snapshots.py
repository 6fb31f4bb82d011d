"""Writes memory snapshots of PyTorch of any length, as ``pickle`` writes what PyTorch builds.

PyTorch makes one dictionary for each frame, one list for each recorded stack, and gives the same list to both events
of a free. ``pickle`` writes each object once and refers to it after that. The objects of millions of events take
gigabytes, so the instructions are written here one event at a time.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import IO

#: Items that ``pickle`` appends with one instruction.
_BATCH = 1000

#: Bytes of a segment, and addresses of segments.
_SEGMENT = 20 << 20
_FIRST_ADDRESS = 0x7F00_0000_0000


@dataclass(frozen=True, slots=True)
class Shape:
    """What a snapshot has."""

    #: Entries of the trace; a block takes three of them: it is allocated, its free is requested, and completed.
    events: int
    #: Frames of each stack; 0 for snapshots without stacks.
    depth: int = 30
    #: Different lines of source.
    lines: int = 2000
    #: Different stacks; ``None`` for one of its own for each block.
    stacks: int | None = 500
    #: Whether frames are the same objects, as PyTorch makes them.
    shared: bool = True
    #: Most blocks that are live at a time.
    live: int = 2000
    seed: int = 0


def write_snapshot(file: IO[bytes], shape: Shape) -> None:
    """Write a snapshot."""
    _Writer(file, shape).write()


class _Writer:
    """Writes the instructions, and counts the objects that ``pickle`` remembers: containers and texts."""

    def __init__(self, file: IO[bytes], shape: Shape) -> None:
        self.file = file
        self.shape = shape
        self.chosen = random.Random(shape.seed)
        self.objects = 0
        #: Numbers of what is referred to: texts that PyTorch makes once, and frames.
        self.texts: dict[str, int] = {}
        self.frames: dict[int, int] = {}
        self.live: list[tuple[int, int, int]] = []

    def write(self) -> None:
        self.file.write(b"\x80\x04" + self._new(b"}") + b"(" + self._text("device_traces"))
        self.file.write(self._new(b"]") + self._new(b"]"))
        self._write_items(self._entries())
        self.file.write(b"a" + self._text("segments") + self._new(b"]"))
        self._write_items(self._segments())
        self.file.write(self._text("allocator_settings") + self._new(b"}") + b"u.")

    def _write_items(self, items: Iterator[bytes]) -> None:
        while batch := list(islice(items, _BATCH)):
            content = b"".join(batch)
            self.file.write(content + b"a" if len(batch) == 1 else b"(" + content + b"e")

    def _entries(self) -> Iterator[bytes]:
        """Yield the entries of a program in which blocks come and go."""
        chosen, shape = self.chosen, self.shape
        vacant = [_FIRST_ADDRESS + number * _SEGMENT for number in range(shape.live)]
        stacks = [self._stack() for _ in range(shape.stacks or 0)]
        time = written = 0
        while written + 2 <= shape.events:
            stack = chosen.choice(stacks) if stacks else self._stack()
            time += chosen.randrange(1, 50)
            if vacant and (not self.live or chosen.random() < 0.6):
                address = vacant.pop(chosen.randrange(len(vacant)))
                size = 512 * chosen.randrange(1, _SEGMENT // 512)
                entry, frames = self._entry("alloc", address, size, time, stack)
                self.live.append((address, size, frames))
                yield entry
                written += 1
            else:
                address, size, _ = self.live.pop(chosen.randrange(len(self.live)))
                vacant.append(address)
                entry, frames = self._entry("free_requested", address, size, time, stack)
                yield entry
                # Both have the list of one stack.
                yield self._entry("free_completed", address, size, time + 1, frames)[0]
                written += 2

    def _segments(self) -> Iterator[bytes]:
        for address, size, frames in sorted(self.live):
            yield b"".join(
                (
                    self._new(b"}") + b"(",
                    self._text("address") + _int(address),
                    self._text("total_size") + _int(_SEGMENT),
                    self._text("stream") + _int(0),
                    self._text("blocks") + self._new(b"]") + self._new(b"}") + b"(",
                    self._text("size") + _int(_SEGMENT),
                    self._text("requested_size") + _int(size),
                    self._text("state") + self._text("active_allocated"),
                    self._text("frames") + (_get(frames) if self.shape.depth else self._new(b"]")),
                    b"uau",
                )
            )

    def _stack(self) -> list[int]:
        return [self.chosen.randrange(self.shape.lines) for _ in range(self.shape.depth)]

    def _entry(
        self, action: str, address: int, size: int, time: int, stack: list[int] | int
    ) -> tuple[bytes, int]:
        """Return an entry, and the number of its list of frames. ``stack`` has lines, or is the number of a list."""
        out = [
            self._new(b"}") + b"(",
            self._text("action") + self._text(action),
            self._text("addr") + _int(address),
            self._text("size") + _int(size),
            self._text("stream") + _int(0),
            self._text("time_us") + _int(time),
            # PyTorch makes a text for each entry, but there is one empty text only.
            self._text("compile_context") + self._new(_short("N/A")),
            self._text("user_metadata") + self._text(""),
            self._text("frames"),
        ]
        if isinstance(stack, list) or not self.shape.depth:
            frames = self.objects
            out.append(self._new(b"]"))
            if isinstance(stack, list) and stack:
                content = b"".join(map(self._frame, stack))
                out.append(content + b"a" if len(stack) == 1 else b"(" + content + b"e")
        else:
            frames = stack
            out.append(_get(stack))
        return b"".join(out) + b"u", frames

    def _frame(self, line: int) -> bytes:
        known = self.frames.get(line)
        if known is not None and self.shape.shared:
            return _get(known)
        self.frames[line] = self.objects
        out = self._new(b"}") + b"("
        out += self._text("name") + self._new(_short(f"function_{line % 97}_of_a_module"))
        out += self._text("filename") + self._new(
            _short(f"/opt/python/lib/site-packages/net/module_{line % 31}.py")
        )
        return out + self._text("line") + _int(line) + b"u"

    def _text(self, text: str) -> bytes:
        known = self.texts.get(text)
        if known is not None:
            return _get(known)
        self.texts[text] = self.objects
        return self._new(_short(text))

    def _new(self, content: bytes) -> bytes:
        self.objects += 1
        return content + b"\x94"


def _short(text: str) -> bytes:
    return b"\x8c" + bytes([len(text)]) + text.encode()


def _get(number: int) -> bytes:
    return b"h" + bytes([number]) if number < 256 else b"j" + number.to_bytes(4, "little")


def _int(number: int) -> bytes:
    if number < 1 << 8:
        return b"K" + bytes([number])
    if number < 1 << 16:
        return b"M" + number.to_bytes(2, "little")
    if number < 1 << 31:
        return b"J" + number.to_bytes(4, "little")
    length = number.bit_length() // 8 + 1
    return b"\x8a" + bytes([length]) + number.to_bytes(length, "little")

"""Stacks in snapshots of PyTorch: lists of frames with ``filename``, ``line`` and ``name``, as texts."""

from typing import Any

#: Frames of a stack that its text has; the innermost ones.
MAX_FRAMES = 40


class Stacks:
    """Numbers of stacks in the order in which they are met."""

    def __init__(self) -> None:
        #: The text of each stack by number.
        self.texts: list[str] = []
        self._numbers: dict[str, int] = {}
        # PyTorch writes each frame once, and stacks as lists of them: texts are made once per stack.
        self._by_frames: dict[tuple[int, ...], int] = {}

    def number(self, frames: Any) -> int:
        """Return the number of a stack, -1 if there is none.

        Args:
            frames: What the snapshot has; frames must stay alive as long as this object is used.
        """
        if not isinstance(frames, list) or not frames:
            return -1
        key = tuple(map(id, frames))
        known = self._by_frames.get(key)
        if known is None:
            text = stack_text(frames)
            known = -1 if text is None else self._numbers.setdefault(text, len(self._numbers))
            if known == len(self.texts) and text is not None:
                self.texts.append(text)
            self._by_frames[key] = known
        return known


def stack_text(frames: Any) -> str | None:
    """Return a frame in each line, ``file:line name``, the innermost first; ``None`` without frames."""
    if not isinstance(frames, list):
        return None
    lines = []
    for frame in frames[:MAX_FRAMES]:
        if isinstance(frame, dict):
            file, line, name = (frame.get(key, "") for key in ("filename", "line", "name"))
            lines.append(f"{file}:{line} {name}".rstrip() if file else str(name))
    if len(frames) > MAX_FRAMES:
        lines.append(f"and {len(frames) - MAX_FRAMES} more")
    return "\n".join(lines) or None

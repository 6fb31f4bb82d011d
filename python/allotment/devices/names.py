"""Device names: two grammars that read them, one form that prints them.

TensorFlow has two parsers that disagree, and programs rely on both (placement, section 2). ``parse`` reads the names
given to ``device(...)`` and ``DeviceSpec``; ``parse_runtime`` those of memory figures and of the placing of graphs.
Both accept the printed form.
"""

import re
from dataclasses import dataclass
from functools import lru_cache

from allotment._core import show_text

#: Types that ``parse`` takes without ``device:`` before them, in any case.
SHORT_KINDS = frozenset({"CPU", "GPU", "TPU", "CUSTOM", "EPU"})


@dataclass(frozen=True, slots=True)
class DeviceName:
    """The parts of a device name; a part that is ``None`` is not set and matches everything."""

    job: str | None = None
    replica: int | None = None
    task: int | None = None
    kind: str | None = None
    index: int | None = None

    def merged_with(self, other: "DeviceName") -> "DeviceName":
        """Return a name with each part of ``other`` that is set, else this one's.

        Parts are independent: ``GPU:2`` merged with ``CPU:*`` is ``CPU:2``.
        """
        return DeviceName(
            self.job if other.job is None else other.job,
            self.replica if other.replica is None else other.replica,
            self.task if other.task is None else other.task,
            self.kind if other.kind is None else other.kind,
            self.index if other.index is None else other.index,
        )

    def matches(self, device: "DeviceName") -> bool:
        """Whether every part that is set equals the device's part."""
        return (
            self.job in (None, device.job)
            and self.replica in (None, device.replica)
            and self.task in (None, device.task)
            and self.kind in (None, device.kind)
            and self.index in (None, device.index)
        )

    def to_string(self) -> str:
        """The canonical form, such as ``/job:localhost/device:GPU:0``; parts that are not set are left out.

        A type without an index is ``/device:GPU:*``; an index without a type is not printed.
        """
        text = "".join(
            f"/{label}:{part}"
            for label, part in (("job", self.job), ("replica", self.replica), ("task", self.task))
            if part is not None
        )
        if self.kind is not None:
            text += f"/device:{self.kind}:{'*' if self.index is None else self.index}"
        return text


def device_name(kind: str, index: int) -> DeviceName:
    """All parts of the name of a device of this process."""
    return DeviceName("localhost", 0, 0, kind, index)


def full_name(kind: str, index: int) -> str:
    """``/job:localhost/replica:0/task:0/device:GPU:0``: the form in logs, errors and ``tensor.device``."""
    return device_name(kind, index).to_string()


def short_name(kind: str, index: int) -> str:
    """``/device:GPU:0``: the form in lists of logical devices."""
    return DeviceName(kind=kind, index=index).to_string()


def canonical_kind(kind: str) -> str:
    """Upper-case ``cpu`` and ``gpu``, written exactly so; other spellings are other types."""
    return kind.upper() if kind in ("cpu", "gpu") else kind


# Scopes are entered again and again with the same few texts. The cache also turns down what cannot be hashed,
# with the TypeError that TensorFlow's own cache has for it.
@lru_cache(maxsize=1024)
def parse(text: str | None) -> DeviceName:
    """Read a device name by TensorFlow's Python grammar (placement, section 2.1).

    Pieces lie between slashes, in any order; empty ones are skipped, and ``None`` is the empty name. A
    repeated job, replica or task replaces the one before.

    Raises:
        ValueError: A piece that is not known, a second device, or a number that is none.
        TypeError: Bytes, or an object that cannot be hashed.
        AttributeError: Another object that is not a text.
    """
    parts: dict[str, str] = {}
    kind: str | None = None
    index: int | None = None
    for piece in ("" if text is None else text).split("/"):
        device = _read_piece(piece, parts)
        if device is None:
            first = piece.partition(":")[0]
            raise ValueError(
                f"Unknown attribute '{show_text(first)}' is encountered while parsing the device spec: "
                f"'{show_text(text or '')}'."
            )
        if device:
            if kind is not None:
                raise ValueError(
                    f"Multiple device types are not allowed while parsing the device spec: "
                    f"{show_text(text or '')}."
                )
            kind, index = device[0], _read_index(device[1])
    return DeviceName(
        parts.get("job"), _number(parts.get("replica")), _number(parts.get("task")), kind, index
    )


def _read_piece(piece: str, parts: dict[str, str]) -> tuple[()] | tuple[str, str] | None:
    """Read what lies between two slashes into ``parts``, or return type and index; ``None`` is not known."""
    match piece.split(":"):
        case ["", *_]:
            return ()
        case ["job" | "replica" | "task" as label, value]:
            parts[label] = value
            return ()
        case [kind, *index] if len(index) < 2 and kind.upper() in SHORT_KINDS:
            return kind.upper(), index[0] if index else "*"
        case ["device", kind, number]:
            return canonical_kind(kind), number
    return None


def _read_index(index: str) -> int | None:
    return None if index == "*" else int(index)


_RUNTIME_PIECE = re.compile(
    r"/job:(?P<job>\*|[A-Za-z][A-Za-z0-9_]*)"
    r"|/replica:(?P<replica>\*|[0-9]+)"
    r"|/task:(?P<task>\*|[0-9]+)"
    r"|/device:(?P<kind>\*|[A-Za-z][A-Za-z0-9_]*)(?::(?P<index>\*|[0-9]+))?"
    r"|/(?P<short_kind>cpu|CPU|gpu|GPU):(?P<short_index>\*|[0-9]+)"
)
_RUNTIME_LOCAL = re.compile(r"(?P<kind>[A-Za-z][A-Za-z0-9_]*):(?P<index>[0-9]+)")


def parse_runtime(text: str) -> DeviceName | None:
    """Read a device name by TensorFlow's runtime grammar (placement, section 2.2).

    Returns ``None`` if it does not parse.

    With a slash in front: pieces, of which only ``/cpu:`` and ``/gpu:`` (or in capitals, and with an index)
    may lack ``device:``. Without: type and index, both required and case-sensitive. Empty and ``/`` match
    everything.
    """
    local = _RUNTIME_LOCAL.fullmatch(text)
    if local is not None:
        return DeviceName(kind=local["kind"], index=int(local["index"]))
    return parse_runtime_slashes(text)


def parse_runtime_slashes(text: str) -> DeviceName | None:
    """Read only the form with slashes of the runtime grammar: the one that graphs are placed by."""
    if text in ("", "/"):
        return DeviceName()
    parts: dict[str, str | None] = {}
    position = 0
    while position < len(text):
        piece = _RUNTIME_PIECE.match(text, position)
        if piece is None:
            return None
        position = piece.end()
        # A later piece replaces an earlier one wholly: a type without an index clears the index.
        if piece["short_kind"] is not None:
            parts.update(kind=piece["short_kind"].upper(), index=piece["short_index"])
        elif piece["kind"] is not None:
            parts.update(kind=piece["kind"], index=piece["index"])
        else:
            parts.update({label: value for label, value in piece.groupdict().items() if value is not None})
    labels = ("job", "replica", "task", "kind", "index")
    job, replica, task, kind, index = (
        None if (part := parts.get(label)) == "*" else part for label in labels
    )
    return DeviceName(job, _number(replica), _number(task), kind, _number(index))


def _number(digits: str | None) -> int | None:
    return None if digits is None else int(digits)

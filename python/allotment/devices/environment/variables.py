"""The environment variables: name, accepted texts, default, and the function from text to value.

Only ``settings`` reads the environment.

Longer than 300 lines: one entry for each variable, with its text.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Generic, Literal, NamedTuple, TypeVar

from allotment._core import parse_size, show_text, show_value

_T = TypeVar("_T")
#: The split policies of pools.
Policy = Literal["tensorflow", "tight"]

_MIB = 1 << 20
#: The blank characters of C's ``isspace``. Python's ``str.strip`` also removes the no-break space, which no other
#: reader of environment variables does.
BLANKS: Final = " \t\n\v\f\r"

_WHOLE_NUMBER = re.compile(r"[+-]?[0-9]+")
_DIGITS = re.compile(r"[0-9]+")

#: The largest number of MiB that a pool's limit in bytes can be made of.
_MOST_MIB = (1 << 43) - 1

#: Longer numbers are out of range wherever one is read, and Python does not read those of more than 4300 digits.
_MOST_DIGITS = 19

#: Memory of a simulated GPU that is asked for without a size.
DEFAULT_GPU_MEMORY: Final = 4 << 30

#: Enough for any test; a typing error in the number must not make millions of devices.
MOST_SIMULATED_GPUS: Final = 1024

#: Seconds. A week: no step takes longer.
LONGEST_DEADLINE: Final = 7 * 24 * 60 * 60


@dataclass(frozen=True, slots=True)
class Variable(Generic[_T]):
    """One environment variable."""

    name: str
    #: The accepted texts, for messages.
    accepted: str
    #: The value while it is unset, and if its text cannot be used.
    default: _T
    #: Text to value. Raises ValueError, with the reason if it is not plain from ``accepted``.
    read: Callable[[str], _T]
    #: Its effect, for reports.
    effect: str
    #: A text that cannot be used is an error, not a warning.
    strict: bool = False


def read_gpus(text: str) -> tuple[int, ...]:
    """Return the bytes of each simulated GPU of a text such as ``4``, ``4:16GiB`` or ``2:1GiB,1:512MiB``.

    Raises:
        ValueError: Not of that form; the text says which part and why.
    """
    if not text.strip(BLANKS):
        return ()
    sizes: list[int] = []
    for group in text.split(","):
        count, colon, size = (part.strip(BLANKS) for part in group.partition(":"))
        if _DIGITS.fullmatch(count) is None:
            raise ValueError(f"{show_value(count)} is not a number of GPUs")
        nbytes = parse_size(size) if colon else DEFAULT_GPU_MEMORY
        if nbytes == 0:
            raise ValueError("a GPU cannot have 0 bytes")
        # Before the list is made: it may be a long one.
        number = _bounded(count)
        if number is None or len(sizes) + number > MOST_SIMULATED_GPUS:
            raise ValueError(
                f"{show_text(count)} is too many: at most {MOST_SIMULATED_GPUS} GPUs can be simulated"
            )
        sizes += [nbytes] * number
    return tuple(sizes)


class OpenClRequest(NamedTuple):
    """A request for a device of OpenCL, or for all of them."""

    #: Number of the device among all of OpenCL's; ``None``: each of them.
    number: int | None
    #: The most bytes of its memory to use; ``None``: all.
    memory: int | None


def read_opencl_devices(text: str) -> tuple[OpenClRequest, ...]:
    """Return the requests of a text such as ``all``, ``0``, ``0:4GiB`` or ``1,0:512MiB``.

    Raises:
        ValueError: Not of that form; the text says which part and why.
    """
    if not text.strip(BLANKS):
        return ()
    requests: list[OpenClRequest] = []
    for item in text.split(","):
        device, colon, size = (part.strip(BLANKS) for part in item.partition(":"))
        number = _bounded(device) if _DIGITS.fullmatch(device) else None
        if number is None and device != "all":
            raise ValueError(f"{show_value(device)} is not the number of a device")
        memory = parse_size(size) if colon else None
        if memory == 0:
            raise ValueError("a device cannot have 0 bytes")
        requests.append(OpenClRequest(number, memory))
    numbers = [request.number for request in requests]
    if len(set(numbers)) < len(numbers) or (None in numbers and len(numbers) > 1):
        raise ValueError("it names a device twice")
    return tuple(requests)


def _bounded(number: str) -> int | None:
    """Return the value of digits with or without a sign; ``None`` if it takes more than 64 bits."""
    sign, digits = ("-", number[1:]) if number.startswith("-") else ("", number.removeprefix("+"))
    digits = digits.lstrip("0") or "0"
    value = int(sign + digits) if len(digits) <= _MOST_DIGITS else None
    return value if value is not None and -(1 << 63) <= value < 1 << 63 else None


def _read_workers(text: str) -> int | None:
    """Return the number of workers of a cluster, ``None`` without one."""
    try:
        cluster = json.loads(text or "{}").get("cluster", {})
        tasks = [cluster.get(kind, ()) for kind in ("chief", "worker")]
    except AttributeError:
        raise ValueError from None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not all(isinstance(addresses, list | dict | tuple) for addresses in tasks):
        raise ValueError("the tasks of a kind are a list")
    return sum(map(len, tasks)) or None


def _read_exact_bool(text: str) -> bool:
    # TensorFlow compares two texts here; True, 1 and " true " mean nothing to it.
    match text:
        case "true":
            return True
        case "false":
            return False
    raise ValueError


def _read_bool(text: str) -> bool:
    match text.lower():
        case "1" | "true":
            return True
        case "0" | "false":
            return False
    raise ValueError


def _read_switch(text: str) -> bool:
    # Exactly what a pool accepts that is made without devices (the compiled module reads it then).
    match text:
        case "1":
            return True
        case "" | "0":
            return False
    raise ValueError("it is a switch")


def _read_optional_switch(text: str) -> bool | None:
    return _read_switch(text) if text else None


def _read_policy(text: str) -> Policy:
    match text:
        case "tensorflow" | "tight":
            return text
        case "":
            return "tensorflow"
    raise ValueError


def _read_whole_number(text: str) -> int:
    text = text.strip(BLANKS)
    number = _bounded(text) if _WHOLE_NUMBER.fullmatch(text) else None
    if number is None:
        raise ValueError
    return number


def _read_count(text: str) -> int:
    if (count := _read_whole_number(text) if text else 0) < 0:
        raise ValueError("it is negative")
    return count


def _read_reserve(text: str) -> int | None:
    if not text:
        return None
    if (mib := _read_whole_number(text)) < 0:
        raise ValueError
    return mib * _MIB


def _read_mib(text: str) -> int:
    if not 1 <= (mib := _read_whole_number(text)) <= _MOST_MIB:
        raise ValueError
    return mib * _MIB


def _read_deadline(text: str) -> float | None:
    # Python's own reader also takes the digits of other scripts, blanks that are not ASCII, and underscores.
    if not text.isascii() or "_" in text:
        raise ValueError
    seconds = float(text)
    if not 0 <= seconds <= LONGEST_DEADLINE:
        raise ValueError
    return seconds or None


def _read_log_level(text: str) -> int:
    if not text:
        return 0
    if (level := _read_whole_number(text)) < 0:
        raise ValueError
    return level


SIMULATED_GPUS: Final[Variable[tuple[int, ...] | None]] = Variable(
    "ALLOTMENT_SIMULATED_GPUS",
    "a count of GPUs, each with 4 GiB, or groups with a size, such as 4:16GiB or 2:1GiB,1:512MiB",
    None,
    read_gpus,
    "simulated GPUs, made of host memory, instead of real ones",
    strict=True,
)
OPENCL_DEVICES: Final[Variable[tuple[OpenClRequest, ...]]] = Variable(
    "ALLOTMENT_OPENCL_DEVICES",
    "numbers of devices of OpenCL with commas between them, each perhaps with a size, such as 0 or 0:4GiB,1; or all, "
    "or all:4GiB; empty for none",
    (),
    read_opencl_devices,
    "devices of OpenCL as GPUs, instead of those of CUDA",
    strict=True,
)
VISIBLE_DEVICES: Final[Variable[str | None]] = Variable(
    "CUDA_VISIBLE_DEVICES",
    "indices, or GPU-… identifiers, with commas between them; empty or -1 for none",
    None,
    str,
    "which GPUs there are, and in which order",
)
CUDA_DRIVER: Final[Variable[str]] = Variable(
    "ALLOTMENT_CUDA_DRIVER",
    "the path of a library; empty for the machine's own driver",
    "",
    str,
    "the CUDA driver, instead of the machine's",
)
RECORD: Final[Variable[str]] = Variable(
    "ALLOTMENT_RECORD",
    "the path of a file; empty for none",
    "",
    str,
    "the trace that receives the events of all pools",
)
RECORD_EVENTS: Final[Variable[int]] = Variable(
    "ALLOTMENT_RECORD_EVENTS",
    "a number; 0 for all events",
    0,
    _read_count,
    "how many of the last events the trace of ALLOTMENT_RECORD receives, at a refusal or at the end",
)
RECORD_STACKS: Final[Variable[int]] = Variable(
    "ALLOTMENT_RECORD_STACKS",
    "a number up to 64; 0 for none",
    0,
    _read_count,
    "how many frames of Python's stack the trace of ALLOTMENT_RECORD has for each request",
)
FORCE_GROWTH: Final[Variable[bool | None]] = Variable(
    "TF_FORCE_GPU_ALLOW_GROWTH",
    "true or false",
    None,
    _read_exact_bool,
    "memory growth of every GPU, whatever the program sets",
)
TRIM_ON_OOM: Final[Variable[bool]] = Variable(
    "TF_ENABLE_GPU_GARBAGE_COLLECTION",
    "true or false",
    True,
    _read_exact_bool,
    "whether a GPU's pool hands back free regions before it refuses",
)
SYSTEM_RESERVE: Final[Variable[int | None]] = Variable(
    "TF_DEVICE_MIN_SYS_MEMORY_IN_MB",
    "a number of MiB, 0 or more",
    None,
    _read_reserve,
    "MiB of a GPU's free memory that are left alone",
)
CPU_POOL: Final[Variable[bool]] = Variable(
    "TF_CPU_ALLOCATOR_USE_BFC",
    "true, false, 1 or 0",
    False,
    _read_bool,
    "whether the CPU has a pool, and with it figures and a limit",
)
CPU_POOL_LIMIT: Final[Variable[int]] = Variable(
    "TF_CPU_BFC_MEM_LIMIT_IN_MB",
    f"a number of MiB from 1 to {_MOST_MIB}",
    65536 * _MIB,
    _read_mib,
    "MiB that the CPU's pool may reserve",
)
LOG_LEVEL: Final[Variable[int]] = Variable(
    "TF_CPP_MIN_LOG_LEVEL",
    "0 (all), 1, 2 or 3 (errors hidden, too)",
    0,
    _read_log_level,
    "from 1 on, placement lines on stderr are hidden",
)
GUARD: Final[Variable[bool]] = Variable(
    "ALLOTMENT_GUARD",
    "0 or 1",
    False,
    _read_switch,
    "whether pools of host memory find overruns and writes after a free",
    strict=True,
)
COLLECT_GARBAGE: Final[Variable[bool | None]] = Variable(
    "ALLOTMENT_COLLECT_GARBAGE",
    "0 or 1",
    None,
    _read_optional_switch,
    "whether Python's collector runs before memory is refused; unset: unless the program has switched it off",
    strict=True,
)
OWNER_TAGS: Final[Variable[bool]] = Variable(
    "ALLOTMENT_OWNER_TAGS",
    "0 or 1",
    False,
    _read_switch,
    "whether pools note which operation and which line of Python asked for each allocation",
    strict=True,
)
POOL_POLICY: Final[Variable[Policy]] = Variable(
    "ALLOTMENT_POOL_POLICY",
    "tensorflow or tight",
    "tensorflow",
    _read_policy,
    "how the pools of devices split chunks: as TensorFlow's, or so that no request gets more than it needs",
)
TF_CONFIG: Final[Variable[int | None]] = Variable(
    "TF_CONFIG",
    "an object of JSON with a cluster",
    None,
    _read_workers,
    "an error where it names several workers and MPI has started one; nothing else",
)
REPLICA_DEADLINE: Final[Variable[float | None]] = Variable(
    "ALLOTMENT_REPLICA_DEADLINE",
    f"a number of seconds up to {LONGEST_DEADLINE}; 0 for no deadline",
    600.0,
    _read_deadline,
    "seconds without a word of any replica after which a step of a strategy ends",
)

"""Options of the communication between processes, as TensorFlow names them."""

from dataclasses import dataclass
from enum import Enum
from typing import Any


class CommunicationImplementation(Enum):
    """The library that carries values between processes. As ``tf.distribute.experimental.CommunicationImplementation``.

    All of them stand for MPI, which chooses the algorithm and the network itself.
    """

    AUTO = "AUTO"
    RING = "RING"
    #: Between GPUs of several processes: taken, with a warning, for MPI.
    NCCL = "NCCL"


@dataclass(frozen=True, slots=True, init=False)
class CommunicationOptions:
    """Options of ``MultiWorkerMirroredStrategy``. As ``tf.distribute.experimental.CommunicationOptions``.

    Args:
        bytes_per_pack: Has no effect: values are not packed.
        timeout_seconds: The longest wait for other processes in one call; ``None`` stands for
            ``strategy.extended.replica_deadline``.
        implementation: A ``CommunicationImplementation``, or its name in any case.

    Raises:
        ValueError: A negative number of bytes, a timeout that is not positive, or an unknown implementation.
    """

    bytes_per_pack: int
    timeout_seconds: float | None
    implementation: CommunicationImplementation

    def __init__(
        self,
        bytes_per_pack: int = 0,
        timeout_seconds: float | None = None,
        implementation: Any = CommunicationImplementation.AUTO,
    ) -> None:
        if bytes_per_pack < 0:
            raise ValueError(f"Argument `bytes_per_pack` must be >=0, Received {bytes_per_pack}.")
        if timeout_seconds is not None and not timeout_seconds > 0:
            raise ValueError(f"timeout_seconds must be more than 0, or None, not {timeout_seconds!r}")
        if isinstance(implementation, str):
            implementation = CommunicationImplementation(implementation.upper())
        if not isinstance(implementation, CommunicationImplementation):
            raise ValueError(
                f"implementation must be a CommunicationImplementation, AUTO or RING, not {implementation!r}"
            )
        object.__setattr__(self, "bytes_per_pack", bytes_per_pack)
        object.__setattr__(self, "timeout_seconds", timeout_seconds)
        object.__setattr__(self, "implementation", implementation)

    def __str__(self) -> str:
        return (
            f"Options(bytes_per_pack={self.bytes_per_pack},timeout_seconds={self.timeout_seconds}, "
            f"implementation={self.implementation})"
        )


__all__ = ["CommunicationImplementation", "CommunicationOptions"]

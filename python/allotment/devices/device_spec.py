"""``DeviceSpec``: a device name as an object (placement, section 1)."""

from typing import Any, Self

from allotment.devices.names import DeviceName, canonical_kind, parse


class DeviceSpec:
    """A device, or the parts of its name that are known. As ``tf.DeviceSpec``; cannot be changed.

    Args:
        job: Name of the job, kept as a text.
        replica: Index of the replica, kept as a whole number.
        task: Index of the task, kept as a whole number.
        device_type: Such as ``"CPU"`` or ``"GPU"``; exactly ``"cpu"`` and ``"gpu"`` are upper-cased.
        device_index: Index of the device, kept as a whole number.

    Each may be ``None``: not set.

    Raises:
        ValueError: An index that is not a whole number.
    """

    __slots__ = ("_name",)
    _name: DeviceName

    #: A spec that can change never equals one that cannot.
    _mutable = False

    def __init__(
        self,
        job: Any = None,
        replica: Any = None,
        task: Any = None,
        device_type: Any = None,
        device_index: Any = None,
    ) -> None:
        self._name = _name_of(job, replica, task, device_type, device_index)

    @classmethod
    def from_string(cls, spec: str | None) -> Self:
        """Make a spec of a text such as ``"/job:worker/GPU:0"``; empty and ``None`` set nothing.

        Raises:
            ValueError: The text is not a device name (placement, section 2.1).
        """
        return cls._of(parse(spec))

    def parse_from_string(self, spec: str | None) -> "DeviceSpec":
        """Make a new spec of a text; this one stays as it is.

        Raises:
            ValueError: The text is not a device name.
        """
        return self.from_string(spec)

    def make_merged_spec(self, dev: "DeviceSpec") -> Self:
        """Make a new spec with each field of ``dev`` that is set, else this one's."""
        return self._of(self._name.merged_with(dev._name))

    def replace(self, **kwargs: Any) -> Self:
        """Make a new spec with other values in the named fields; ``None`` clears one.

        Raises:
            TypeError: No such field.
        """
        return type(self)(**(self._fields() | kwargs))

    def to_string(self) -> str:
        """The canonical name: ``/job:worker/replica:0/task:1/device:GPU:0``, without what is not set."""
        return self._name.to_string()

    @property
    def job(self) -> str | None:
        """Name of the job."""
        return self._name.job

    @property
    def replica(self) -> int | None:
        """Index of the replica."""
        return self._name.replica

    @property
    def task(self) -> int | None:
        """Index of the task."""
        return self._name.task

    @property
    def device_type(self) -> str | None:
        """Type, such as ``"GPU"``."""
        return self._name.kind

    @property
    def device_index(self) -> int | None:
        """Index among the devices of the type."""
        return self._name.index

    @classmethod
    def _of(cls, name: DeviceName) -> Self:
        return cls(name.job, name.replica, name.task, name.kind, name.index)

    def _fields(self) -> dict[str, str | int | None]:
        return {
            "job": self.job,
            "replica": self.replica,
            "task": self.task,
            "device_type": self.device_type,
            "device_index": self.device_index,
        }

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, DeviceSpec) or other._mutable != self._mutable:
            return NotImplemented
        return self.to_string() == other.to_string()

    def __hash__(self) -> int:
        return hash(self.to_string())

    def __repr__(self) -> str:
        fields = ", ".join(f"{label}={value}" for label, value in self._fields().items())
        return f"<DeviceSpec({fields})>"

    def __reduce__(self) -> tuple[type[Self], tuple[str | int | None, ...]]:
        return type(self), tuple(self._fields().values())


class MutableDeviceSpec(DeviceSpec):
    """A ``DeviceSpec`` whose fields can be assigned. As ``tf.compat.v1.DeviceSpec``."""

    __slots__ = ()
    _mutable = True

    def parse_from_string(self, spec: str | None) -> Self:
        """Take the fields of a text, and return this spec.

        Raises:
            ValueError: The text is not a device name.
        """
        self._name = parse(spec)
        return self

    def merge_from(self, dev: DeviceSpec) -> None:
        """Take each field of ``dev`` that is set."""
        self._name = self._name.merged_with(dev._name)

    def _assign(self, **field: Any) -> None:
        self._name = _name_of(**(self._fields() | field))

    @property
    def job(self) -> str | None:
        """Name of the job; can be assigned."""
        return self._name.job

    @job.setter
    def job(self, job: Any) -> None:
        self._assign(job=job)

    @property
    def replica(self) -> int | None:
        """Index of the replica; can be assigned."""
        return self._name.replica

    @replica.setter
    def replica(self, replica: Any) -> None:
        self._assign(replica=replica)

    @property
    def task(self) -> int | None:
        """Index of the task; can be assigned."""
        return self._name.task

    @task.setter
    def task(self, task: Any) -> None:
        self._assign(task=task)

    @property
    def device_type(self) -> str | None:
        """Type, such as ``"GPU"``; can be assigned."""
        return self._name.kind

    @device_type.setter
    def device_type(self, device_type: Any) -> None:
        self._assign(device_type=device_type)

    @property
    def device_index(self) -> int | None:
        """Index among the devices of the type; can be assigned."""
        return self._name.index

    @device_index.setter
    def device_index(self, device_index: Any) -> None:
        self._assign(device_index=device_index)


def _name_of(job: Any, replica: Any, task: Any, device_type: Any, device_index: Any) -> DeviceName:
    return DeviceName(
        job=None if job is None else str(job),
        replica=None if replica is None else int(replica),
        task=None if task is None else int(task),
        kind=None if device_type is None else canonical_kind(str(device_type)),
        index=None if device_index is None else int(device_index),
    )

"""Reads and writes checkpoint files: ``.npz`` archives of named tensors. Reading never unpickles.

A header lists the tensors with types and shapes; each tensor is a ``.npy`` member, strings are stored as bytes and
lengths. A file is written under a temporary name and renamed when it is complete.
"""

import io
import json
import os
import tempfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import numpy as np

from allotment.errors import DataLossError, NotFoundError
from allotment.tf.tensors.dtype import DType, as_dtype, string

Array = np.ndarray[Any, Any]

#: Suffix of a checkpoint's file after its prefix.
SUFFIX: Final = ".npz"
_FORMAT: Final = {"format": "allotment checkpoint", "version": 1}
_HEADER: Final = "header"
_BYTES: Final = np.dtype(np.uint8)
#: Exceptions that zipfile and NumPy raise for a damaged archive.
_DAMAGE: Final = (
    zipfile.BadZipFile,
    zlib.error,
    ValueError,
    KeyError,
    TypeError,
    EOFError,
    NotImplementedError,
)


def exists(prefix: str) -> bool:
    """Whether the checkpoint with a prefix exists."""
    return os.path.isfile(prefix + SUFFIX)


def remove(prefix: str) -> None:
    """Remove a checkpoint's file if it exists."""
    if exists(prefix):
        os.remove(prefix + SUFFIX)


def write(prefix: str, tensors: Mapping[str, Array]) -> None:
    """Write a checkpoint's file atomically.

    Args:
        prefix: The path without ``SUFFIX``.
        tensors: Arrays by name.

    Raises:
        OSError: The file cannot be written. An existing file is unchanged.
    """
    entries = []
    with _replacing(prefix + SUFFIX) as file, zipfile.ZipFile(file, "w") as archive:
        for number, (name, array) in enumerate(tensors.items()):
            dtype = string if array.dtype.kind in "OSU" else as_dtype(array.dtype)
            entries.append({"name": name, "dtype": dtype.name, "shape": list(array.shape)})
            if dtype is string:
                texts = [
                    each if isinstance(each, bytes) else str(each).encode() for each in array.reshape(-1)
                ]
                _add(archive, f"{number}_lengths", np.array([len(each) for each in texts], np.int64))
                array = np.frombuffer(b"".join(texts), np.uint8)
            _add(archive, str(number), array)
        _add(archive, _HEADER, np.frombuffer(json.dumps(_FORMAT | {"tensors": entries}).encode(), np.uint8))


@contextmanager
def _replacing(path: str) -> Iterator[io.BufferedWriter]:
    """Context manager that yields a temporary file and renames it to ``path`` unless the block raises an error."""
    handle, temporary = tempfile.mkstemp(
        dir=os.path.dirname(path) or ".", prefix=f".{os.path.basename(path)}."
    )
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def write_text(path: str, text: str) -> None:
    """Write a text file atomically, in UTF-8."""
    with _replacing(path) as file:
        file.write(text.encode())


def _add(archive: zipfile.ZipFile, name: str, array: Array) -> None:
    # ZIP64, because the size is unknown when the member is opened and may exceed 4 GiB.
    with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
        np.lib.format.write_array(
            member, np.ascontiguousarray(array).reshape(array.shape), allow_pickle=False
        )


class CheckpointReader:
    """Reads the tensors of a checkpoint by name. As the result of ``tf.train.load_checkpoint``.

    Args:
        prefix: The prefix of the checkpoint.

    Raises:
        NotFoundError: The checkpoint does not exist.
        DataLossError: The file is damaged or not a checkpoint of this package.
    """

    def __init__(self, prefix: str) -> None:
        self._path = prefix + SUFFIX
        if not exists(prefix):
            hint = (
                f" {prefix}.index is a checkpoint of TensorFlow's own format, which is not read here."
                if os.path.exists(f"{prefix}.index")
                else ""
            )
            raise NotFoundError(
                None, None, f"Failed to find any matching files for {prefix}: there is no {self._path}.{hint}"
            )
        #: By name: the tensor's number in the archive, its type and its shape.
        self._entries: dict[str, tuple[int, DType, tuple[int, ...]]] = self._with_archive(self._read_header)

    def _with_archive(self, function: Any, *args: Any) -> Any:
        """Open the archive and call a function with it; raise ``DataLossError`` if the archive is damaged."""
        damage = ""
        try:
            with zipfile.ZipFile(self._path) as archive:
                return function(archive, *args)
        except FileNotFoundError:
            damage = "it was removed"
        except _DAMAGE as error:
            error.__traceback__ = None
            damage = f"{type(error).__name__}: {error}"
        raise DataLossError(
            None, None, f"{self._path} cannot be read as a checkpoint of this package: {damage}"
        )

    def _read_header(self, archive: zipfile.ZipFile) -> dict[str, tuple[int, DType, tuple[int, ...]]]:
        member = archive.getinfo(f"{_HEADER}.npy")
        with archive.open(member) as file:
            header = json.loads(_array(file, None, member.file_size).tobytes())
        if {name: header[name] for name in _FORMAT} != _FORMAT:
            raise ValueError(f"its header is not that of {_FORMAT}")
        entries = {}
        for number, entry in enumerate(header["tensors"]):
            shape = tuple(entry["shape"])
            if not all(type(length) is int and length >= 0 for length in shape):
                raise ValueError(f"{shape} is not a shape")
            entries[str(entry["name"])] = (number, as_dtype(entry["dtype"]), shape)
        return entries

    def has_tensor(self, tensor_str: str) -> bool:
        """Whether the checkpoint has a tensor named ``tensor_str``."""
        return tensor_str in self._entries

    def get_tensor(self, tensor_str: str) -> Any:
        """Return a tensor as a NumPy array, or a NumPy scalar for rank 0.

        Raises:
            NotFoundError: There is no tensor of this name.
            DataLossError: The tensor is damaged.
        """
        return self._array_of(tensor_str)[()]

    def _array_of(self, name: str) -> Array:
        if name not in self._entries:
            raise NotFoundError(None, None, f"Key {name} not found in checkpoint {self._path}")
        found: Array = self._with_archive(self._read, *self._entries[name])
        return found

    def _read(self, archive: zipfile.ZipFile, number: int, dtype: DType, shape: tuple[int, ...]) -> Array:
        def member(name: str, dtype: Any, shape: tuple[int, ...] | None) -> Array:
            info = archive.getinfo(f"{name}.npy")
            with archive.open(info) as file:
                return _array(file, shape, info.file_size, np.dtype(dtype))

        if dtype is not string:
            return member(str(number), dtype.numpy, shape)
        lengths = member(f"{number}_lengths", np.int64, (int(np.prod(shape)),))
        ends = np.cumsum(lengths)
        whole = member(str(number), np.uint8, (int(ends[-1]) if len(ends) else 0,)).tobytes()
        made = np.empty(len(ends), object)
        made[:] = [whole[end - length : end] for length, end in zip(lengths, ends, strict=True)]
        return made.reshape(shape)

    def get_variable_to_shape_map(self) -> dict[str, list[int]]:
        """Return the shape of each tensor by name, as lists."""
        return {name: list(shape) for name, (_, _, shape) in self._entries.items()}

    def get_variable_to_dtype_map(self) -> dict[str, DType]:
        """Return the element type of each tensor by name."""
        return {name: dtype for name, (_, dtype, _) in self._entries.items()}


def _array(file: Any, shape: tuple[int, ...] | None, size: int, dtype: Any = _BYTES) -> Array:
    """Read an array from an open member of an archive and check it.

    Args:
        file: The open member.
        shape: The expected shape; ``None`` accepts any.
        size: Bytes of the member.
        dtype: The expected type.

    Raises:
        ValueError: The array has another type or shape, or the member has too few bytes for it.
    """
    version = np.lib.format.read_magic(file)
    if version != (1, 0):
        raise ValueError(f"version {version} of .npy is not read")
    found, in_columns, kind = np.lib.format.read_array_header_1_0(file)
    count = int(np.prod(found, dtype=object))
    if kind != dtype or in_columns or (shape is not None and found != shape) or count * dtype.itemsize > size:
        raise ValueError(f"an array is {kind} of shape {found}, not {dtype} of shape {shape} in {size} bytes")
    data = file.read(count * dtype.itemsize)
    if len(data) != count * dtype.itemsize:
        raise ValueError(f"an array ends after {len(data)} of {count * dtype.itemsize} bytes")
    return np.frombuffer(data, dtype).reshape(found)


__all__ = ["SUFFIX", "CheckpointReader", "exists", "remove", "write", "write_text"]

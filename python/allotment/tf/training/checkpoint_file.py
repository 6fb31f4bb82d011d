"""Files of checkpoints: tensors by name in one ``.npz`` archive. Reading one runs no code that is in it.

A header says which tensors there are, with types and shapes; each tensor is a ``.npy`` member without pickles, texts
are bytes and lengths. A file is written beside its place and moved there when it is complete.
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

#: Behind the prefix that programs know a checkpoint by.
SUFFIX: Final = ".npz"
_FORMAT: Final = {"format": "allotment checkpoint", "version": 1}
_HEADER: Final = "header"
_BYTES: Final = np.dtype(np.uint8)
#: What reading a damaged archive raises.
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
    """Whether there is a checkpoint of this prefix."""
    return os.path.isfile(prefix + SUFFIX)


def remove(prefix: str) -> None:
    """Remove a checkpoint, if it is there."""
    if exists(prefix):
        os.remove(prefix + SUFFIX)


def write(prefix: str, tensors: Mapping[str, Array]) -> None:
    """Write a checkpoint, completely or not at all.

    Args:
        prefix: Where to; the file's name ends with ``SUFFIX``.
        tensors: Arrays by name.

    Raises:
        OSError: It cannot be written.
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
    """A file beside a path, which it becomes at the end of a ``with`` block without an error."""
    handle, beside = tempfile.mkstemp(dir=os.path.dirname(path) or ".", prefix=f".{os.path.basename(path)}.")
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    except BaseException:
        os.unlink(beside)
        raise


def write_text(path: str, text: str) -> None:
    """Write a file of text, completely or not at all."""
    with _replacing(path) as file:
        file.write(text.encode())


def _add(archive: zipfile.ZipFile, name: str, array: Array) -> None:
    # Of any size: the archive does not know it before.
    with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
        np.lib.format.write_array(
            member, np.ascontiguousarray(array).reshape(array.shape), allow_pickle=False
        )


class CheckpointReader:
    """The tensors of a checkpoint. As what ``tf.train.load_checkpoint`` returns.

    Args:
        prefix: The prefix of the checkpoint.

    Raises:
        NotFoundError: There is none.
        DataLossError: The file is damaged, or no checkpoint of this package.
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
        #: The number of each tensor in the archive, its type and its shape, by name.
        self._entries: dict[str, tuple[int, DType, tuple[int, ...]]] = self._within(self._read_header)

    def _within(self, function: Any, *args: Any) -> Any:
        """Call a function with the open archive and arguments."""
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
                raise ValueError(f"{shape} is no shape")
            entries[str(entry["name"])] = (number, as_dtype(entry["dtype"]), shape)
        return entries

    def has_tensor(self, tensor_str: str) -> bool:
        """Whether there is a tensor of a name."""
        return tensor_str in self._entries

    def get_tensor(self, tensor_str: str) -> Any:
        """Return a tensor as an array, a scalar of NumPy's for rank 0.

        Raises:
            NotFoundError: There is none of this name.
            DataLossError: It is damaged.
        """
        return self._array_of(tensor_str)[()]

    def _array_of(self, name: str) -> Array:
        if name not in self._entries:
            raise NotFoundError(None, None, f"Key {name} not found in checkpoint {self._path}")
        made: Array = self._within(self._read, *self._entries[name])
        return made

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
        """Return the shapes by name."""
        return {name: list(shape) for name, (_, _, shape) in self._entries.items()}

    def get_variable_to_dtype_map(self) -> dict[str, DType]:
        """Return the element types by name."""
        return {name: dtype for name, (_, dtype, _) in self._entries.items()}


def _array(file: Any, shape: tuple[int, ...] | None, size: int, dtype: Any = _BYTES) -> Array:
    """Read an array of a type, and of a shape if one is given, from a member of an archive with so many bytes.

    Raises:
        ValueError: It is of another type or shape, or has not as many bytes as that takes.
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

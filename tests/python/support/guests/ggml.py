"""ggml of the wheel of pywhispercpp, and a buffer type of it over a pool: the one of the example in C."""

import ctypes
import importlib.util
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from allotment import Pool
from allotment._core import GuestMemory

EXAMPLES = Path(__file__).parents[4] / "rust/capi/examples"
#: What the buffer type puts in front of a buffer's data.
FRONT = 64
F32 = 0
_LOG = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)


class _Params(ctypes.Structure):
    _fields_ = (("mem_size", ctypes.c_size_t), ("mem_buffer", ctypes.c_void_p), ("no_alloc", ctypes.c_bool))


class Ggml:
    """ggml's functions, with its log kept.

    Args:
        folder: A folder for the compiled buffer type.
    """

    def __init__(self, folder: Path) -> None:
        base, cpu = libraries()
        self._base = ctypes.CDLL(str(base), mode=ctypes.RTLD_GLOBAL)
        self._cpu = ctypes.CDLL(str(cpu), mode=ctypes.RTLD_GLOBAL)
        self.guest = _compiled(folder)
        self.log: list[str] = []
        self._write = _LOG(lambda level, text, data: self.log.append(text.decode()))
        self.call("ggml_log_set", None, self._write, None)

    def call(self, name: str, result: Any, *arguments: Any) -> Any:
        """Call a function; integers are 64 bits wide, which registers do not tell from narrower ones."""
        function = getattr(self._cpu if "cpu" in name else self._base, name)
        function.restype = result
        function.argtypes = None
        wide = [ctypes.c_int64(value) if isinstance(value, int) else value for value in arguments]
        return function(*wide)

    def context(self, nbytes: int = 1 << 12) -> int:
        """Return a context without data; ``nbytes`` are for the descriptions of tensors and graphs."""
        made: int = self.call("ggml_init", ctypes.c_void_p, _Params(nbytes, None, True))
        return made

    def buffer_type(self, pool: Pool) -> int:
        """Return ggml's buffer type for a pool."""
        guest = GuestMemory(pool, "ggml")
        self.guest.make_buffer_type.restype = ctypes.c_void_p
        made: int = self.guest.make_buffer_type(
            ctypes.c_void_p(GuestMemory.functions), ctypes.c_void_p(guest.address)
        )
        return made


class Tensor:
    """A vector of 32-bit floats in a buffer of its own, which is freed with it.

    Raises:
        MemoryError: ggml got no buffer; the text is that of the pool's refusal.
    """

    def __init__(self, ggml: Ggml, buffer_type: int, elements: int) -> None:
        self._ggml = ggml
        self._buffer = None
        self._context = ggml.context()
        tensor = ggml.call(
            "ggml_new_tensor_1d", ctypes.c_void_p, ctypes.c_void_p(self._context), F32, elements
        )
        allocate = "ggml_backend_alloc_ctx_tensors_from_buft"
        self._buffer = ggml.call(
            allocate, ctypes.c_void_p, ctypes.c_void_p(self._context), ctypes.c_void_p(buffer_type)
        )
        if not self._buffer:
            raise MemoryError(last_refusal())
        self.address = ggml.call("ggml_get_data", ctypes.c_void_p, ctypes.c_void_p(tensor))
        self.nbytes: int = ggml.call(
            "ggml_backend_buffer_get_size", ctypes.c_size_t, ctypes.c_void_p(self._buffer)
        )
        self.values = (ctypes.c_float * elements).from_address(self.address)

    def __del__(self) -> None:
        if self._buffer:
            self._ggml.call("ggml_backend_buffer_free", None, ctypes.c_void_p(self._buffer))
        self._ggml.call("ggml_free", None, ctypes.c_void_p(self._context))


class _Functions(ctypes.Structure):
    _fields_ = (
        ("others", ctypes.c_void_p * 3),
        ("last_refusal", ctypes.CFUNCTYPE(ctypes.c_char_p)),
    )


def last_refusal() -> str:
    """Return the text of the last refusal on this thread."""
    text: bytes | None = _Functions.from_address(GuestMemory.functions).last_refusal()
    return (text or b"").decode()


def libraries() -> tuple[Path, Path]:
    """Return the libraries of ggml and its CPU backend; skip the test without them or a compiler of C."""
    package = importlib.util.find_spec("pywhispercpp")
    if package is None or package.origin is None:
        pytest.skip("libggml is not installed: pip install pywhispercpp", allow_module_level=True)
    folder = Path(package.origin).parents[1] / "pywhispercpp.libs"
    found = [next(iter(folder.glob(f"libggml-{part}-*")), None) for part in ("base", "cpu")]
    if None in found:
        pytest.skip(f"there is no libggml in {folder}", allow_module_level=True)
    base, cpu = found
    assert base is not None
    assert cpu is not None
    return base, cpu


def _compiled(folder: Path) -> ctypes.CDLL:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("there is no compiler of C")
    target = folder / "ggml_guest.so"
    source = Path(__file__).with_name("ggml_guest.c")
    options = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", f"-I{EXAMPLES}"]
    # Its undefined functions are those of ggml, which is loaded before.
    subprocess.run([compiler, *options, source, "-o", target], check=True, timeout=100)
    return ctypes.CDLL(str(target))

"""Compiles ``pyarrow_pool.cc`` against the installed pyarrow.

A class of Arrow's in C++ can be derived from only with the headers of the same version, which pyarrow's wheel
contains. So the library is compiled when it is first needed, which takes seconds, and is kept in
``~/.cache/allotment`` under a name that contains pyarrow's version and a hash of all that went into it.
"""

import ctypes
import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final

_SOURCE: Final = Path(__file__).with_name("pyarrow_pool.cc")
_COMPILERS: Final = ("c++", "g++", "clang++")
_OPTIONS: Final = ("-std=c++20", "-O2", "-shared", "-fPIC", "-fvisibility=hidden", "-Wl,--no-undefined")


def library() -> ctypes.CDLL:
    """Return the compiled library for the installed pyarrow; compile it if it is not kept.

    Raises:
        RuntimeError: There is no C++ compiler, or it failed, or pyarrow came without headers.
    """
    import pyarrow

    headers = Path(pyarrow.get_include())
    libraries = _libraries(pyarrow.get_library_dirs())
    if not (headers / "arrow" / "memory_pool.h").is_file() or libraries is None:
        raise RuntimeError(
            f"pyarrow {pyarrow.__version__} came without C++ headers or libraries, which its wheels on PyPI have: "
            "pip install --force-reinstall pyarrow"
        )
    command = [*_OPTIONS, f"-I{headers}", str(_SOURCE), *map(str, libraries)]
    content = hashlib.sha256(_SOURCE.read_bytes() + "\0".join(command).encode()).hexdigest()[:16]
    name = f"pyarrow-{pyarrow.__version__}-{content}.so"
    kept = _cache() / name
    if not kept.exists():
        _compile(command, kept, pyarrow.__version__)
    return ctypes.CDLL(str(kept))


def _libraries(folders: list[str]) -> list[Path] | None:
    """Return the paths of the two libraries that pyarrow has loaded; ``None`` if one is missing."""
    found = []
    for stem in ("libarrow_python.so", "libarrow.so"):
        matches = [path for folder in folders for path in sorted(Path(folder).glob(f"{stem}*"))]
        if not matches:
            return None
        found.append(matches[0])
    return found


def _cache() -> Path:
    """Return a folder that only this user can write to and that outlives the process if it can."""
    folder = Path.home() / ".cache" / "allotment"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError:
        return Path(tempfile.mkdtemp(prefix="allotment-"))
    return folder if os.access(folder, os.W_OK) else Path(tempfile.mkdtemp(prefix="allotment-"))


def _compile(command: list[str], target: Path, version: str) -> None:
    """Compile the library of the memory pool, and move it to its place when it is whole."""
    compiler = next(filter(None, map(shutil.which, _COMPILERS)), None)
    if compiler is None:
        raise RuntimeError(
            f"the memory pool for pyarrow {version} is compiled when it is first used, and there is no C++ compiler on "
            f"the PATH ({', '.join(_COMPILERS)}): install one, such as the package g++"
        )
    # In the same folder, so that other processes see the whole library or none.
    handle, unfinished = tempfile.mkstemp(suffix=".so", dir=target.parent)
    os.close(handle)
    try:
        done = subprocess.run(
            [compiler, *command, "-o", unfinished], capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise RuntimeError(
                f"{compiler} could not compile the memory pool for pyarrow {version}, which needs C++20:\n{done.stderr}"
            )
        Path(unfinished).replace(target)
    finally:
        Path(unfinished).unlink(missing_ok=True)


__all__ = ["library"]

"""GPU libraries that are not installed, whose import fails, or that lack what an integration needs."""

import textwrap
from pathlib import Path

from support.cuda import check, run_on_stand_in

#: The package that each integration imports, and a part of what it tells to install.
GUESTS = {
    "cupy": ("cupy", "pip install cupy-cuda12x"),
    "torch": ("torch", "pip install 'torch>=2.11'"),
    "rmm": ("rmm", "pip install rmm-cu12"),
    "numba": ("numba.cuda", "pip install numba-cuda"),
    "cuda_core": ("cuda.core", "cuda-core[cu12]"),
    "warp": ("warp", "warp-lang"),
}

_START = """
import importlib, sys
sys.path.insert(0, {folder!r})
import allotment
pool = allotment.Pool("8MiB", source="cuda:0")

def attempts(pooled):
    yield lambda: pooled.install(pool)
    if hasattr(pooled, "use"):
        yield lambda: pooled.use(pool).__enter__()

def expect(name, kind, *texts):
    pooled = importlib.import_module("allotment.integrations." + name)
    for attempt in attempts(pooled):
        try:
            attempt()
        except ImportError as error:
            assert type(error) is kind, (name, error)
            for text in texts:
                assert text in str(error), (name, error)
            assert error.__context__ is None or error.__context__.__traceback__ is None
        else:
            raise AssertionError(name)
        assert pool.stats().num_live == 0
    try:
        pooled.uninstall()
    except RuntimeError as error:
        assert "nothing to uninstall" in str(error)
    else:
        raise AssertionError(name)
"""


def play(program: str, folder: Path) -> None:
    check(run_on_stand_in(_START.format(folder=str(folder)) + textwrap.dedent(program)))


def put(folder: Path, package: str, text: str) -> None:
    """Write a package of one file, with the packages that it is in."""
    *parents, _ = package.split(".")
    for depth in range(len(parents)):
        inner = folder.joinpath(*parents[: depth + 1])
        inner.mkdir(exist_ok=True)
        (inner / "__init__.py").write_text("")
    folder.joinpath(*package.split(".")).with_suffix(".py").write_text(text)


def test_a_library_that_is_not_installed_is_named_with_its_command(tmp_path: Path) -> None:
    play(
        f"""
        class Absent:
            def find_spec(self, name, path=None, target=None):
                if name in ("cupy", "torch", "rmm", "numba", "cuda", "warp"):
                    raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
        sys.meta_path.insert(0, Absent())
        for name, (package, command) in {GUESTS}.items():
            expect(name, ModuleNotFoundError, package + ", which is not installed", command)
        """,
        tmp_path,
    )


def test_a_library_whose_import_fails_says_why(tmp_path: Path) -> None:
    for package, _ in GUESTS.values():
        put(tmp_path, package, "import builtins\nraise builtins.error_of_the_test")
    play(
        f"""
        import builtins
        for error in (
            ImportError("libcudart.so.12: cannot open shared object file"),
            OSError("libcudart.so.12: cannot open shared object file"),
            ModuleNotFoundError("libcudart.so.12 needs another", name="another"),
            ValueError("libcudart.so.12 not found in the system path"),
        ):
            builtins.error_of_the_test = error
            for name, (package, _) in {GUESTS}.items():
                expect(name, ImportError, package, f"fails with {{type(error).__name__}}: libcudart.so.12")
        """,
        tmp_path,
    )


def test_a_library_that_lacks_something_is_named_with_its_version(tmp_path: Path) -> None:
    for package, _ in GUESTS.values():
        put(tmp_path, package, "__version__ = '0.0.1'")
    play(
        f"""
        for name, (package, command) in {GUESTS}.items():
            expect(name, ImportError, package + " 0.0.1 has no ", command.split()[-1])
        """,
        tmp_path,
    )


def test_pytorch_without_nested_pools_is_refused_with_what_to_install(tmp_path: Path) -> None:
    put(tmp_path, "torch", "import builtins\n__version__ = builtins.version_of_the_test")
    play(
        """
        import builtins
        for version, texts in {
            "2.10.1+cu128": ("has no memory pools that nest: before 2.11", "Upgrade it: pip install 'torch>=2.11'"),
            "1.13.1": ("has no memory pools that nest: before 2.11",),
            # Not too old: the test's package lacks a function.
            "2.11.0+cu130": ("has no _C._cuda_",),
            "3.0": ("has no _C._cuda_",),
        }.items():
            builtins.version_of_the_test = version
            sys.modules.pop("torch", None)
            expect("torch", ImportError, f"torch {version} ", *texts)
        """,
        tmp_path,
    )


def test_without_use_nothing_of_them_is_imported(tmp_path: Path) -> None:
    for package, _ in GUESTS.values():
        put(tmp_path, package, "raise SystemExit('imported')")
    play(
        f"""
        import numpy as np
        import allotment.tf as tf
        from allotment.integrations import numpy as pooled
        for name in {list(GUESTS)}:
            importlib.import_module("allotment.integrations." + name)
        host = allotment.Pool("1MiB")
        with pooled.use(host):
            array = np.ones(10)
        assert host.stats().num_live == 1
        with tf.device("/CPU:0"):
            assert float(tf.add(1.0, 2.0)) == 3.0
        assert tf.config.list_physical_devices("CPU")
        """,
        tmp_path,
    )

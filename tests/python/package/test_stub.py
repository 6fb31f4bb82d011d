"""The stub, the compiled module, and what users import agree."""

import ast
import inspect
import subprocess
import sys
import types
from pathlib import Path

import pytest

import allotment
import allotment.tf as tf
from support.stub_docs import STUB, at_run_time, documented

ROOT = Path(__file__).resolve().parents[3]


def test_the_stub_is_that_of_the_compiled_module() -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "mypy.stubtest",
            "allotment._core",
            "--allowlist",
            str(ROOT / "tests/python/stubtest-allowlist.txt"),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_docstrings_of_the_stub_are_those_of_the_compiled_module() -> None:
    found = dict(documented(ast.parse(STUB.read_text(encoding="utf-8"))))
    assert len(found) > 150
    for name, node in found.items():
        # `python tests/python/support/stub_docs.py` writes the stub.
        assert at_run_time(name) == ast.get_docstring(node), name


def test_help_of_the_compiled_classes_is_whole() -> None:
    undocumented = (
        "__new__",
        "__reduce__",
        "__eq__",
        "__ne__",
        "__hash__",
        "__enter__",
        "__exit__",
        "__buffer__",
        "__release_buffer__",
    )
    tree = ast.parse(STUB.read_text(encoding="utf-8"))
    for outer in tree.body:
        if isinstance(outer, ast.ClassDef):
            assert ast.get_docstring(outer), outer.name
            for inner in outer.body:
                if isinstance(inner, ast.FunctionDef) and inner.name not in undocumented:
                    assert ast.get_docstring(inner), f"{outer.name}.{inner.name}"
        elif isinstance(outer, ast.FunctionDef):
            assert ast.get_docstring(outer), outer.name


@pytest.mark.parametrize(
    "named",
    [
        allotment.Pool,
        allotment.Pool.allocate,
        allotment.Pool.scope,
        allotment.Pool.set_limit,
        allotment.HostMemory,
    ],
)
def test_every_option_is_explained(named: object) -> None:
    assert callable(named)
    text = inspect.getdoc(named) or ""
    for name in inspect.signature(named).parameters:
        assert name == "self" or f"\n    {name}: " in text, name


def test_every_field_of_an_error_is_explained() -> None:
    with pytest.raises(allotment.OutOfMemoryError) as raised:
        allotment.Pool("1MiB", source="address-space").malloc("2MiB")
    text = allotment.OutOfMemoryError.__doc__ or ""
    fields = [name for name in vars(raised.value) if not name.startswith("_")]
    assert len(fields) > 12
    for name in fields:
        assert f"\n    {name} (" in text, name


@pytest.mark.parametrize("package", [allotment, tf])
def test_every_public_name_is_there_and_documented(package: types.ModuleType) -> None:
    for name in package.__all__:
        value = getattr(package, name)
        if isinstance(value, types.FunctionType | type | types.ModuleType):
            assert value.__doc__, name
            module = getattr(value, "__module__", value.__name__)
            assert module.partition(".")[0] == "allotment"


def test_importing_the_package_imports_no_framework() -> None:
    heavy = ["click", "rich", "torch", "cupy", "tensorflow", "rmm"]
    program = f"import sys, allotment; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"

"""The two packages: pools and devices in ``allotment``, TensorFlow's names in ``allotment.tf``."""

import graphlib
import importlib
import json
import subprocess
import sys
import types

import grimp
import pytest

import allotment
import allotment.tf as tf
from support.child import run_program


def modules_after(*statements: str) -> list[str]:
    """Modules of the package that are there after statements in a new process."""
    done = run_program(
        "; ".join(statements)
        + "; import json, sys; print(json.dumps([n for n in sys.modules if n.split('.')[0] == 'allotment']))"
    )
    assert done.returncode == 0, done.stderr
    found: list[str] = json.loads(done.stdout)
    return found


def test_pools_and_devices_import_little_and_nothing_of_tensorflow() -> None:
    found = modules_after(
        "import allotment", "allotment.Pool('1MiB')", "allotment.experimental", "allotment.testing"
    )
    assert len(found) <= 40
    assert not [name for name in found if name.startswith("allotment.tf")]


def test_names_of_tensorflow_load_when_they_are_used() -> None:
    found = modules_after("import allotment.tf as tf")
    for late in ("keras", "distribute", "graph", "differentiation", "compat", "data"):
        assert f"allotment.tf.{late}" not in found
    assert "allotment.tf.keras" in modules_after("import allotment.tf as tf", "tf.keras")


def test_no_import_goes_in_a_circle() -> None:
    # Imports in functions and for type checkers count, too.
    graph = grimp.build_graph("allotment", include_external_packages=False, cache_dir=None)

    arrows = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    assert len(arrows) > 300
    order = list(graphlib.TopologicalSorter(arrows).static_order())
    assert (
        order.index("allotment.errors")
        < order.index("allotment.devices.context")
        < order.index("allotment.tf.config")
    )


@pytest.mark.parametrize("name", ["constant", "Variable", "keras", "v1", "no_such_name"])
def test_the_root_says_where_names_of_tensorflow_are(name: str) -> None:
    with pytest.raises(AttributeError, match=f"no attribute '{name}'.*allotment.tf"):
        getattr(allotment, name)


@pytest.mark.parametrize("package", ["allotment", "allotment.tf"])
def test_every_name_that_is_listed_is_there(package: str) -> None:
    module = importlib.import_module(package)
    for name in module.__all__:
        assert (getattr(module, name) is None) == (name == "newaxis")
    assert dir(tf) == tf.__all__ == sorted(tf.__all__)


def test_modules_import_in_any_order() -> None:
    for first in (
        "graph.nodes.node",
        "ops.copies",
        "ops.autodiff.tape",
        "keras.layers",
        "distribute.values",
        "variables.variable",
        "v1",
    ):
        done = subprocess.run(
            [sys.executable, "-c", f"import allotment.tf.{first}"],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr


def test_the_package_is_a_plain_module() -> None:
    # So that what refers to it can be sent to another process: pickles of functions know modules by their type.
    assert type(tf) is types.ModuleType

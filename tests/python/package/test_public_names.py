"""Public modules show public names only: none of what they import for themselves, or of their own modules."""

import importlib
import pkgutil
from types import ModuleType

import pytest

import allotment.tf as tf
from allotment.tf.names.missing_names import public_names

#: Names of this package that TensorFlow does not have there.
OWN = {
    "compat.v1": {"GraphVariable", "test", "config", "errors"},
    "config": {"gpu"},
    "config.experimental": {"enable_op_determinism"},
    "errors": {"OperatorNotAllowedInGraphError"},
    "keras": {"Functional"},
    "keras.losses": {"mean_absolute_error", "mean_squared_error"},
    "keras.models": {"Functional"},
    # Its rooms, which Python sets when it imports them; ``dir`` does not list them.
    "": {each.name for each in pkgutil.iter_modules(tf.__path__)},
}


def public_modules() -> dict[str, ModuleType]:
    found: dict[str, ModuleType] = {"": tf}
    waiting = [("", tf)]
    while waiting:
        path, module = waiting.pop()
        for name in module.__all__:
            value = getattr(module, name)
            is_ours = isinstance(value, ModuleType) and value.__name__.startswith("allotment.tf.")
            inner = f"{path}.{name}".lstrip(".")
            if is_ours and "compat.v" not in inner:
                found[inner] = value
                waiting.append((inner, value))
    return found


MODULES = public_modules()


@pytest.mark.parametrize("path", sorted(MODULES))
def test_a_public_module_has_public_names_only(path: str) -> None:
    module = MODULES[path]
    known = public_names("2").get(path, frozenset()) | public_names("1").get(path, frozenset())
    shown = {name for name in {*vars(module), *dir(module)} if not name.startswith("_")}
    assert shown - known - OWN.get(path, set()) - set(module.__all__) == set()
    assert {name for name in dir(module) if not name.startswith("_")} <= set(module.__all__)


@pytest.mark.parametrize("path", sorted(MODULES))
def test_functions_that_name_a_public_module_can_be_sent_to_other_processes(path: str) -> None:
    cloudpickle = pytest.importorskip("cloudpickle")
    module = MODULES[path]
    assert cloudpickle.loads(cloudpickle.dumps(lambda: module))() is module


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("keras", "absent"),
        ("keras", "engine"),
        ("keras", "module_getattr"),
        ("keras.losses", "Any"),
        ("keras.losses", "for_shapes"),
        ("keras.layers", "bases"),
        ("debugging", "placement_log"),
        ("nn", "refuse_other_names"),
        ("compat.v1", "functools"),
        ("compat.v1.nn", "Callable"),
        ("compat.v2", "sys"),
        ("v1", "recording"),
    ],
)
def test_internal_names_are_hidden(module: str, name: str) -> None:
    found = importlib.import_module(f"allotment.tf.{module}")
    assert not hasattr(found, name)
    assert name not in dir(found)


def test_modules_that_are_imported_later_stay_hidden() -> None:
    shaping = importlib.import_module("allotment.tf.keras.layers.shaping")
    package = importlib.import_module("allotment.tf.keras.layers")
    assert not hasattr(package, "shaping")
    package.shaping = shaping  # type: ignore[attr-defined]  # what Python's import does
    assert not hasattr(package, "shaping")

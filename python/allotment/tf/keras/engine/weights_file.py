"""The variables of a model in a file: ``.npz``, an array for each, in their order."""

import os
import zipfile
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from allotment.tf.keras.engine.model import Model


def save_weights(model: "Model", filepath: Any, overwrite: bool) -> None:
    """Write all variables. See ``Model.save_weights``."""
    path = _checked(filepath)
    if not model.built:
        raise ValueError(
            f"You are saving a model that has not yet been built: {model.name!r} has no variables."
        )
    if not overwrite and os.path.exists(path):
        raise FileExistsError(f"{path} is there already; pass overwrite=True to replace it")
    values = zip(model.weights, model.get_weights(), strict=True)
    # The order is part of the name: two variables may have one name.
    named: dict[str, Any] = {
        f"{at}:{each.name.removesuffix(':0')}": value for at, (each, value) in enumerate(values)
    }
    # NumPy would add to a name that is a text.
    with open(path, "wb") as file:
        np.savez(file, allow_pickle=False, **named)


def load_weights(model: "Model", filepath: Any) -> None:
    """Read all variables. See ``Model.load_weights``."""
    path = _checked(filepath)
    if not model.built:
        raise ValueError(
            f"Unable to load weights into {model.name!r}: it has no variables yet. Build it, or call it on data first."
        )
    try:
        with np.load(path, allow_pickle=False) as file:
            values = [file[name] for name in sorted(file.files, key=lambda name: int(name.partition(":")[0]))]
    except (zipfile.BadZipFile, ValueError, EOFError) as error:
        error.__traceback__ = None
        raise ValueError(f"{path} is no file of `save_weights`: {error}") from error
    model.set_weights(values)


def _checked(filepath: Any) -> str:
    path = os.fspath(filepath)
    if not path.endswith(".npz"):
        raise ValueError(
            "The filename must end in `.npz`: weights are kept as NumPy's archives, HDF5 is not offered. "
            f"Received: {path}"
        )
    return str(path)


__all__ = ["load_weights", "save_weights"]

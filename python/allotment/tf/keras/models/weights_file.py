"""Files with the variables of a layer: ``.npz`` archives with an array for each, in their order."""

import os
import zipfile
from typing import Any

import numpy as np

from allotment.tf.keras.engine.layer import Layer


def save_weights(layer: Layer, filepath: Any, overwrite: bool) -> None:
    """Write all variables to a file. See ``Model.save_weights``."""
    path = _checked(filepath)
    if not layer.built:
        raise ValueError(
            f"You are saving a model that has not yet been built: {layer.name!r} has no variables."
        )
    if not overwrite and os.path.exists(path):
        raise FileExistsError(f"{path} is there already; pass overwrite=True to replace it")
    values = zip(layer.weights, layer.get_weights(), strict=True)
    # The position is part of the name: two variables may have the same name.
    named: dict[str, Any] = {
        f"{at}:{each.name.removesuffix(':0')}": value for at, (each, value) in enumerate(values)
    }
    # Given a path, NumPy would append ``.npz`` to it.
    with open(path, "wb") as file:
        np.savez(file, allow_pickle=False, **named)


def load_weights(layer: Layer, filepath: Any) -> None:
    """Read all variables from a file. See ``Model.load_weights``."""
    path = _checked(filepath)
    if not layer.built:
        raise ValueError(
            f"Unable to load weights into {layer.name!r}: it has no variables yet. Build it, or call it on data first."
        )
    try:
        with np.load(path, allow_pickle=False) as file:
            values = [file[name] for name in sorted(file.files, key=lambda name: int(name.partition(":")[0]))]
    except (zipfile.BadZipFile, ValueError, EOFError) as error:
        error.__traceback__ = None
        raise ValueError(f"{path} is no file of `save_weights`: {error}") from error
    layer.set_weights(values)


def _checked(filepath: Any) -> str:
    path = os.fspath(filepath)
    if not path.endswith(".npz"):
        raise ValueError(
            "The filename must end in `.npz`: weights are kept as NumPy's archives, HDF5 is not offered. "
            f"Received: {path}"
        )
    return str(path)


__all__ = ["load_weights", "save_weights"]

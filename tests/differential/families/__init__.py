"""Recipes for random calls of the public functions, one module for each family of functions."""

from families import (
    arrays,
    control,
    datasets,
    derivatives,
    elementwise,
    gathering,
    graphs,
    joining,
    legacy,
    legacy_losses,
    matrices,
    networks,
    randoms,
    reductions,
    segments,
    sequences,
    sessions,
    slices,
    texts,
)
from families.keras import (
    building,
    callbacks,
    constraints,
    heads,
    layers,
    logits,
    losses,
    metrics,
    optimizers,
    tracking,
    training,
)
from programs import Recipe

_FAMILIES = (
    elementwise,
    reductions,
    arrays,
    joining,
    gathering,
    sequences,
    segments,
    matrices,
    networks,
    texts,
    randoms,
    building,
    callbacks,
    constraints,
    heads,
    layers,
    logits,
    losses,
    metrics,
    optimizers,
    tracking,
    training,
    graphs,
    legacy,
    legacy_losses,
    control,
    datasets,
    derivatives,
    sessions,
    slices,
)


def recipes() -> dict[str, Recipe]:
    """Return the recipe of each public function.

    Raises:
        ValueError: Two families have the same function.
    """
    found: dict[str, Recipe] = {}
    for family in _FAMILIES:
        for function, recipe in family.FAMILY.recipes.items():
            if function in found:
                raise ValueError(f"{function} is in two families")
            found[function] = recipe
    return found


def members(name: str) -> set[str]:
    """Return the functions of one family, by the name of its module: ``reductions``, ``keras_layers``.

    Raises:
        KeyError: The family does not exist.
    """
    by_name = {
        family.__name__.removeprefix("families.").replace(".", "_"): family.FAMILY for family in _FAMILIES
    }
    return set(by_name[name].recipes)

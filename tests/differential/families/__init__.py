"""Recipes for random calls of the public functions, one module for each family of functions."""

from families import (
    arrays,
    derivatives,
    elementwise,
    gathering,
    graphs,
    joining,
    keras_callbacks,
    keras_layers,
    keras_losses,
    keras_metrics,
    keras_optimizers,
    keras_training,
    legacy,
    legacy_losses,
    matrices,
    networks,
    randoms,
    reductions,
    segments,
    sequences,
    texts,
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
    keras_callbacks,
    keras_layers,
    keras_losses,
    keras_metrics,
    keras_optimizers,
    keras_training,
    graphs,
    legacy,
    legacy_losses,
    derivatives,
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
    """Return the functions of one family, by the name of its module.

    Raises:
        KeyError: The family does not exist.
    """
    by_name = {family.__name__.rpartition(".")[2]: family.FAMILY for family in _FAMILIES}
    return set(by_name[name].recipes)

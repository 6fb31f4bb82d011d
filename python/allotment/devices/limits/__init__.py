"""How much memory each logical device gets, and whether it grows."""

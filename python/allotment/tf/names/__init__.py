"""Public names: operations named like Python built-ins, errors for missing names, deprecation notices."""

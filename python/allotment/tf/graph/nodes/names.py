"""Names of nodes: unique as TensorFlow makes them, with prefixes of name scopes."""

import re
from typing import Final

#: The valid names of operations; inside of a scope a name may begin with more characters.
_VALID_OP: Final = re.compile(r"^[A-Za-z0-9.][A-Za-z0-9_.\\/>-]*$")
_VALID_SCOPE: Final = re.compile(r"^[A-Za-z0-9_.\\/>-]*$")


class Names:
    """The names that a graph uses, and the scope that new names get as a prefix."""

    def __init__(self) -> None:
        #: Requests of each name, in lower case: TensorFlow's names differ by more than case.
        self._used: dict[str, int] = {}
        #: The scope, without its last slash.
        self.scope = ""

    def unique(self, name: str, mark_as_used: bool = True) -> str:
        """Return the name with the scope in front and, if it is taken, a number behind: ``add``, ``add_1``."""
        return self.counted(f"{self.scope}/{name}" if self.scope else name, mark_as_used)

    def counted(self, name: str, mark_as_used: bool = True) -> str:
        """Return the name as it stands or, if it is taken, with a number behind."""
        key = name.lower()
        count = self._used.get(key, 0)
        if mark_as_used:
            self._used[key] = count + 1
        if count == 0:
            return name
        taken = key
        while taken in self._used:
            taken = f"{key}_{count}"
            count += 1
        if mark_as_used:
            self._used[taken] = 1
        return f"{name}_{count - 1}"

    def of_operation(self, name: str) -> str:
        """The name of a new operation: unique, or, of a text with a slash at its end, exactly that text.

        Raises:
            TypeError: The name is no text.
            ValueError: No name that an operation may have.
        """
        if not isinstance(name, str):
            raise TypeError(
                f"expected string or bytes-like object, got '{type(name).__name__}': the name {name!r}"
            )
        if name.endswith("/"):
            return name[:-1]
        if not _VALID_OP.match(name):
            raise ValueError(f"'{name}' is not a valid node name")
        return self.unique(name)

    def enter(self, name: str | None) -> tuple[str, str]:
        """Enter a scope. Returns its name as callers see it, with a slash at its end, and the scope before it.

        ``None`` and empty leave all scopes; a name with a slash at its end is entered as it stands.

        Raises:
            TypeError: The name is no text.
            ValueError: No name that a scope may have.
        """
        if name is not None and not isinstance(name, str):
            raise TypeError(
                f"expected string or bytes-like object, got '{type(name).__name__}': the name {name!r}"
            )
        outer = self.scope
        if not name:
            self.scope = ""
            return "", outer
        if not (_VALID_SCOPE if outer else _VALID_OP).match(name):
            kind = "scope" if outer else "root scope"
            raise ValueError(f"'{name}' is not a valid {kind} name")
        self.scope = name[:-1] if name.endswith("/") else self.unique(name)
        return f"{self.scope}/", outer


#: The names of nodes without ``name=``, where they differ from the operation's name.
DEFAULTS: Final = {
    "AddV2": "Add",
    "ConcatV2": "concat",
    "Pack": "stack",
    "Range": "range",
    "Split": "split",
    "SplitV": "split",
    "StridedSlice": "strided_slice",
    "Transpose": "transpose",
    "Unpack": "unstack",
}

__all__ = ["DEFAULTS", "Names"]

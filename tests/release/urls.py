"""Check the links of what is published: they are absolute, and start with the repository's URL of `Cargo.toml`.

PyPI and crates.io show `README.md` without the files beside it, so its links name the repository. `--write` rewrites
them after a change of that URL, or of relative links.
"""

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
REPOSITORY: str = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["repository"]
#: A Markdown link or picture: its mark, its text, and its target.
LINK = re.compile(r"(?P<picture>!?)\[(?P<text>[^\]]*)\]\((?P<target>[^)\s]+)\)")
#: A link to a file of the repository, whatever its URL was.
FILE = re.compile(r"https://[^\s)]+?/(?:blob|raw)/main/(?P<path>[^?\s)]+)(?:\?[^\s)]*)?")


def absolute(path: str, picture: bool) -> str:
    """Return the URL of a file of the repository; that of a picture is served as a picture."""
    return f"{REPOSITORY}/raw/main/{path}?sanitize=true" if picture else f"{REPOSITORY}/blob/main/{path}"


def rewritten(text: str) -> str:
    """Return a page with absolute links to the files of the repository."""

    def replace(link: re.Match[str]) -> str:
        known = FILE.fullmatch(link["target"])
        if known is None and "://" in link["target"]:
            return link[0]
        path = known["path"] if known else link["target"]
        return f"{link['picture']}[{link['text']}]({absolute(path, bool(link['picture']))})"

    return LINK.sub(replace, text)


def main(arguments: list[str]) -> int:
    """Check the links, or rewrite them; the exit status is 1 if one is wrong."""
    readme = ROOT / "README.md"
    if "--write" in arguments:
        readme.write_text(rewritten(readme.read_text()))
    text = readme.read_text()
    faults = []
    if text != rewritten(text):
        faults.append(f"README.md has links that do not start with {REPOSITORY}: run {sys.argv[0]} --write")
    paths = {known["path"].partition("#")[0] for known in FILE.finditer(text)}
    faults += [
        f"README.md links to {path}, which is not there" for path in paths if not (ROOT / path).exists()
    ]
    urls: dict[str, str] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]
    wrong = (f"{name} = {url}" for name, url in urls.items() if not url.startswith(REPOSITORY))
    faults += [f"pyproject.toml: {entry} does not start with {REPOSITORY}" for entry in wrong]
    print("\n".join(faults) or f"{len(paths)} files are linked at {REPOSITORY}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
